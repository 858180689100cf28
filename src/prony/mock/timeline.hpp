// Timeline: the instants of one streamed answer, in order. Small, because it is made when a request
// arrives, while other streams are due; the bytes of a step are made when its instant has come.
// Thread safety: functions any thread.
#pragma once
#include <cstdint>
#include <vector>

#include "prony/mock/plan.hpp"

namespace prony::mock {

enum class StepKind : uint8_t {
  kRole,
  kTokens,
  kEmpty,  // a chunk without text
  kProgress,
  kPing,
  kNoChoices,
  kGarbage,
  kFinish,
  kUsage,
  kError,
  kErrorField,
  kPartOfEvent,  // the first half of what would be the next event
  kDone,
  kEnd,  // always last: the body ends, or what the plan's cut says
};

struct Step {
  core::Nanos at_ns = 0;  // after the receipt of the request
  StepKind kind = StepKind::kTokens;
  bool huge = false;
  bool finishes = false;     // carries the finish_reason beside its tokens
  int64_t first_token = 0;   // index of the first token of this step
  int64_t tokens = 0;        // shown in this step
  int64_t total_tokens = 0;  // made so far, those of this step included
};

/// Requires a plan of a stream. Steps are ordered by at_ns.
std::vector<Step> make_timeline(const Plan& plan, const RequestFacts& facts);

/// When the last token of the plan is due [ns after receipt]: a whole answer leaves then.
core::Nanos last_token_ns(const Plan& plan);

}  // namespace prony::mock
