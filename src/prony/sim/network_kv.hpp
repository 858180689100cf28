// KvTransfers: the KV cache of a request on its way from the group that prefilled it to the group
// that decodes it, as messages between the ranks that hold the same heads. Rank i of P holds the
// share [i/P, (i+1)/P) of every token; a rank of the decoding group fetches what overlaps its own.
// A transfer may be fed while prefill runs (layer by layer): open, push as layers finish, close.
// Deterministic; state is used again. Thread safety: none.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "prony/sim/network.hpp"

namespace prony::sim {

struct KvShare {
  int32_t from = 0, to = 0;  // ranks of the two groups
  int64_t bytes = 0;
  bool operator==(const KvShare&) const = default;
};

/// Which rank sends how much to which, when `bytes` change from one split to another; the shares
/// sum to bytes. Appended to `out`. Requires ranks >= 1 and bytes >= 0 (checked).
void split_kv(int32_t prefill_ranks, int32_t decode_ranks, int64_t bytes,
              std::vector<KvShare>& out);

class KvSink {
 public:
  virtual ~KvSink() = default;
  /// Closed, and all that was pushed has arrived.
  virtual void on_kv_done(uint64_t tag, int64_t now_ns) = 0;
  /// A part of it cannot reach its rank; the rest is withdrawn. Prefill has to be done again.
  virtual void on_kv_failed(uint64_t tag, int64_t now_ns) = 0;
};

struct KvId {
  uint32_t slot = ~0U, generation = 0;
  bool operator==(const KvId&) const = default;
};

class KvTransfers : private TransferSink {
 public:
  /// `network` must outlive this.
  explicit KvTransfers(Network& network) : network_(network) {}

  /// `prefill` and `decode` are the devices of the groups by rank; `sink` must outlive the
  /// transfer. `weight` is the tenant's on every link.
  KvId open(std::span<const int32_t> prefill, std::span<const int32_t> decode, uint32_t weight,
            uint64_t tag, KvSink* sink);
  /// More bytes of the request (over all ranks) are ready now. Requires open(id), not closed.
  void push(KvId id, int64_t bytes);
  /// Nothing more will be pushed. The sink is told when the last byte arrives, within the next
  /// advance_to() of the network even if that is now.
  void close(KvId id);
  /// open, push and close at once.
  KvId send(std::span<const int32_t> prefill, std::span<const int32_t> decode, int64_t bytes,
            uint32_t weight, uint64_t tag, KvSink* sink);
  /// No sink is told. Requires active(id) (checked).
  void cancel(KvId id);
  bool active(KvId id) const;
  int32_t active_count() const { return active_; }

 private:
  struct Request {
    std::vector<int32_t> prefill, decode;
    std::vector<TransferId> sent;
    uint64_t tag = 0;
    KvSink* sink = nullptr;
    uint32_t weight = 1, generation = 0;
    int32_t outstanding = 0;
    bool used = false, closed = false;
  };
  void on_delivered(uint64_t tag, int64_t now_ns) override;
  void on_lost(uint64_t tag, int64_t now_ns) override;
  Request& request_of(KvId id);
  void send_message(uint32_t slot, int32_t from, int32_t to, int64_t bytes);
  void release(uint32_t slot);

  Network& network_;
  std::vector<Request> requests_;
  std::vector<uint32_t> free_;
  std::vector<KvShare> shares_;
  int32_t active_ = 0;
};

}  // namespace prony::sim
