#include "prony/server/step_loop.hpp"

#include <utility>

#include "prony/core/system.hpp"

namespace prony::server {

struct StepLoop::Sequence {
  Ticket ticket = 0;
  OutputStream stream;
  RequestTimes times;
  uint64_t cache_salt = 0;
  std::vector<int32_t> tokens;        // prompt and output: what block keys are made of
  std::vector<sched::BlockKey> keys;  // of the full blocks of `tokens`
  int32_t cached_tokens = 0;
  bool silent = false;  // finished or cancelled: rows still in flight bring no news
};

Result<std::unique_ptr<StepLoop>> StepLoop::create(sched::Executor& executor,
                                                   const sched::SchedulerOptions& options,
                                                   Metrics& metrics, const core::Clock& clock,
                                                   Deliver deliver, OnFailure on_failure) {
  auto scheduler = sched::Scheduler::create(options);
  if (!scheduler) return scheduler.error();
  return std::unique_ptr<StepLoop>(new StepLoop(executor, std::move(scheduler).value(), metrics,
                                                clock, std::move(deliver), std::move(on_failure)));
}

StepLoop::StepLoop(sched::Executor& executor, std::unique_ptr<sched::Scheduler> scheduler,
                   Metrics& metrics, const core::Clock& clock, Deliver deliver,
                   OnFailure on_failure)
    : executor_(executor),
      scheduler_(std::move(scheduler)),
      metrics_(metrics),
      clock_(clock),
      deliver_(std::move(deliver)),
      on_failure_(std::move(on_failure)),
      thread_([this] { run(); }) {}

StepLoop::~StepLoop() {
  stop();
}

void StepLoop::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

Ticket StepLoop::submit(Submission submission) {
  const Ticket ticket = next_ticket_.fetch_add(1, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back({ticket, std::make_unique<Submission>(std::move(submission))});
  }
  wake_.notify_one();
  return ticket;
}

void StepLoop::cancel(Ticket ticket) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back({ticket, nullptr});
  }
  wake_.notify_one();
}

void StepLoop::run() {
  core::name_thread("step-loop");
  bool progressed = false;
  while (take_commands(/*wait=*/!progressed)) {
    const bool submitted = !failure_ && submit_step();
    progressed = submitted;
    // Wait for the oldest step when no other can be put behind it.
    const int in_flight = scheduler_->steps_in_flight();
    if (!failure_ && in_flight > 0 && (in_flight == scheduler_->options().depth || !submitted)) {
      progressed = true;  // a commit may let the next plan do what this one could not
      if (auto done = finish_step(); !done) {
        fail_all(done.error());
        progressed = false;
      }
    }
    deliver_news();
  }
  while (!failure_ && scheduler_->steps_in_flight() > 0) {
    if (!finish_step()) break;
  }
}

// Applies what other threads asked for; with `wait` sleeps until there is something. False: stop.
bool StepLoop::take_commands(bool wait) {
  {
    std::unique_lock lock(mutex_);
    if (wait) wake_.wait(lock, [this] { return stopping_ || !commands_.empty(); });
    if (stopping_) return false;
    taken_.swap(commands_);
  }
  for (auto& command : taken_) {
    if (command.submission) {
      begin(command.ticket, std::move(*command.submission));
    } else {
      drop(command.ticket);
    }
  }
  taken_.clear();
  return true;
}

void StepLoop::begin(Ticket ticket, Submission submission) {
  const auto refuse = [&](Error error) {
    Output output;
    output.ticket = ticket;
    output.error = std::move(error);
    news_.push_back(std::move(output));
  };
  if (failure_) return refuse(*failure_);
  auto sequence = std::make_unique<Sequence>(
      Sequence{.ticket = ticket, .stream = std::move(submission.stream)});
  sequence->cache_salt = submission.cache_salt;
  sequence->tokens = submission.input.prompt;
  sequence->times.arrived_ns = submission.arrived_ns;
  sequence->times.prompt_tokens = static_cast<int32_t>(sequence->tokens.size());
  if (scheduler_->options().prefix_caching) {
    sched::extend_keys(sequence->cache_salt, sequence->tokens, sequence->keys);
  }
  const auto handle = scheduler_->add({.prompt_tokens = sequence->times.prompt_tokens,
                                       .max_new_tokens = submission.input.max_new_tokens,
                                       .priority = submission.priority,
                                       .block_keys = sequence->keys});
  if (!handle) return refuse(handle.error());
  executor_.start(*handle, std::move(submission.input));
  if (sequences_.size() <= *handle) sequences_.resize(*handle + 1);
  sequences_[*handle] = std::move(sequence);
  handles_[ticket] = *handle;
}

