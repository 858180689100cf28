#include "prony/sim/tenant_shares.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "prony/core/check.hpp"
#include "prony/core/math.hpp"

namespace prony::sim {
namespace {

constexpr double kLn2 = 0.693147180559945309417;

// 2^(-x)
double halved(double x) {
  return core::math::exp(-kLn2 * x);
}

int32_t parts(double share, int32_t of) {
  return static_cast<int32_t>(share * of + 0.5);
}

}  // namespace

Result<TenantShares> TenantShares::create(std::vector<TenantPolicy> tenants,
                                          const TenantSharesOptions& options) {
  if (tenants.empty()) return invalid_argument("tenants: found none, expected at least one");
  if (options.half_life_ns <= 0 || !(options.debt_half > 0)) {
    return invalid_argument(
        fmt::format("tenants: found a half-life of {} ns and a debt of {}, expected more than 0",
                    options.half_life_ns, options.debt_half));
  }
  int64_t promised = 0;
  for (size_t i = 0; i < tenants.size(); ++i) {
    const TenantPolicy& t = tenants[i];
    if (t.guaranteed < 0 || t.guaranteed > kWholeShare || t.burst < t.guaranteed ||
        t.burst > kWholeShare) {
      return invalid_argument(fmt::format(
          "tenant {}: found guaranteed {} and burst {}, expected 0 <= guaranteed <= burst <= {}",
          t.name, t.guaranteed, t.burst, kWholeShare));
    }
    if (t.priority < 1 || t.priority > 1000) {
      return invalid_argument(
          fmt::format("tenant {}: found priority {}, expected 1 to 1000", t.name, t.priority));
    }
    const auto same = [&t](const TenantPolicy& other) { return other.name == t.name; };
    if (std::any_of(tenants.begin(), tenants.begin() + static_cast<ptrdiff_t>(i), same)) {
      return invalid_argument(fmt::format("tenant {}: found twice, expected once", t.name));
    }
    promised += t.guaranteed;
    if (promised > kWholeShare) {
      return invalid_argument(
          fmt::format("tenant {}: guarantees up to it sum to {}, expected at most {}", t.name,
                      promised, kWholeShare));
    }
  }
  return TenantShares(std::move(tenants), options);
}

TenantShares::TenantShares(std::vector<TenantPolicy> tenants, const TenantSharesOptions& options)
    : tenants_(std::move(tenants)), options_(options), states_(tenants_.size()) {}

void TenantShares::set_demand(size_t tenant, int32_t share, int64_t now_ns) {
  PRONY_CHECK(tenant < states_.size() && share >= 0 && share <= kWholeShare);
  advance_to(now_ns);
  states_[tenant].demand = share;
  divide();
}

// Between two calls shares are constant: a debt d that grows by r a second and fades by half every
// h is r h/ln 2 + (d - r h/ln 2) 2^(-t/h), exactly.
void TenantShares::advance_to(int64_t now_ns) {
  PRONY_CHECK(now_ns >= now_ns_, "time went back");
  const double seconds = static_cast<double>(now_ns - now_ns_) * 1e-9;
  const double half_life_s = static_cast<double>(options_.half_life_ns) * 1e-9;
  const double kept = halved(seconds / half_life_s);
  for (size_t i = 0; i < states_.size(); ++i) {
    State& state = states_[i];
    const double above = std::max(0.0, state.share - tenants_[i].guaranteed) / kWholeShare;
    const double limit = above * half_life_s / kLn2;
    state.debt = limit + (state.debt - limit) * kept;
    state.used += state.share / kWholeShare * seconds;
  }
  now_ns_ = now_ns;
  divide();
}

// Guarantees first, then progressive filling of the rest: each round raises all that still want
// more in proportion to their weights until one has its bound or nothing is left.
void TenantShares::divide() {
  double left = kWholeShare;
  for (size_t i = 0; i < states_.size(); ++i) {
    State& state = states_[i];
    state.share = std::min(state.demand, tenants_[i].guaranteed);
    // However deep in debt, a weight stays above zero: idle shares are lent all the same.
    const double halvings = std::min(state.debt / options_.debt_half, 60.0);
    state.weight = tenants_[i].priority * halved(halvings);
    state.open = state.demand > tenants_[i].guaranteed && tenants_[i].burst > state.share;
    left -= state.share;
  }
  for (size_t round = 0; round < states_.size() && left > 0; ++round) {
    double weights = 0;
    for (const State& state : states_) weights += state.open ? state.weight : 0;
    if (weights <= 0) break;
    // The largest raise a unit of weight that takes nobody over its bound.
    double raise = left / weights;
    for (size_t i = 0; i < states_.size(); ++i) {
      const State& state = states_[i];
      const double bound = std::min(state.demand, tenants_[i].burst);
      if (state.open) raise = std::min(raise, (bound - state.share) / state.weight);
    }
    for (size_t i = 0; i < states_.size(); ++i) {
      State& state = states_[i];
      if (!state.open) continue;
      const double bound = std::min(state.demand, tenants_[i].burst);
      const double more = std::min(raise * state.weight, bound - state.share);
      state.share += more;
      left -= more;
      if (state.share >= bound * (1 - 1e-12)) state.open = false;
    }
  }
}

std::optional<double> jain_index(std::span<const double> x) {
  double sum = 0, squares = 0;
  for (const double value : x) {
    PRONY_CHECK(value >= 0);
    sum += value;
    squares += value * value;
  }
  if (squares == 0) return std::nullopt;
  return sum * sum / (static_cast<double>(x.size()) * squares);
}

SliceBook::SliceBook(const catalog::HardwareSpec& hardware)
    : id_(hardware.id), profiles_(hardware.slices) {}

Result<int32_t> SliceBook::take(const std::string& profile) {
  const auto found = std::find_if(profiles_.begin(), profiles_.end(),
                                  [&](const catalog::Slice& s) { return s.name == profile; });
  if (found == profiles_.end()) {
    std::vector<std::string> names;
    for (const catalog::Slice& slice : profiles_) names.push_back(slice.name);
    return invalid_argument(fmt::format("{}: found slice {}, expected {}", id_, profile,
                                        names.empty()
                                            ? std::string("none, it cannot be sliced")
                                            : fmt::format("one of {}", fmt::join(names, " "))));
  }
  const Slice slice{parts(found->compute, 7), parts(found->memory, 8), true};
  if (slice.compute > compute_left_ || slice.memory > memory_left_) {
    return failed(fmt::format(
        "{}: slice {} takes {} of 7 compute and {} of 8 memory parts, {} and {} are left", id_,
        profile, slice.compute, slice.memory, compute_left_, memory_left_));
  }
  compute_left_ -= slice.compute;
  memory_left_ -= slice.memory;
  const auto free =
      std::find_if(slices_.begin(), slices_.end(), [](const Slice& s) { return !s.out; });
  const auto at = static_cast<int32_t>(free - slices_.begin());
  if (free == slices_.end()) {
    slices_.push_back(slice);
  } else {
    *free = slice;
  }
  return at;
}

void SliceBook::give_back(int32_t slice) {
  PRONY_CHECK(slice >= 0 && slice < static_cast<int32_t>(slices_.size()));
  Slice& back = slices_[static_cast<size_t>(slice)];
  PRONY_CHECK(back.out, "a slice given back twice");
  back.out = false;
  compute_left_ += back.compute;
  memory_left_ += back.memory;
}

}  // namespace prony::sim
