#include "prony/load/worker.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "prony/core/check.hpp"
#include "prony/core/system.hpp"

namespace prony::load {
namespace {

using record::Status;

/// Requests sent in a row before the loop reads again: a burst must not make every read late.
constexpr int kBatch = 32;
/// Handshakes at a time while connections are opened ahead: more than a listening socket queues
/// would be dropped, and tried again after a second.
constexpr int kOpening = 64;
/// Opening a connection takes 50 us of the loop: not shortly before a request is due.
constexpr core::Nanos kOpeningNs = 200 * core::kNanosPerMicro;
/// How often overdue streams are looked for. Time-outs are late by at most this.
constexpr core::Nanos kDeadlineTick = 25 * core::kNanosPerMilli;

}  // namespace

Worker::Worker(const WorkerOptions& options, std::function<void()> on_phase_end)
    : options_(options),
      on_phase_end_(std::move(on_phase_end)),
      loop_(net::EventLoop::Options{.spin_ns = options.spin_ns}),
      meters_(std::make_unique<LoopMeters>()),
      parser_(options.dialect->make_parser()),
      setup_{.loop = loop_,
             .origin = options_.origin,
             .address = options_.address,
             .timeouts = options_.timeouts,
             .parser = *parser_,
             .meters = *meters_,
             .deadlines = deadlines_,
             .timeline = options_.timeline},
      arrival_timer_(loop_, [this] { pump(0); }),
      deadline_timer_(loop_, [this] { check_deadlines(); }) {}

Worker::~Worker() = default;

void Worker::run() {
  core::name_thread("prony-load");
  if (options_.core) (void)core::pin_thread(*options_.core);  // checked when the flag was read
  if (options_.prefer_thread) scheduling_ = core::prefer_thread();
  loop_.post([this] { check_deadlines(); });
  loop_.run();
}

void Worker::quit() {
  loop_.stop();
}

void Worker::open_connections(int64_t count, std::function<void()> done) {
  loop_.post([this, count, done = std::move(done)] {
    opened_ = done;
    opening_ = count;
    if (count == 0) {
      std::exchange(opened_, nullptr)();
      return;
    }
    to_open_ = count;
    for (int i = 0; i < kOpening; ++i) open_one();
  });
}

void Worker::open_one() {
  if (to_open_ == 0) return;
  --to_open_;
  auto& channel = new_channel();
  channel.open_ahead(core::monotonic_ns());
  move_to(channel, &coming_);
}

void Worker::begin(Phase phase) {
  loop_.post([this, phase = std::move(phase)] {
    PRONY_CHECK(!running_ && in_flight_ == 0, "one phase at a time");
    phase_ = phase;
    start_phase();
  });
}

void Worker::start_phase() {
  meters_->reset();
  result_ = {};
  const auto total = static_cast<int64_t>(phase_.entries.size());
  count_ = phase_.first >= total ? 0 : (total - phase_.first - 1) / phase_.stride + 1;
  conversations_.reset();
  if (phase_.sessions != nullptr) {
    count_ = static_cast<int64_t>(phase_.session_starts.size());
    conversations_.emplace(*phase_.sessions, phase_.entries, *phase_.feed);
  }
  due_ = issued_ = held_ = 0;
  places_ = std::numeric_limits<int64_t>::max();
  if (phase_.max_in_flight) places_ = *phase_.max_in_flight;
  if (options_.connections_max > 0) places_ = std::min(places_, options_.connections_max);
  running_ = true;
  stopping_ = false;
  loop_.reset_occupancy();
  keep_ahead(core::monotonic_ns());
  if (count_ == 0) {
    end_phase_if_done();
  } else {
    arrival_timer_.arm(phase_.closed_loop ? phase_.t_start_ns : intended_ns(0));
  }
}

const workload::ScheduleEntry& Worker::entry_at(int64_t position) const {
  return phase_.entries[static_cast<size_t>(entry_index(position))];
}

core::Nanos Worker::intended_ns(int64_t position) const {
  return phase_.t_start_ns + entry_at(position).t_intended_ns;
}

// Sends what is due and has a place. `t_free_ns`: when a place became free that requests were
// waiting for; 0 if none were.
void Worker::pump(core::Nanos t_free_ns) {
  if (!running_) return;
  const core::Nanos now = core::monotonic_ns();
  if (!stopping_ && phase_.t_stop_ns > 0 && now >= phase_.t_stop_ns) {
    stopping_ = true;
    give_up_unsent(Status::kUnfinished, "not sent: the run ended while it waited for a place");
  }
  if (!stopping_) {
    if (phase_.closed_loop) {
      due_ = count_;
    } else {
      while (due_ < count_ && intended_ns(due_) <= now) ++due_;
    }
    int batch = 0;
    for (; turn_ready(now) && batch < kBatch; ++batch) issue_turn(t_free_ns, now);
    while (issued_ < due_ && has_place() && batch < kBatch) {
      ++batch;
      const core::Nanos intended = phase_.closed_loop ? phase_.t_start_ns : intended_ns(issued_);
      issue(entry_at(issued_++), std::max(intended, t_free_ns), now);
    }
    const bool more = (issued_ < due_ && has_place()) || turn_ready(now);
    core::Nanos wake = std::numeric_limits<core::Nanos>::max();
    if (more) {
      wake = now;
    } else if (due_ < count_) {
      wake = intended_ns(due_);
    }
    const bool thinks = conversations_ && conversations_->waiting();
    // One that is due and has no place waits for an end, not for the time.
    if (!more && thinks && conversations_->next_due_ns() > now) {
      wake = std::min(wake, conversations_->next_due_ns());
    }
    if (phase_.t_stop_ns > 0 && (issued_ < count_ || thinks)) {
      wake = std::min(wake, phase_.t_stop_ns);
    }
    if (wake != std::numeric_limits<core::Nanos>::max()) arrival_timer_.arm(wake);
    meters_->live.waiting.store(phase_.closed_loop ? 0 : due_ - issued_, std::memory_order_relaxed);
  }
  keep_ahead(now);
  end_phase_if_done();
}

record::RequestRow Worker::new_row(const workload::ScheduleEntry& entry,
                                   core::Nanos t_intended_ns) const {
  record::RequestRow row;
  row.index = entry.index;
  row.id = phase_.id(entry.index);
  row.input_tokens_asked = entry.input_tokens;
  row.output_tokens_asked = entry.output_tokens;
  row.t_intended_ns = t_intended_ns;
  if (entry.session >= 0) {
    row.session = entry.session;
    row.turn = entry.turn;
  }
  if (entry.stage >= 0) row.stage = entry.stage;
  return row;
}

void Worker::issue(const workload::ScheduleEntry& entry, core::Nanos t_released_ns,
                   core::Nanos now_ns) {
  bool late = false;
  auto message = conversations_ ? conversations_->open(entry.index, late)
                                : phase_.feed->take(entry.index, late);
  if (late) ++meters_->late_messages;
  // In a closed loop a request is meant to start when its place is free.
  const core::Nanos t_intended =
      phase_.closed_loop ? t_released_ns : phase_.t_start_ns + entry.t_intended_ns;
  send(entry, std::move(message), t_intended, t_released_ns, now_ns);
}

void Worker::send(const workload::ScheduleEntry& entry, std::string message,
                  core::Nanos t_intended_ns, core::Nanos t_released_ns, core::Nanos now_ns) {
  ++in_flight_;
  meters_->live.in_flight.store(in_flight_, std::memory_order_relaxed);
  auto* channel = take_channel();
  channel->start(new_row(entry, t_intended_ns), std::move(message), t_released_ns, now_ns);
}

bool Worker::turn_ready(core::Nanos now_ns) const {
  return conversations_ && conversations_->waiting() && conversations_->next_due_ns() <= now_ns &&
         (phase_.closed_loop || has_place());
}

void Worker::issue_turn(core::Nanos t_free_ns, core::Nanos now_ns) {
  auto turn = conversations_->take_due();
  if (phase_.closed_loop) --held_;
  const auto& entry = phase_.entries[static_cast<size_t>(turn.index)];
  send(entry, std::move(turn.message), turn.t_due_ns, std::max(turn.t_due_ns, t_free_ns), now_ns);
}

// The next turn of the session waits; or, where there is none any more, its rest is cancelled.
void Worker::continue_session(record::RequestRow& row, core::Nanos t_end_ns) {
  if (stopping_) {
    conversations_->abandon(row);
    return;
  }
  bool late = false;
  if (conversations_->on_end(row, t_end_ns, late)) {
    if (late) ++meters_->late_messages;
    if (phase_.closed_loop) ++held_;
    return;
  }
  if (row.status == Status::kOk) return;
  for (const auto& entry : conversations_->close(row.index)) {
    auto rest = new_row(entry, t_end_ns);
    rest.status = Status::kCancelled;
    rest.error = std::string("an earlier turn of its conversation failed: ") +
                 record::status_name(row.status);
    keep(rest);
  }
}

// An idle connection; else one on its way; else a new one.
Channel* Worker::take_channel() {
  for (auto* list : {&idle_, &coming_, &closed_}) {
    if (list->empty()) continue;
    auto* channel = list->back();
    if (list == &coming_) on_opened(*channel);
    move_to(*channel, nullptr);
    return channel;
  }
  return &new_channel();
}

Channel& Worker::new_channel() {
  channels_.push_back(std::make_unique<Channel>(setup_, static_cast<Channel::Owner&>(*this)));
  return *channels_.back();
}

// Connections for the requests to come, so that a handshake never stands in their way.
void Worker::keep_ahead(core::Nanos now_ns) {
  if (stopping_ || phase_.closed_loop) return;
  const int64_t wanted = std::min(options_.connections_ahead, count_ - issued_);
  while (static_cast<int64_t>(idle_.size() + coming_.size()) < wanted) {
    if (due_ < count_ && intended_ns(due_) - core::monotonic_ns() < kOpeningNs) return;
    if (options_.connections_max > 0 && closed_.empty() &&
        static_cast<int64_t>(channels_.size()) >= options_.connections_max) {
      return;
    }
    auto& channel = closed_.empty() ? new_channel() : *closed_.back();
    move_to(channel, nullptr);
    channel.open_ahead(now_ns);
    move_to(channel, &coming_);
  }
}

void Worker::move_to(Channel& channel, std::vector<Channel*>* list) {
  if (channel.list != nullptr) {
    auto& from = *channel.list;
    from.back()->place = channel.place;
    std::swap(from[channel.place], from.back());
    from.pop_back();
  }
  channel.list = list;
  if (list == nullptr) return;
  channel.place = list->size();
  list->push_back(&channel);
}

void Worker::on_opened(Channel&) {
  if (opening_ == 0) return;
  open_one();
  if (--opening_ > 0) return;
  std::exchange(opened_, nullptr)();
}

void Worker::on_ready(Channel& channel) {
  move_to(channel, &idle_);
  on_opened(channel);
}

void Worker::on_lost(Channel& channel) {
  if (channel.list == &coming_) {
    opening_ -= std::exchange(to_open_, 0);  // one that fails is enough to know: do not insist
    on_opened(channel);
  }
  if (channel.list == &idle_) ++result_.connections_lost;
  move_to(channel, &closed_);
  // Not replaced at once: a server that closes idle connections would be dialled for ever.
}

void Worker::on_head(const net::ResponseHead& head) {
  if (result_.server.empty()) result_.server = one_line(head.server, 100);
  if (result_.prony_device.empty()) result_.prony_device = one_line(head.prony_device, 100);
}

void Worker::on_issued(Channel& channel) {
  meters_->issue_lag_ns.record(static_cast<uint64_t>(channel.issue_lag_ns()));
  LiveCounters::bump(meters_->live.sent);
}

void Worker::keep(const record::RequestRow& row) {
  LiveCounters::bump(row.status == Status::kOk ? meters_->live.completed : meters_->live.failed);
  if (phase_.on_row) phase_.on_row(row);
  phase_.rows->append(row);
}

void Worker::on_finished(Channel& channel, record::RequestRow row, core::Nanos t_free_ns) {
  const bool was_full = !has_place();
  if (was_full && (!phase_.max_in_flight || places_ < *phase_.max_in_flight)) ++result_.held_back;
  --in_flight_;
  meters_->live.in_flight.store(in_flight_, std::memory_order_relaxed);
  if (channel.issue_lag_ns() >= 0) row.issue_lag_ns = channel.issue_lag_ns();
  if (conversations_) continue_session(row, t_free_ns);
  keep(row);
  move_to(channel, channel.idle() ? &idle_ : &closed_);
  pump(was_full ? t_free_ns : 0);
}

// Requests that came due and never found a place did not happen; they count as attempted.
void Worker::give_up_unsent(Status status, std::string_view why) {
  if (conversations_) {
    for (const auto& turn : conversations_->drop_waiting(core::monotonic_ns())) {
      auto row = new_row(phase_.entries[static_cast<size_t>(turn.index)], turn.t_due_ns);
      row.status = status;
      row.error = why;
      keep(row);
    }
    held_ = 0;
  }
  if (!phase_.closed_loop) {
    for (; issued_ < due_; ++issued_) {
      auto row = new_row(entry_at(issued_), intended_ns(issued_));
      row.status = status;
      row.error = why;
      keep(row);
    }
  }
  count_ = due_ = issued_;
  arrival_timer_.cancel();
}

void Worker::stop(Status status, std::string why) {
  loop_.post([this, status, why = std::move(why)] {
    if (!running_) return;
    stopping_ = true;
    const core::Nanos now = core::monotonic_ns();
    if (!phase_.closed_loop) {
      while (due_ < count_ && intended_ns(due_) <= now) ++due_;
    }
    give_up_unsent(status, why);
    for (size_t i = 0; i < channels_.size() && running_; ++i) {
      if (channels_[i]->busy()) channels_[i]->stop(status, why, now);
    }
    end_phase_if_done();
  });
}

void Worker::conclude() {
  loop_.post([this] {
    if (!running_) return;
    phase_.t_stop_ns = core::monotonic_ns();
    pump(0);
  });
}

void Worker::end_phase_if_done() {
  if (!running_ || issued_ < count_ || in_flight_ > 0) return;
  if (conversations_ && conversations_->waiting()) return;
  running_ = false;
  arrival_timer_.cancel();
  phase_.rows->flush();
  result_.occupancy = loop_.occupancy();
  result_.clock_step_max_ns = loop_.clock_step_max_ns();
  result_.spin_ns = loop_.spin_ns();
  result_.scheduling = scheduling_;
  // Idle connections may still be lost: what is handed over must not change any more.
  ended_ = std::exchange(result_, {});
  on_phase_end_();
}

void Worker::check_deadlines() {
  const core::Nanos now = core::monotonic_ns();
  while (!deadlines_.empty() && deadlines_.top().at_ns <= now) {
    static_cast<Channel*>(deadlines_.top().owner)->check_deadline(now);
  }
  deadline_timer_.arm(now + kDeadlineTick);
}

WorkerResult Worker::take_result() {
  return std::exchange(ended_, {});
}

}  // namespace prony::load