void StepLoop::drop(Ticket ticket) {
  const auto found = handles_.find(ticket);
  if (found == handles_.end()) return;  // ended already
  const sched::Handle handle = found->second;
  Sequence& sequence = *sequences_[handle];
  if (sequence.silent) return;
  sequence.silent = true;
  sequence.times.output_tokens = sequence.stream.token_count();
  sequence.times.finished_ns = clock_.now_ns();
  metrics_.on_finished(sequence.times, Finish::kAbort);
  if (scheduler_->abort(handle)) release(handle);
}

SchedulerGauges StepLoop::gauges() const {
  const auto stats = scheduler_->stats();
  return {.running = stats.running,
          .waiting = stats.waiting + stats.remote,
          .kv_usage = 1.0 - static_cast<double>(stats.free_blocks) / stats.block_count,
          .preemptions = stats.preemptions,
          .prefix_queries_tokens = stats.prefix_query_tokens,
          .prefix_hits_tokens = stats.prefix_hit_tokens};
}

// True if a step was put in flight.
bool StepLoop::submit_step() {
  if (scheduler_->steps_in_flight() >= scheduler_->options().depth) return false;
  const sched::StepPlan& plan = scheduler_->plan();
  if (plan.empty()) return false;
  const core::Nanos now_ns = clock_.now_ns();
  for (const auto& row : plan.rows) {
    Sequence& sequence = *sequences_[row.handle];
    if (sequence.times.scheduled_ns != 0) continue;
    sequence.times.scheduled_ns = now_ns;
    sequence.cached_tokens = row.first_position;
  }
  executor_.submit(plan);
  metrics_.on_step(plan.token_count, gauges());
  return true;
}

Result<void> StepLoop::finish_step() {
  const auto step = executor_.wait();
  if (!step) return step.error();
  const core::Nanos now_ns = clock_.now_ns();
  finished_.clear();
  for (const auto& sampled : step->tokens) {
    Sequence& sequence = *sequences_[sampled.handle];
    if (sequence.silent) continue;
    take_token(sequence, sampled, now_ns);
    if (sequence.silent) finished_.push_back(sampled.handle);
  }
  const auto& committed = scheduler_->commit({finished_});
  for (const auto handle : committed.released) release(handle);
  if (scheduler_->idle()) metrics_.on_step(0, gauges());  // no later step will say so
  return {};
}

void StepLoop::take_token(Sequence& sequence, const sched::SampledToken& sampled,
                          core::Nanos now_ns) {
  auto& times = sequence.times;
  if (times.first_token_ns == 0) {
    times.first_token_ns = now_ns;
    metrics_.on_prompt_done(times.prompt_tokens, sequence.cached_tokens);
    metrics_.on_first_token(now_ns - times.arrived_ns);
  } else {
    metrics_.on_next_token(now_ns - times.last_token_ns);
  }
  times.last_token_ns = now_ns;

  Output output;
  output.ticket = sequence.ticket;
  output.token = sampled.token;
  output.logprob = sampled.logprob;
  output.top.assign(sampled.top.begin(), sampled.top.end());
  output.finish = sequence.stream.push(sampled.token, output.text);
  output.stop_reason = sequence.stream.stop_reason();
  output.output_tokens = sequence.stream.token_count();
  output.cached_tokens = sequence.cached_tokens;
  if (output.finish != Finish::kNone) {
    sequence.silent = true;
    times.output_tokens = output.output_tokens;
    times.finished_ns = now_ns;
    metrics_.on_finished(times, output.finish);
  } else if (scheduler_->options().prefix_caching) {
    sequence.tokens.push_back(sampled.token);
    const size_t known = sequence.keys.size();
    sched::extend_keys(sequence.cache_salt, sequence.tokens, sequence.keys);
    for (size_t i = known; i < sequence.keys.size(); ++i) {
      scheduler_->append_key(sampled.handle, sequence.keys[i]);
    }
  }
  news_.push_back(std::move(output));
}

void StepLoop::release(sched::Handle handle) {
  executor_.finish(handle);
  handles_.erase(sequences_[handle]->ticket);
  sequences_[handle].reset();
}

// The device is gone: every sequence ends with the error, and so does whatever is submitted later.
void StepLoop::fail_all(const Error& error) {
  failure_ = error;
  for (const auto& sequence : sequences_) {
    if (!sequence || sequence->silent) continue;
    sequence->silent = true;
    Output output;
    output.ticket = sequence->ticket;
    output.error = error;
    news_.push_back(std::move(output));
  }
  deliver_news();
  on_failure_(error);
}

void StepLoop::deliver_news() {
  if (news_.empty()) return;
  deliver_(std::exchange(news_, {}));
}

}  // namespace prony::server
