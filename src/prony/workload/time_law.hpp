// TimeLaw: how long a user thinks between two turns of a conversation. Drawn by inversion, one
// uniform number a draw, with portable math. Thread safety: immutable; sample_ns() any thread (the
// Rng is the caller's).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "prony/core/result.hpp"
#include "prony/core/rng.hpp"

namespace prony::workload {

class TimeLaw {
 public:
  /// In seconds: "2", "uniform:LOW,HIGH", "exponential:MEAN", "lognormal:MEDIAN,SIGMA".
  /// Error: kInvalidArgument naming `flag`.
  static Result<TimeLaw> parse(std::string_view text, std::string_view flag);

  int64_t sample_ns(core::Rng& rng) const;
  /// As it was given.
  const std::string& describe() const { return text_; }

 private:
  enum class Kind { kConstant, kUniform, kExponential, kLognormal };
  TimeLaw(Kind kind, double a, double b, std::string_view text)
      : kind_(kind), a_(a), b_(b), text_(text) {}
  Kind kind_;
  double a_, b_;  // seconds; low, high; mean; median, sigma
  std::string text_;
};

}  // namespace prony::workload
