// Arrivals: the instants at which requests are *meant* to start. Open loop: they depend on the
// options alone and never on answers, so a slow server cannot thin out its own load.
// Gaps are independent: constant, exponential (Poisson), or gamma with vLLM's burstiness b as shape
// and mean 1/rate, so their coefficient of variation is 1/sqrt(b): b < 1 is bursty, b > 1 regular.
// The first arrival is one gap after 0; only the returned instants are rounded, never the sum, so
// the rate has no bias. (vLLM also stretches each draw so that the last arrival falls on n/rate;
// we do not, because that makes the gaps dependent.)
// A rate that changes with time goes through a RateCurve, one that changes with the number of the
// request (vLLM's ramp) divides each gap by the rate of its request.
// Thread safety: none; one per schedule. Source: docs/workloads.md.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "prony/core/result.hpp"
#include "prony/core/rng.hpp"
#include "prony/workload/rate_curve.hpp"
#include "prony/workload/trace.hpp"

namespace prony::workload {

enum class ArrivalKind {
  kConstant,
  kPoisson,
  kGamma,
  kTrace,
  kAtOnce,  // rate inf: everything at 0
};

/// vLLM's --ramp-up-*: the rate of request i of n is start + (end - start) i / (n - 1), or start
/// (end / start)^(i / (n - 1)).
struct IndexRamp {
  double start_per_s = 1, end_per_s = 1;  // > 0
  bool exponential = false;
  int64_t count = 0;  // n, > 0
  double rate(int64_t index) const;
};

struct ArrivalOptions {
  ArrivalKind kind = ArrivalKind::kPoisson;
  double rate_per_s = 1;  // constant, Poisson, gamma: mean rate, > 0 and finite
  double burstiness = 1;  // gamma: shape, > 0
  // Instead of rate_per_s, for constant, Poisson and gamma; at most one of them.
  std::shared_ptr<const RateCurve> curve;
  std::optional<IndexRamp> ramp;

  // Trace only.
  std::shared_ptr<const Trace> trace;
  int64_t window_start_ns = 0;   // of the trace's own time; rows before are left out
  int64_t window_length_ns = 0;  // 0: to the end
  double time_scale = 1;         // instants are multiplied by it: 0.5 doubles the rate
};

/// The flags --request-rate (a number > 0 or "inf") and --burstiness as vLLM means them: burstiness
/// 1 is Poisson. Error: kInvalidArgument naming the flag.
Result<ArrivalOptions> arrivals_from_flags(std::string_view request_rate, double burstiness = 1);

/// "Poisson arrivals at 4 requests/s".
std::string describe(const ArrivalOptions& options);

/// Draws the instants of the kinds with a rate; a trace has its own.
class ArrivalProcess {
 public:
  /// Error: kInvalidArgument if a number is out of range or the kind is kTrace.
  static Result<ArrivalProcess> create(const ArrivalOptions& options, core::Rng rng);

  /// Next intended start [ns since the start of the run], never falling; kNeverNs where a curve
  /// has ended.
  int64_t next_ns();
  static constexpr int64_t kNeverNs = int64_t{1} << 62;

 private:
  ArrivalProcess(const ArrivalOptions& options, core::Rng rng);
  double unit_gap();
  ArrivalKind kind_;
  double gap_ns_;
  double burstiness_;
  core::Rng rng_;
  std::shared_ptr<const RateCurve> curve_;
  std::optional<IndexRamp> ramp_;
  int64_t drawn_ = 0;
  double events_ = 0;  // of the process of rate 1 behind a curve
  double sum_ns_ = 0;  // below 2^53 ns (104 days) doubles are at most 1 ns apart
};

}  // namespace prony::workload
