#include "prony/mock/timeline.hpp"

#include <algorithm>

#include "prony/core/check.hpp"

namespace prony::mock {
namespace {

using core::Nanos;

// Events before the first token: so many, evenly spread over the time to it.
constexpr int kEarlyEvents = 3;
constexpr int64_t kPingEveryChunks = 4;

class Builder {
 public:
  Builder(const Plan& plan, const RequestFacts& facts) : plan_(plan), facts_(facts) {}

  std::vector<Step> build() {
    early_events();
    const bool cut = plan_.cut != Cut::kNone;
    const int64_t end = cut ? std::min(plan_.cut_at_tokens, plan_.tokens) : plan_.tokens;
    role(end);
    tokens(end);
    if (cut) {
      cut_off(end);
    } else {
      ending();
    }
    if (plan_.group_chunks > 1) leave_together();
    return std::move(steps_);
  }

 private:
  Nanos token_ns(int64_t index) const { return plan_.ttft_ns + index * plan_.itl_ns; }
  Step& add(Nanos at_ns, StepKind kind) {
    steps_.push_back({.at_ns = at_ns, .kind = kind, .total_tokens = made_});
    return steps_.back();
  }

  void early_events() {
    if (facts_.chat && (plan_.role == Role::kAtOnce || plan_.role == Role::kNullContent)) {
      add(0, StepKind::kRole);
    }
    for (int i = 1; i <= kEarlyEvents; ++i) {
      const Nanos at_ns = plan_.ttft_ns * i / (kEarlyEvents + 1);
      if (plan_.pings) add(at_ns, StepKind::kPing);
      if (plan_.progress) add(at_ns, StepKind::kProgress);
      if (plan_.empty_first) add(at_ns, StepKind::kEmpty);
    }
  }

  void role(int64_t end) {
    if (!facts_.chat || plan_.role != Role::kWithFirstToken) return;
    // An answer that breaks before its first token is like a server that never got that far.
    if (plan_.cut != Cut::kNone && end == 0) return;
    add(plan_.ttft_ns, StepKind::kRole);
  }

  /// Size of the chunk that begins at token `first`.
  int64_t chunk_size(int64_t first, size_t chunk) const {
    int64_t size = plan_.chunk_tokens[chunk % plan_.chunk_tokens.size()];
    if (plan_.rest_at_once || plan_.channel == Channel::kToolCall) {
      size = first == 0 ? 1 : plan_.tokens;
    }
    const int64_t thoughts = plan_.tokens / 2;
    const bool thinks =
        plan_.channel == Channel::kReasoning || plan_.channel == Channel::kReasoningContent;
    if (thinks && first < thoughts) size = std::min(size, thoughts - first);
    return size;
  }

  void tokens(int64_t end) {
    size_t chunk = 0;
    int64_t waiting = 0;
    for (int64_t first = 0; first < end;) {
      const int64_t size = std::min(chunk_size(first, chunk), end - first);
      const bool at_once = plan_.rest_at_once || plan_.channel == Channel::kToolCall;
      const Nanos at_ns = token_ns(at_once ? first + size - 1 : first);
      made_ = first + size;
      // A held token shows in the next chunk, as where a parser waits for the rest of a tag.
      const bool held = plan_.held_every > 0 && made_ < end && made_ % plan_.held_every == 0;
      if (held) {
        waiting += size;
      } else {
        Step& step = add(at_ns, StepKind::kTokens);
        step.first_token = first - waiting;
        step.tokens = size + waiting;
        step.huge = plan_.huge && chunk == (end > 1 ? 1 : 0);
        waiting = 0;
      }
      first += size;
      ++chunk;
      if (first < end) between(at_ns + plan_.itl_ns / 2, first, chunk);
    }
  }

  void between(Nanos at_ns, int64_t done, size_t chunk) {
    if (plan_.empty_between) add(at_ns, StepKind::kEmpty);
    if (plan_.pings && static_cast<int64_t>(chunk) % kPingEveryChunks == 0) {
      add(at_ns, StepKind::kPing);
    }
    if (plan_.no_choices) add(at_ns, StepKind::kNoChoices);
    if (plan_.garbage && !garbage_sent_ && done >= plan_.tokens / 2) {
      garbage_sent_ = true;
      add(at_ns, StepKind::kGarbage);
    }
  }

  void cut_off(int64_t end) {
    const Nanos at_ns = token_ns(end);  // when the next token would be due
    switch (plan_.cut) {
      case Cut::kError:
        add(at_ns, StepKind::kError);
        add(at_ns, StepKind::kDone);
        break;
      case Cut::kErrorNoDone:
        add(at_ns, StepKind::kError);
        break;
      case Cut::kErrorField:
        add(at_ns, StepKind::kErrorField);
        break;
      case Cut::kCloseInEvent:
        add(at_ns, StepKind::kPartOfEvent);
        break;
      default:
        break;
    }
    add(at_ns, StepKind::kEnd);
  }

  void ending() {
    const Nanos at_ns = last_token_ns(plan_);
    made_ = plan_.tokens;
    if (plan_.finish_event) {
      if (plan_.finish_with_text && !steps_.empty() && steps_.back().kind == StepKind::kTokens) {
        steps_.back().finishes = true;
        steps_.back().total_tokens = made_;
      } else {
        add(at_ns, StepKind::kFinish);
      }
    }
    const bool usage = plan_.usage == Usage::kAlways ||
                       ((plan_.usage == Usage::kAsAsked || plan_.usage == Usage::kNullInChunks) &&
                        facts_.include_usage);
    if (usage) add(at_ns, StepKind::kUsage);
    if (plan_.done_marker) add(at_ns, StepKind::kDone);
    if (plan_.done_twice) add(at_ns, StepKind::kDone);
    add(at_ns, StepKind::kEnd);
  }

  /// Each group of token chunks leaves when its last one is due, and all that lies between with it.
  void leave_together() {
    std::vector<size_t> chunks;
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i].kind == StepKind::kTokens) chunks.push_back(i);
    }
    const auto group = static_cast<size_t>(plan_.group_chunks);
    for (size_t first = 0; first < chunks.size(); first += group) {
      const size_t last = chunks[std::min(first + group, chunks.size()) - 1];
      for (size_t j = chunks[first]; j < last; ++j) steps_[j].at_ns = steps_[last].at_ns;
    }
  }

  const Plan& plan_;
  const RequestFacts& facts_;
  std::vector<Step> steps_;
  int64_t made_ = 0;
  bool garbage_sent_ = false;
};

}  // namespace

std::vector<Step> make_timeline(const Plan& plan, const RequestFacts& facts) {
  PRONY_CHECK(!plan.whole && !plan.chunk_tokens.empty());
  return Builder(plan, facts).build();
}

Nanos last_token_ns(const Plan& plan) {
  return plan.ttft_ns + std::max<int64_t>(0, plan.tokens - 1) * plan.itl_ns;
}

}  // namespace prony::mock
