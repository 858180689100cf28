#include "prony/sim/placement.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "prony/core/check.hpp"
#include "prony/core/rng.hpp"

namespace prony::sim {
namespace {

constexpr int16_t kUnreachableHops = 1000;
constexpr int32_t kStartsMax = 256;  // devices from which a group tries to grow
constexpr int32_t kPassesMax = 32;   // of exchanges inside a group

// The free devices that are nearest to one another, grown from each of some starts: the device
// with the least sum of hops to those chosen comes next.
std::vector<int32_t> grow(const HopMatrix& hops, const std::vector<bool>& taken, int32_t size) {
  const int32_t devices = hops.devices();
  std::vector<int32_t> best, chosen;
  int64_t best_sum = std::numeric_limits<int64_t>::max();
  const int32_t stride = std::max(1, devices / kStartsMax);
  std::vector<int64_t> sums(static_cast<size_t>(devices));
  std::vector<bool> used;
  for (int32_t offset = 0; offset < stride && best.empty(); ++offset) {
    for (int32_t start = offset; start < devices; start += stride) {
      if (taken[static_cast<size_t>(start)]) continue;
      used = taken;
      chosen.clear();
      std::fill(sums.begin(), sums.end(), 0);
      int64_t sum = 0;
      for (int32_t next = start; next >= 0 && sum < best_sum;) {
        sum += sums[static_cast<size_t>(next)];
        chosen.push_back(next);
        used[static_cast<size_t>(next)] = true;
        if (static_cast<int32_t>(chosen.size()) == size) break;
        const int32_t added = next;
        next = -1;
        for (int32_t d = 0; d < devices; ++d) {
          const auto at = static_cast<size_t>(d);
          sums[at] += hops(added, d);
          if (!used[at] && (next < 0 || sums[at] < sums[static_cast<size_t>(next)])) next = d;
        }
      }
      if (static_cast<int32_t>(chosen.size()) == size && sum < best_sum) {
        best_sum = sum;
        best = chosen;
      }
    }
  }
  return best;
}

// Boxes of `size` devices that fit the grid, the most compact first.
std::vector<std::vector<int32_t>> boxes(const Grid& grid, int32_t size) {
  std::vector<std::vector<int32_t>> found;
  const size_t dimensions = grid.extents.size();
  for (int32_t x = 1; x <= std::min(size, grid.extents[0]); ++x) {
    if (size % x != 0) continue;
    for (int32_t y = 1; y <= std::min(size / x, grid.extents[1]); ++y) {
      if (size / x % y != 0) continue;
      const int32_t z = size / x / y;
      if (dimensions == 2 ? z != 1 : z > grid.extents[2]) continue;
      found.push_back(dimensions == 2 ? std::vector{x, y} : std::vector{x, y, z});
    }
  }
  const auto spread = [](const std::vector<int32_t>& box) {
    return std::accumulate(box.begin(), box.end(), 0);
  };
  // Boxes that divide the grid leave no slivers, so of equally compact ones they come first.
  const auto slivers = [&grid](const std::vector<int32_t>& box) {
    int32_t count = 0;
    for (size_t d = 0; d < box.size(); ++d) count += grid.extents[d] % box[d] != 0;
    return count;
  };
  std::stable_sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
    return std::pair(spread(a), slivers(a)) < std::pair(spread(b), slivers(b));
  });
  return found;
}

