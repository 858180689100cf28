// TenantShares: how much of a device (or of several) each tenant may use now: a guaranteed share at
// any time, more when others leave theirs idle (burst, up to a bound), and less of that the more it
// has used lately (decay). Shares are in thousandths of the whole, times in ns; pure state machine.
//   entitled(t) = min(demand, guaranteed) first; what is then left of the whole goes to tenants
//   with demand above their guarantee, max-min by priority weight x 2^(-debt / debt_half), up to
//   burst. debt is the use above the guarantee, forgotten by half every `half_life_ns`.
// Also SliceBook: MIG slices of one device handed out and taken back, by their sevenths of compute
// and eighths of memory, and Jain's index of fairness.
// Source: R. Jain, D. Chiu, W. Hawe, "A quantitative measure of fairness", DEC TR-301, 1984.
// Thread safety: none.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "prony/catalog/hardware_spec.hpp"
#include "prony/core/result.hpp"

namespace prony::sim {

inline constexpr int32_t kWholeShare = 1000;  // thousandths

struct TenantPolicy {
  std::string name;
  int32_t guaranteed = 0;       // of kWholeShare, always there for it
  int32_t burst = kWholeShare;  // the most it may use, >= guaranteed
  int32_t priority = 1;         // weight among those that want more, 1 .. 1000
};

struct TenantSharesOptions {
  int64_t half_life_ns = 60'000'000'000;
  double debt_half = 30;  // share-seconds (whole devices x s) of debt that halve a weight
};

class TenantShares {
 public:
  /// Error: kInvalidArgument, naming the tenant: guarantees beyond the whole, burst below the
  /// guarantee, a priority out of range, a name twice, no tenants.
  static Result<TenantShares> create(std::vector<TenantPolicy> tenants,
                                     const TenantSharesOptions& options = {});

  /// What a tenant would use if it could, 0 .. kWholeShare. Requires now_ns not to go back
  /// (checked), as below. Shares are new after it.
  void set_demand(size_t tenant, int32_t share, int64_t now_ns);
  /// Lets debts grow and fade to now; shares are new after it. Call it every so often.
  void advance_to(int64_t now_ns);

  /// Thousandths of the whole that the tenant uses now, with fractions.
  double share(size_t tenant) const { return states_[tenant].share; }
  /// Use above the guarantee that is not yet forgotten [whole devices x s].
  double debt_s(size_t tenant) const { return states_[tenant].debt; }
  /// All that it has used [whole devices x s].
  double used_s(size_t tenant) const { return states_[tenant].used; }
  const TenantPolicy& policy(size_t tenant) const { return tenants_[tenant]; }
  size_t size() const { return tenants_.size(); }

 private:
  TenantShares(std::vector<TenantPolicy> tenants, const TenantSharesOptions& options);
  void divide();

  struct State {
    int32_t demand = 0;
    double share = 0, debt = 0, used = 0, weight = 1;
    bool open = false;
  };
  std::vector<TenantPolicy> tenants_;
  TenantSharesOptions options_;
  std::vector<State> states_;
  int64_t now_ns_ = 0;
};

/// (sum x)^2 / (n sum x^2): 1 when all have the same, 1/n when one has all. nullopt when nobody has
/// anything. Requires x >= 0 (checked).
std::optional<double> jain_index(std::span<const double> x);

/// The slices of one device that are handed out.
class SliceBook {
 public:
  /// `hardware` with its list of slices (catalogue); none: the device cannot be sliced.
  explicit SliceBook(const catalog::HardwareSpec& hardware);
  /// Hands out a slice by its profile's name. Error: kInvalidArgument for a profile that the device
  /// has not, kFailed when it does not fit beside the others, saying what is left.
  Result<int32_t> take(const std::string& profile);
  /// Requires a slice that take() gave and that is not back yet (checked).
  void give_back(int32_t slice);
  int32_t compute_left() const { return compute_left_; }  // sevenths
  int32_t memory_left() const { return memory_left_; }    // eighths

 private:
  struct Slice {
    int32_t compute = 0, memory = 0;
    bool out = false;
  };
  std::string id_;
  std::vector<catalog::Slice> profiles_;
  std::vector<Slice> slices_;
  int32_t compute_left_ = 7, memory_left_ = 8;
};

}  // namespace prony::sim
