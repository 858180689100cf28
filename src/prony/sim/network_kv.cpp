#include "prony/sim/network_kv.hpp"

#include <algorithm>

#include "prony/core/check.hpp"

namespace prony::sim {
namespace {

// Where share i of n begins; exact for any size.
int64_t bound(int64_t bytes, int32_t i, int32_t n) {
  return static_cast<int64_t>(NanoBytes{bytes} * i / n);
}

}  // namespace

void split_kv(int32_t prefill_ranks, int32_t decode_ranks, int64_t bytes,
              std::vector<KvShare>& out) {
  PRONY_CHECK(prefill_ranks >= 1 && decode_ranks >= 1 && bytes >= 0);
  for (int32_t from = 0, to = 0; from < prefill_ranks && to < decode_ranks;) {
    const int64_t from_end = bound(bytes, from + 1, prefill_ranks);
    const int64_t to_end = bound(bytes, to + 1, decode_ranks);
    const int64_t begin =
        std::max(bound(bytes, from, prefill_ranks), bound(bytes, to, decode_ranks));
    const int64_t end = std::min(from_end, to_end);
    if (end > begin) out.push_back({from, to, end - begin});
    if (from_end <= to_end) ++from;
    if (to_end <= from_end) ++to;
  }
}

bool KvTransfers::active(KvId id) const {
  return id.slot < requests_.size() && requests_[id.slot].used &&
         requests_[id.slot].generation == id.generation;
}

KvTransfers::Request& KvTransfers::request_of(KvId id) {
  PRONY_CHECK(active(id), "a KV transfer that has ended");
  return requests_[id.slot];
}

KvId KvTransfers::open(std::span<const int32_t> prefill, std::span<const int32_t> decode,
                       uint32_t weight, uint64_t tag, KvSink* sink) {
  PRONY_CHECK(!prefill.empty() && !decode.empty() && sink);
  uint32_t slot;
  if (free_.empty()) {
    slot = static_cast<uint32_t>(requests_.size());
    requests_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  Request& request = requests_[slot];
  request.prefill.assign(prefill.begin(), prefill.end());
  request.decode.assign(decode.begin(), decode.end());
  request.sent.clear();
  request.tag = tag;
  request.sink = sink;
  request.weight = weight;
  request.outstanding = 0;
  request.used = true;
  request.closed = false;
  ++active_;
  return {slot, request.generation};
}

void KvTransfers::send_message(uint32_t slot, int32_t from, int32_t to, int64_t bytes) {
  Request& request = requests_[slot];
  const uint64_t salt = (static_cast<uint64_t>(from) << 32) ^ static_cast<uint64_t>(to);
  const uint64_t tag = (static_cast<uint64_t>(request.generation) << 32) | slot;
  ++request.outstanding;
  request.sent.push_back(network_.send({.from = from,
                                        .to = to,
                                        .bytes = bytes,
                                        .weight = request.weight,
                                        .salt = salt,
                                        .tag = tag,
                                        .sink = this}));
}

void KvTransfers::push(KvId id, int64_t bytes) {
  const Request& request = request_of(id);
  PRONY_CHECK(!request.closed, "push after close");
  shares_.clear();
  split_kv(static_cast<int32_t>(request.prefill.size()),
           static_cast<int32_t>(request.decode.size()), bytes, shares_);
  for (const KvShare& share : shares_) {
    send_message(id.slot, request.prefill[static_cast<size_t>(share.from)],
                 request.decode[static_cast<size_t>(share.to)], share.bytes);
  }
}

void KvTransfers::close(KvId id) {
  Request& request = request_of(id);
  PRONY_CHECK(!request.closed, "closed twice");
  request.closed = true;
  // All has arrived already: an empty message to itself brings the news, so that a sink is never
  // called from within a call of its owner.
  if (request.outstanding == 0) {
    send_message(id.slot, request.decode.front(), request.decode.front(), 0);
  }
}

KvId KvTransfers::send(std::span<const int32_t> prefill, std::span<const int32_t> decode,
                       int64_t bytes, uint32_t weight, uint64_t tag, KvSink* sink) {
  const KvId id = open(prefill, decode, weight, tag, sink);
  push(id, bytes);
  close(id);
  return id;
}

void KvTransfers::cancel(KvId id) {
  for (const TransferId message : request_of(id).sent) {
    if (network_.pending(message)) network_.cancel(message);
  }
  release(id.slot);
}

void KvTransfers::release(uint32_t slot) {
  Request& request = requests_[slot];
  request.used = false;
  ++request.generation;
  free_.push_back(slot);
  --active_;
}

void KvTransfers::on_delivered(uint64_t tag, int64_t now_ns) {
  const auto slot = static_cast<uint32_t>(tag & 0xFFFFFFFF);
  Request& request = requests_[slot];
  if (--request.outstanding > 0 || !request.closed) return;
  KvSink* sink = request.sink;
  const uint64_t own = request.tag;
  release(slot);
  sink->on_kv_done(own, now_ns);
}

void KvTransfers::on_lost(uint64_t tag, int64_t now_ns) {
  const auto slot = static_cast<uint32_t>(tag & 0xFFFFFFFF);
  const Request& request = requests_[slot];
  KvSink* sink = request.sink;
  const uint64_t own = request.tag;
  cancel({slot, request.generation});
  sink->on_kv_failed(own, now_ns);
}

}  // namespace prony::sim
