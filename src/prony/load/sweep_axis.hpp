// SweepAxis: one axis of a sweep as `--sweep NAME=VALUES` gives it. Values are numbers in the order
// they are written, or named servers:
//   concurrency=1,2,4        a list
//   concurrency=1:128:x2     1, 2, 4, ... up to 128 (also 1-128*2)
//   input-len=128:512:128    128, 256, 384, 512
//   target=fp16=URL,int4=cmd:COMMAND   a server by its URL, or by the command that starts it
// Pieces of a list may be ranges. A comma ends a target only where another NAME=URL or NAME=cmd:
// follows, so that a command may contain commas.
// Thread safety: values and pure functions.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"

namespace prony::load {

inline constexpr const char* kTargetAxis = "target";
inline constexpr size_t kAxisValuesMax = 10'000;

struct SweepTarget {
  std::string name;
  std::string url, command;  // exactly one is set
  bool operator==(const SweepTarget&) const = default;
};

struct SweepAxis {
  std::string name;                  // as given: "concurrency"
  std::vector<std::string> values;   // as a flag takes them; names of targets
  std::vector<SweepTarget> targets;  // beside values, for the axis `target` only
  bool is_target() const { return !targets.empty(); }
  bool operator==(const SweepAxis&) const = default;
};

/// Error: kInvalidArgument, "--sweep concurrency=...: ..." with what was found and expected.
Result<SweepAxis> parse_sweep_axis(std::string_view text);

/// A value of an axis as a number, nullopt for names and `inf`.
std::optional<double> axis_number(std::string_view value);

}  // namespace prony::load
