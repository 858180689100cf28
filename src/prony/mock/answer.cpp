#include "prony/mock/answer.hpp"

#include <utility>

namespace prony::mock {
namespace {

// A slow reader's queue is looked at this often before the answer may end.
constexpr core::Nanos kQueuePollNs = core::kNanosPerMilli;
constexpr core::Nanos kPingNs = 20 * core::kNanosPerMilli;  // of an answer that is nothing else

}  // namespace

Answer::Answer(net::EventLoop& loop, Request request, std::shared_ptr<net::Exchange> exchange,
               std::function<void(Answer&)> on_end)
    : request_(std::move(request)),
      exchange_(std::move(exchange)),
      on_end_(std::move(on_end)),
      timer_(loop, [this] { play(); }),
      out_(request_.plan, exchange_, request_.id),
      renderer_(request_.plan, request_.facts, request_.id, request_.model,
                core::realtime_ns() / core::kNanosPerSecond) {}

void Answer::start() {
  const Plan& plan = request_.plan;
  exchange_->on_peer_close([this] { over(); });
  if (plan.close_unanswered) {
    exchange_->abort();
    return over();
  }
  if (plan.never_answer) return;
  if (plan.whole || !request_.facts.stream) {
    const bool made = plan.status == 200 && !plan.raw;  // an error is known at once
    timer_.arm(request_.t_received_ns + (made ? last_token_ns(plan) : 0));
    return;
  }
  steps_ = make_timeline(plan, request_.facts);
  writes_.reserve(steps_.size());
  if (!plan.head_at_first_token) {
    out_.head();
    head_sent_ = true;
  }
  timer_.arm(due_ns(0));
}

void Answer::play() {
  if (steps_.empty()) return whole();
  play_due(core::monotonic_ns());
  if (over_) return;
  if (next_ < steps_.size()) return timer_.arm(due_ns(next_));
  if (end()) return over();
}

void Answer::play_due(core::Nanos now_ns) {
  const Plan& plan = request_.plan;
  while (next_ < steps_.size() && due_ns(next_) <= now_ns) {
    const Step& step = steps_[next_++];
    if (step.kind == StepKind::kEnd) return;
    if (!std::exchange(head_sent_, true)) out_.head();
    renderer_.append(buffer_, step);
    buffer_tokens_ += step.tokens;
    const bool more = plan.wire.merge_instant && next_ < steps_.size() &&
                      steps_[next_].at_ns == step.at_ns && steps_[next_].kind != StepKind::kEnd;
    if (more) continue;
    out_.put(buffer_);
    buffer_.clear();
    note_write(std::exchange(buffer_tokens_, 0));
  }
}

/// Does what the plan has for the end; false: not yet, or never.
bool Answer::end() {
  if (exchange_->queued_bytes() > 0) {
    timer_.arm(core::monotonic_ns() + kQueuePollNs);
    return false;
  }
  resolve_stamps();
  if (!std::exchange(head_sent_, true)) out_.head();
  switch (request_.plan.cut) {
    case Cut::kStall:
      return false;
    case Cut::kPings:
      out_.put(": ping\n\n");
      timer_.arm(core::monotonic_ns() + kPingNs);
      return false;
    case Cut::kBadChunk:
      exchange_->write_raw("no chunk size\r\n");
      exchange_->finish(false);
      return true;
    case Cut::kClose:
    case Cut::kCloseInEvent:
      exchange_->abort();
      return true;
    case Cut::kReset:
      exchange_->abort(true);
      return true;
    default:
      break;
  }
  if (request_.plan.hold_open_after_end) return false;
  out_.finish();
  return true;
}

void Answer::whole() {
  const Plan& plan = request_.plan;
  if (!plan.whole) {
    // Not a stream: of the breaks only those that a whole answer can have.
    switch (plan.cut) {
      case Cut::kStall:
      case Cut::kPings:
        return;
      case Cut::kReset:
        exchange_->abort(true);
        return over();
      case Cut::kBadChunk:
      case Cut::kClose:
      case Cut::kCloseInEvent:
        exchange_->abort();
        return over();
      default:
        break;
    }
    Plan answer = plan;
    answer.body = renderer_.whole();
    if (plan.cut != Cut::kNone) {
      answer.status = 500;
      answer.body = error_body("the engine died", "InternalServerError", 500);
    }
    WireOut(answer, exchange_, request_.id).whole();
    note_write(answer.status == 200 ? plan.tokens : 0);
  } else {
    out_.whole();
    note_write(0);
  }
  over();
}

void Answer::note_write(int64_t tokens) {
  tokens_sent_ += tokens;
  writes_.emplace_back(0, tokens);
  resolve_stamps();
}

/// Writes that had to queue get the stamp of the one that emptied the queue: a bound from above.
void Answer::resolve_stamps() {
  const core::Nanos taken_ns = exchange_->last_write_ns();
  if (taken_ns == 0) return;
  for (; unresolved_ < writes_.size(); ++unresolved_) writes_[unresolved_].first = taken_ns;
}

void Answer::over() {
  if (std::exchange(over_, true)) return;
  timer_.cancel();
  on_end_(*this);
}

}  // namespace prony::mock
