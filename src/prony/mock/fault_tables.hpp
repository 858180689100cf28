// The parts of a plan that a fault may decide, and the three tables that faults.cpp joins. Private
// to mock. Thread safety: functions any thread.
#pragma once
#include <cstdint>
#include <span>

#include "prony/mock/faults.hpp"

namespace prony::mock {

enum Part : uint64_t {
  kRole = 1 << 0,
  kChunks = 1 << 1,
  kChannel = 1 << 2,
  kText = 1 << 3,
  kLength = 1 << 4,
  kUsage = 1 << 5,
  kFinish = 1 << 6,
  kDone = 1 << 7,
  kCut = 1 << 8,
  kHead = 1 << 9,
  kLineEnd = 1 << 10,
  kField = 1 << 11,
  kPieces = 1 << 12,
  kFraming = 1 << 13,
  kStart = 1 << 14,
  kPings = 1 << 15,
  kProgress = 1 << 16,
  kEmptyFirst = 1 << 17,
  kEmptyBetween = 1 << 18,
  kChoices = 1 << 19,
  kGarbage = 1 << 20,
  kHuge = 1 << 21,
  kIds = 1 << 22,
  // A whole answer decides all of the above; these two go with everything.
  kStream = (1 << 23) - 1,
  kConnection = 1 << 23,
  kStatus = 1 << 24,  // now and then something else than an answer
};

std::span<const Fault> stream_faults();
std::span<const Fault> wire_faults();
std::span<const Fault> whole_answer_faults();

}  // namespace prony::mock
