// The Philox streams of this module: one number for each use of randomness, so that a change in one
// use never moves another. Numbers are part of the format: a new use gets a new one, none is
// reused.
// Thread safety: constants.
#pragma once
#include <cstdint>

namespace prony::workload {

inline constexpr uint64_t kArrivalStream = 1;
inline constexpr uint64_t kInputLengthStream = 2;
inline constexpr uint64_t kOutputLengthStream = 3;
inline constexpr uint64_t kTraceRowStream = 4;
inline constexpr uint64_t kPrefixGroupStream = 5;
inline constexpr uint64_t kTurnsStream = 6;
inline constexpr uint64_t kThinkStream = 7;
inline constexpr uint64_t kPairKdeStream = 8;
/// ServeGen's client c draws its arrivals from (kClientArrivalStream << 32 | c), its lengths from
/// the other.
inline constexpr uint64_t kClientArrivalStream = 9;
inline constexpr uint64_t kClientLengthStream = 10;

// Prompts draw from a seed of their own (prompt_builder.cpp) and there from (domain, index).
inline constexpr uint64_t kMeasuredPromptDomain = 1;
inline constexpr uint64_t kWarmUpPromptDomain = 2;
inline constexpr uint64_t kSharedPrefixDomain = 3;
inline constexpr uint64_t kBlockDomain = 4;
inline constexpr uint64_t kAnswerDomain = 5;

}  // namespace prony::workload
