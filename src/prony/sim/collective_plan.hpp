// CollectivePlan: a collective as messages between ranks with what each must wait for; the network
// gives it time on real paths. Sizes split exactly: the parts of M bytes over n sum to M.
// Source: ring and pairwise exchange in Thakur, Rabenseifner & Gropp, "Optimization of collective
// communication operations in MPICH", IJHPCA 19(1), 2005; two binary trees with exchanged roles in
// Sanders, Speck & Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
// Parallel Computing 35(12), 2009.
// Closed forms, a the latency of a message and b the bandwidth of a rank, idle network:
//   ring all-reduce 2(n-1)(a + M/(n b)), reduce-scatter and all-gather half of it,
//   pairwise all-to-all (n-1)(a + M/(n b)), trees about 2 log2(n) a + 2M/b with many chunks.
// Thread safety: values and pure functions.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace prony::sim {

struct CollectivePlan {
  struct Step {
    int32_t from = 0, to = 0;  // ranks
    int64_t bytes = 0;
    int32_t waits = 0;  // steps that must be delivered before this one is sent
  };
  int32_t ranks = 0;
  std::vector<Step> steps;
  std::vector<int32_t> first_next;  // [steps + 1]; steps that wait for i: next[first_next[i] ...]
  std::vector<int32_t> next;

  std::span<const int32_t> waiting_for(int32_t step) const;
  int64_t bytes() const;  // sum over the steps
};

/// Sum of `bytes` over the ranks, everywhere. Requires ranks >= 1, bytes >= 0 (checked), as below.
CollectivePlan ring_all_reduce(int32_t ranks, int64_t bytes);
/// Every rank ends with its part of the sum of `bytes`.
CollectivePlan ring_reduce_scatter(int32_t ranks, int64_t bytes);
/// Every rank ends with all `bytes`, of which it had its part.
CollectivePlan ring_all_gather(int32_t ranks, int64_t bytes);
/// Two binary trees, half of the bytes each, in `chunks` that follow one another up and down.
CollectivePlan tree_all_reduce(int32_t ranks, int64_t bytes, int32_t chunks);
/// Ranks n x local .. of server n: reduce-scatter in each server, all-reduce of each part over the
/// servers, all-gather in each server. Requires local to divide ranks (checked).
CollectivePlan hierarchical_all_reduce(int32_t ranks, int32_t local, int64_t bytes);
/// Rank i sends bytes/ranks to every other, in ranks-1 rounds of one message each way.
CollectivePlan pairwise_all_to_all(int32_t ranks, int64_t bytes);
/// The same with bytes[from x ranks + to], as tokens routed to experts give it.
CollectivePlan pairwise_all_to_all(int32_t ranks, std::span<const int64_t> bytes);

}  // namespace prony::sim