// The devices of a box so that each is a neighbour of the next and, where the box allows, the last
// of the first. One axis is kept as columns; the others are walked as one path of rows, to and fro.
// With an even number of rows column 0 is the way back and the rest is filled row by row.
std::vector<int32_t> walk(const Grid& grid, const std::vector<int32_t>& box,
                          const std::vector<int32_t>& origin) {
  const size_t dimensions = box.size();
  const auto volume = std::accumulate(box.begin(), box.end(), 1, std::multiplies<>());
  size_t column = 0;
  for (size_t d = 0; d < dimensions; ++d) {
    if (box[d] >= 2 && volume / box[d] % 2 == 0) column = d;
  }
  const size_t inner = column == 0 ? 1 : 0, outer = 3 - column - inner;
  const int32_t depth = dimensions > 2 ? box[outer] : 1;
  const int32_t columns = box[column], rows = box[inner] * depth;
  const auto device_at = [&](int32_t c, int32_t row) {
    const int32_t o = row / box[inner], i = row % box[inner];
    std::vector<int32_t> at = origin;
    at[column] += c;
    at[inner] += o % 2 == 0 ? i : box[inner] - 1 - i;
    if (dimensions > 2) at[outer] += o;
    int32_t device = 0;
    for (size_t d = dimensions; d-- > 0;) device = device * grid.extents[d] + at[d];
    return device;
  };
  const bool closes = columns >= 2 && rows % 2 == 0;
  const int32_t from = closes ? 1 : 0;
  std::vector<int32_t> devices;
  for (int32_t row = 0; row < rows; ++row) {
    for (int32_t c = from; c < columns; ++c) {
      devices.push_back(device_at(row % 2 == 0 ? c : columns - 1 - c + from, row));
    }
  }
  for (int32_t row = rows; closes && row-- > 0;) devices.push_back(device_at(0, row));
  return devices;
}

std::vector<int32_t> free_box(const Grid& grid, const std::vector<bool>& taken, int32_t size) {
  for (const auto& box : boxes(grid, size)) {
    std::vector<int32_t> origin(box.size(), 0);
    for (bool more = true; more;) {
      const auto devices = walk(grid, box, origin);
      const bool free = std::none_of(devices.begin(), devices.end(), [&taken](int32_t device) {
        return taken[static_cast<size_t>(device)];
      });
      if (free) return devices;
      more = false;
      for (size_t d = 0; d < box.size() && !more; ++d) {
        origin[d] += box[d];
        more = origin[d] + box[d] <= grid.extents[d];
        if (!more) origin[d] = 0;
      }
    }
  }
  return {};
}

// Exchanges two devices of the group as long as that brings its own traffic nearer.
void order_ranks(const HopMatrix& hops, std::span<const PairTraffic> traffic, int32_t first,
                 std::vector<int32_t>& devices) {
  const auto size = static_cast<int32_t>(devices.size());
  std::vector<std::vector<PairTraffic>> of(devices.size());  // by rank in the group
  for (const PairTraffic& pair : traffic) {
    const int32_t a = pair.from - first, b = pair.to - first;
    if (a < 0 || a >= size || b < 0 || b >= size || a == b) continue;
    of[static_cast<size_t>(a)].push_back({a, b, pair.bytes});
    of[static_cast<size_t>(b)].push_back({b, a, pair.bytes});
  }
  const auto cost = [&](int32_t rank) {
    double sum = 0;
    for (const PairTraffic& pair : of[static_cast<size_t>(rank)]) {
      sum += static_cast<double>(pair.bytes) *
             hops(devices[static_cast<size_t>(pair.from)], devices[static_cast<size_t>(pair.to)]);
    }
    return sum;
  };
  bool better = true;
  for (int32_t pass = 0; better && pass < kPassesMax; ++pass) {
    better = false;
    for (int32_t a = 0; a < size; ++a) {
      for (int32_t b = a + 1; b < size; ++b) {
        const double before = cost(a) + cost(b);
        std::swap(devices[static_cast<size_t>(a)], devices[static_cast<size_t>(b)]);
        if (cost(a) + cost(b) < before * (1 - 1e-12)) {
          better = true;
        } else {
          std::swap(devices[static_cast<size_t>(a)], devices[static_cast<size_t>(b)]);
        }
      }
    }
  }
}

}  // namespace

