#include "prony/sim/collective_plan.hpp"

#include <algorithm>

#include "prony/core/check.hpp"

namespace prony::sim {
namespace {

// Part i of n: all parts sum to bytes, whatever the remainder.
int64_t part(int64_t bytes, int32_t i, int32_t n) {
  const int64_t whole = bytes / n, rest = bytes % n;
  return whole + (i < rest ? 1 : 0);
}

class Builder {
 public:
  explicit Builder(int32_t ranks) { plan_.ranks = ranks; }

  int32_t add(int32_t from, int32_t to, int64_t bytes) {
    plan_.steps.push_back({from, to, bytes, 0});
    return static_cast<int32_t>(plan_.steps.size()) - 1;
  }
  /// `after` is sent when `before` is delivered; -1 is no step.
  void wait(int32_t after, int32_t before) {
    if (before < 0) return;
    edges_.push_back({before, after});
    ++plan_.steps[static_cast<size_t>(after)].waits;
  }
  CollectivePlan build() {
    plan_.first_next.assign(plan_.steps.size() + 1, 0);
    for (const Edge& edge : edges_) ++plan_.first_next[static_cast<size_t>(edge.before) + 1];
    for (size_t i = 0; i < plan_.steps.size(); ++i) plan_.first_next[i + 1] += plan_.first_next[i];
    plan_.next.resize(edges_.size());
    std::vector<int32_t> at(plan_.first_next.begin(), plan_.first_next.end() - 1);
    for (const Edge& edge : edges_) {
      plan_.next[static_cast<size_t>(at[static_cast<size_t>(edge.before)]++)] = edge.after;
    }
    return std::move(plan_);
  }

