// RateCurve: a request rate that changes with time, as pieces that are constant, linear or
// exponential, once or again and again. Arrivals are made from it by time rescaling: a process of
// rate 1 is drawn and its instants are sent through the inverse of the expected count, so a Poisson
// process becomes the inhomogeneous one, and gaps of gamma or constant law keep their burstiness in
// "events expected" instead of seconds.
// Source: Cox & Lewis, The Statistical Analysis of Series of Events, 1966, 2.4 (rescaling).
// Portable: core math only. Thread safety: immutable; any thread.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"

namespace prony::workload {

struct RatePiece {
  double duration_s = 0;                  // > 0
  double start_per_s = 0, end_per_s = 0;  // >= 0
  bool exponential = false;               // between start and end, both then > 0; else linear
};

class RateCurve {
 public:
  /// Error: kInvalidArgument if a number is out of range or no piece has a rate.
  static Result<RateCurve> create(std::vector<RatePiece> pieces, bool repeats, std::string name);

  /// --on-off "ON,OFF" [s]: `rate_per_s` for ON seconds, nothing for OFF, and again.
  static Result<RateCurve> on_off(double rate_per_s, std::string_view on_off);
  /// --stages "4@60s,8@60s": 4/s for 60 s, then 8/s; "4-8@60s" rises from 4 to 8. Times end in ms,
  /// s (or nothing), m or h.
  static Result<RateCurve> stages(std::string_view text);
  /// --diurnal "PERIOD,SWING": `mean_per_s` (1 - SWING cos(2 pi t / PERIOD)) with SWING in 0..1:
  /// the run starts in the valley. PERIOD as the times of stages. 96 straight lines a period.
  static Result<RateCurve> diurnal(double mean_per_s, std::string_view text);
  /// From `start` to `end` over `duration_s`; "linear" or "exponential" in time.
  static Result<RateCurve> ramp(double start_per_s, double end_per_s, double duration_s,
                                std::string_view strategy);

  double rate(double t_s) const;
  /// Events expected until `t_s`.
  double expected(double t_s) const;
  /// The instant [s] until which `events` > 0 are expected; infinite after the end.
  double instant(double events) const;
  /// Of one period.
  double duration_s() const { return start_s_.back(); }
  bool repeats() const { return repeats_; }
  /// Pieces of one period, and the one (from 0) that `t_s` >= 0 falls into: the last after the end.
  size_t size() const { return pieces_.size(); }
  size_t piece_at(double t_s) const;
  /// Mean over one period.
  double mean_per_s() const { return start_events_.back() / start_s_.back(); }
  /// "stages 4@60s,8@60s"; name() is its first word.
  const std::string& describe() const { return text_; }
  std::string name() const { return text_.substr(0, text_.find(' ')); }

 private:
  RateCurve() = default;
  size_t piece_of(double t_s) const;  // within one period
  std::vector<RatePiece> pieces_;
  std::vector<double> start_s_, start_events_;  // of each piece, and of the end
  bool repeats_ = false;
  std::string text_;
};

/// "250ms", "90", "90s", "5m", "24h" in seconds; nullopt-like error naming `flag` otherwise.
Result<double> parse_seconds(std::string_view text, std::string_view flag);

/// A portable cosine of `turns` * 2 pi, |error| < 1e-15.
double cos_turns(double turns);

}  // namespace prony::workload
