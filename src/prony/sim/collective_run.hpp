// CollectiveRunner: plays CollectivePlans on a Network, any number at once, so that groups contend
// for the links they share. A step is sent in the nanosecond in which the last one that it waits
// for is delivered; computing the sums costs nothing here (perfmodel's kernels count that).
// Deterministic; state of finished collectives is used again. Thread safety: none.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "prony/sim/collective_plan.hpp"
#include "prony/sim/network.hpp"

namespace prony::sim {

class CollectiveSink {
 public:
  virtual ~CollectiveSink() = default;
  virtual void on_collective_done(uint64_t tag, int64_t now_ns) = 0;
  /// A message of it could not be delivered; the rest of it is withdrawn.
  virtual void on_collective_failed(uint64_t tag, int64_t now_ns) = 0;
};

class CollectiveRunner : private TransferSink {
 public:
  /// `network` must outlive this.
  explicit CollectiveRunner(Network& network) : network_(network) {}

  /// Starts now. devices[rank] is where a rank stands; `plan` and `sink` must outlive the run. A
  /// plan without steps is done before this returns. Requires devices.size() == plan.ranks.
  void start(const CollectivePlan& plan, std::span<const int32_t> devices, uint32_t weight,
             uint64_t tag, CollectiveSink* sink);
  int32_t running() const { return running_; }

 private:
  struct Run {
    const CollectivePlan* plan = nullptr;
    CollectiveSink* sink = nullptr;
    std::vector<int32_t> devices, waits;
    std::vector<TransferId> sent;
    uint64_t tag = 0;
    uint32_t weight = 1;
    size_t left = 0;
    bool active = false;
  };
  void on_delivered(uint64_t tag, int64_t now_ns) override;
  void on_lost(uint64_t tag, int64_t now_ns) override;
  void send(size_t run, int32_t step);

  Network& network_;
  std::vector<Run> runs_;
  int32_t running_ = 0;
};

/// Time of one collective alone on a network with nothing else on it [ns]; -1 when a
/// rank cannot be reached.
int64_t collective_time_ns(Topology& topology, const CollectivePlan& plan,
                           std::span<const int32_t> devices);

}  // namespace prony::sim