HopMatrix::HopMatrix(Routes& routes, const Topology& topology)
    : devices_(static_cast<size_t>(topology.device_count())) {
  PRONY_CHECK(devices_ <= 8192);
  hops_.resize(devices_ * devices_);
  for (int32_t to = 0; to < topology.device_count(); ++to) {
    for (int32_t from = 0; from < topology.device_count(); ++from) {
      const int32_t hops = routes.hops(from, to);
      hops_[static_cast<size_t>(from) * devices_ + static_cast<size_t>(to)] =
          hops < 0 ? kUnreachableHops : static_cast<int16_t>(std::min<int32_t>(hops, 999));
    }
  }
}

Placement place_packed(int32_t ranks, int32_t devices) {
  PRONY_CHECK(ranks <= devices);
  Placement placement(static_cast<size_t>(ranks));
  std::iota(placement.begin(), placement.end(), 0);
  return placement;
}

Placement place_random(int32_t ranks, int32_t devices, uint64_t seed) {
  PRONY_CHECK(ranks <= devices);
  Placement all = place_packed(devices, devices);
  core::Rng rng(seed);
  for (size_t i = 0; i < static_cast<size_t>(ranks); ++i) {  // Fisher & Yates, the first `ranks`
    std::swap(all[i], all[i + rng.below(all.size() - i)]);
  }
  all.resize(static_cast<size_t>(ranks));
  return all;
}

Placement place_hop_aware(const Topology& topology, const HopMatrix& hops,
                          std::span<const int32_t> group_sizes,
                          std::span<const PairTraffic> traffic) {
  std::vector<bool> taken(static_cast<size_t>(hops.devices()), false);
  Placement placement;
  for (const int32_t size : group_sizes) {
    PRONY_CHECK(size >= 1);
    std::vector<int32_t> devices;
    if (!topology.grid().empty()) devices = free_box(topology.grid(), taken, size);
    if (devices.empty()) devices = grow(hops, taken, size);
    PRONY_CHECK(static_cast<int32_t>(devices.size()) == size, "more ranks than devices");
    order_ranks(hops, traffic, static_cast<int32_t>(placement.size()), devices);
    for (const int32_t device : devices) taken[static_cast<size_t>(device)] = true;
    placement.insert(placement.end(), devices.begin(), devices.end());
  }
  return placement;
}

std::optional<double> share_within(const HopMatrix& hops, const Placement& placement,
                                   std::span<const PairTraffic> traffic, int32_t limit) {
  double near = 0, all = 0;
  for (const PairTraffic& pair : traffic) {
    const auto bytes = static_cast<double>(pair.bytes);
    const int32_t apart =
        hops(placement[static_cast<size_t>(pair.from)], placement[static_cast<size_t>(pair.to)]);
    all += bytes;
    if (apart <= limit) near += bytes;
  }
  if (all == 0) return std::nullopt;
  return near / all;
}

std::optional<double> mean_hops(const HopMatrix& hops, const Placement& placement,
                                std::span<const PairTraffic> traffic) {
  double sum = 0, all = 0;
  for (const PairTraffic& pair : traffic) {
    const auto bytes = static_cast<double>(pair.bytes);
    all += bytes;
    sum += bytes *
           hops(placement[static_cast<size_t>(pair.from)], placement[static_cast<size_t>(pair.to)]);
  }
  if (all == 0) return std::nullopt;
  return sum / all;
}

void add_ring_traffic(int32_t first, int32_t size, int64_t bytes, std::vector<PairTraffic>& out) {
  if (size < 2) return;
  const int64_t each = 2 * (size - 1) * bytes / size;
  for (int32_t i = 0; i < size; ++i) out.push_back({first + i, first + (i + 1) % size, each});
}

void add_all_to_all_traffic(int32_t first, int32_t size, int64_t bytes,
                            std::vector<PairTraffic>& out) {
  for (int32_t a = 0; a < size; ++a) {
    for (int32_t b = 0; b < size; ++b) {
      if (a != b) out.push_back({first + a, first + b, bytes / size});
    }
  }
}

}  // namespace prony::sim