 private:
  struct Edge {
    int32_t before, after;
  };
  CollectivePlan plan_;
  std::vector<Edge> edges_;
};

// The last step that reached each rank and the last that it sent, between phases.
struct Ends {
  explicit Ends(int32_t ranks)
      : received(static_cast<size_t>(ranks), -1), sent(static_cast<size_t>(ranks), -1) {}
  std::vector<int32_t> received, sent;
};

// `rounds` rounds in which every member passes one of n parts on to the next member: n-1 rounds
// gather or scatter, 2(n-1) do both. A member sends when its last part has come and gone.
void ring(Builder& builder, std::span<const int32_t> members, int64_t bytes, int32_t rounds,
          Ends& ends) {
  const auto n = static_cast<int32_t>(members.size());
  for (int32_t round = 0; round < rounds; ++round) {
    const Ends before = ends;
    for (int32_t i = 0; i < n; ++i) {
      const int32_t from = members[static_cast<size_t>(i)];
      const int32_t to = members[static_cast<size_t>((i + 1) % n)];
      const int32_t chunk = ((i - round) % n + n) % n;
      const int32_t step = builder.add(from, to, part(bytes, chunk, n));
      builder.wait(step, before.received[static_cast<size_t>(from)]);
      builder.wait(step, before.sent[static_cast<size_t>(from)]);
      ends.sent[static_cast<size_t>(from)] = step;
      ends.received[static_cast<size_t>(to)] = step;
    }
  }
}

std::vector<int32_t> everyone(int32_t ranks) {
  std::vector<int32_t> members(static_cast<size_t>(ranks));
  for (int32_t i = 0; i < ranks; ++i) members[static_cast<size_t>(i)] = i;
  return members;
}

CollectivePlan one_ring(int32_t ranks, int64_t bytes, int32_t passes) {
  PRONY_CHECK(ranks >= 1 && bytes >= 0);
  Builder builder(ranks);
  Ends ends(ranks);
  ring(builder, everyone(ranks), bytes, passes * (ranks - 1), ends);
  return builder.build();
}

// One chunk up the tree whose node k is rank_of(k) and has the children 2k+1 and 2k+2, and down
// again. `up` and `down` hold, by node, the previous chunk's steps on the edge to the parent.
template <class RankOf>
void tree_chunk(Builder& builder, int32_t ranks, int64_t bytes, RankOf rank_of,
                std::vector<int32_t>& up, std::vector<int32_t>& down) {
  const auto children = [ranks](int32_t node) {
    std::vector<int32_t> found;
    for (int32_t child = 2 * node + 1; child <= 2 * node + 2 && child < ranks; ++child) {
      found.push_back(child);
    }
    return found;
  };
  for (int32_t node = ranks - 1; node > 0; --node) {
    const int32_t step = builder.add(rank_of(node), rank_of((node - 1) / 2), bytes);
    builder.wait(step, up[static_cast<size_t>(node)]);
    for (const int32_t child : children(node)) builder.wait(step, up[static_cast<size_t>(child)]);
    up[static_cast<size_t>(node)] = step;
  }
  for (int32_t node = 1; node < ranks; ++node) {
    const int32_t parent = (node - 1) / 2;
    const int32_t step = builder.add(rank_of(parent), rank_of(node), bytes);
    builder.wait(step, down[static_cast<size_t>(node)]);
    if (parent > 0) {
      builder.wait(step, down[static_cast<size_t>(parent)]);
    } else {
      for (const int32_t child : children(0)) builder.wait(step, up[static_cast<size_t>(child)]);
    }
    down[static_cast<size_t>(node)] = step;
  }
}

}  // namespace

std::span<const int32_t> CollectivePlan::waiting_for(int32_t step) const {
  const auto i = static_cast<size_t>(step);
  const auto first = static_cast<size_t>(first_next[i]);
  return std::span(next).subspan(first, static_cast<size_t>(first_next[i + 1]) - first);
}

int64_t CollectivePlan::bytes() const {
  int64_t sum = 0;
  for (const Step& step : steps) sum += step.bytes;
  return sum;
}

CollectivePlan ring_all_reduce(int32_t ranks, int64_t bytes) {
  return one_ring(ranks, bytes, 2);
}
CollectivePlan ring_reduce_scatter(int32_t ranks, int64_t bytes) {
  return one_ring(ranks, bytes, 1);
}
CollectivePlan ring_all_gather(int32_t ranks, int64_t bytes) {
  return one_ring(ranks, bytes, 1);
}

CollectivePlan tree_all_reduce(int32_t ranks, int64_t bytes, int32_t chunks) {
  PRONY_CHECK(ranks >= 1 && bytes >= 0 && chunks >= 1);
  Builder builder(ranks);
  for (int32_t tree = 0; tree < 2; ++tree) {
    const int64_t half = part(bytes, tree, 2);
    const auto rank_of = [ranks, tree](int32_t node) {
      return tree == 0 ? node : ranks - 1 - node;
    };
    std::vector<int32_t> up(static_cast<size_t>(ranks), -1), down = up;
    for (int32_t c = 0; c < chunks; ++c) {
      tree_chunk(builder, ranks, part(half, c, chunks), rank_of, up, down);
    }
  }
  return builder.build();
}

CollectivePlan hierarchical_all_reduce(int32_t ranks, int32_t local, int64_t bytes) {
  PRONY_CHECK(ranks >= 1 && local >= 1 && ranks % local == 0 && bytes >= 0);
  const int32_t servers = ranks / local;
  Builder builder(ranks);
  Ends ends(ranks);
  const auto inside = [&] {
    for (int32_t server = 0; server < servers; ++server) {
      std::vector<int32_t> members;
      for (int32_t i = 0; i < local; ++i) members.push_back(server * local + i);
      ring(builder, members, bytes, local - 1, ends);
    }
  };
  inside();
  for (int32_t i = 0; i < local; ++i) {
    std::vector<int32_t> members;
    for (int32_t server = 0; server < servers; ++server) members.push_back(server * local + i);
    // After local-1 rounds member i has the sum of part i+1.
    ring(builder, members, part(bytes, (i + 1) % local, local), 2 * (servers - 1), ends);
  }
  inside();
  return builder.build();
}

CollectivePlan pairwise_all_to_all(int32_t ranks, std::span<const int64_t> bytes) {
  PRONY_CHECK(ranks >= 1 &&
              bytes.size() == static_cast<size_t>(ranks) * static_cast<size_t>(ranks));
  Builder builder(ranks);
  Ends ends(ranks);
  for (int32_t round = 1; round < ranks; ++round) {
    const Ends before = ends;
    for (int32_t from = 0; from < ranks; ++from) {
      const int32_t to = (from + round) % ranks;
      const auto size =
          bytes[static_cast<size_t>(from) * static_cast<size_t>(ranks) + static_cast<size_t>(to)];
      const int32_t step = builder.add(from, to, size);
      builder.wait(step, before.received[static_cast<size_t>(from)]);
      builder.wait(step, before.sent[static_cast<size_t>(from)]);
      ends.sent[static_cast<size_t>(from)] = step;
      ends.received[static_cast<size_t>(to)] = step;
    }
  }
  return builder.build();
}

CollectivePlan pairwise_all_to_all(int32_t ranks, int64_t bytes) {
  PRONY_CHECK(ranks >= 1 && bytes >= 0);
  const auto n = static_cast<size_t>(ranks);
  std::vector<int64_t> sizes(n * n);
  for (size_t i = 0; i < n * n; ++i) sizes[i] = part(bytes, static_cast<int32_t>(i % n), ranks);
  return pairwise_all_to_all(ranks, sizes);
}

}  // namespace prony::sim
