#include "prony/sim/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "prony/core/check.hpp"
#include "prony/sim/event_heap.hpp"
#include "prony/sim/prefix_keys.hpp"

namespace prony::sim {
namespace {

constexpr core::Nanos kNever = std::numeric_limits<core::Nanos>::max();

/// Of one instant: what ends is out of the way before what comes.
enum Kind : int32_t { kStepEnd, kArrival, kTurn, kEnqueue };

class Simulation {
 public:
  Simulation(const workload::Schedule& schedule, const ClusterOptions& options,
             const std::function<void(record::RequestRow&&)>& sink)
      : schedule_(schedule),
        options_(options),
        sink_(sink),
        router_(options.router, options.seed),
        keys_(schedule),
        request_ns_(static_cast<core::Nanos>(options.request_s * 1e9 + 0.5)),
        independent_(!options.closed_loop && options.max_concurrency == 0 &&
                     !schedule.has_sessions()) {}

  Result<void> add_replicas(const StepTimeMaker& make_time) {
    for (int32_t i = 0; i < options_.replicas; ++i) {
      auto time = make_time();
      if (!time) return time.error();
      auto replica = Replica::create({.scheduler = options_.scheduler,
                                      .noise_cv = options_.noise_cv,
                                      .seed = options_.seed + static_cast<uint64_t>(i),
                                      .macro_steps = options_.macro_steps},
                                     std::move(time).value());
      if (!replica) return replica.error();
      replicas_.push_back(std::move(replica).value());
    }
    views_.resize(replicas_.size());
    return {};
  }

  Result<ClusterTotals> run() {
    const auto count = static_cast<int64_t>(schedule_.entries.size());
    const int64_t users = options_.max_concurrency > 0 ? options_.max_concurrency : count;
    if (options_.closed_loop) {
      while (next_ < std::min(users, count)) arrive(next_++, 0);
    } else {
      push_next_arrival();
    }
    while (!heap_.empty()) {
      const Event event = heap_.pop();
      now_ns_ = event.t_ns;
      switch (event.kind) {
        case kArrival:
          if (options_.max_concurrency > 0 && in_flight_ >= options_.max_concurrency) {
            waiting_.push_back(event.value);
          } else {
            arrive(event.value, event.t_ns);
          }
          push_next_arrival();
          break;
        case kTurn:  // meant for the instant at which the turn before ended and was thought about
          arrive(event.value, event.t_ns);
          break;
        case kEnqueue:
          enqueue(event.value);
          break;
        default:
          end_step(event.target);
      }
    }
    return totals();
  }

 private:
  struct Flight {
    record::RequestRow row;
    int64_t index = 0;
  };

  void push_next_arrival() {
    // A later turn of a conversation is due when the one before has ended.
    const auto count = static_cast<int64_t>(schedule_.entries.size());
    while (next_ < count && schedule_.entries[static_cast<size_t>(next_)].turn > 0) ++next_;
    arrival_ns_ =
        next_ < count ? schedule_.entries[static_cast<size_t>(next_)].t_intended_ns : kNever;
    if (next_ < count) heap_.push({.t_ns = arrival_ns_, .kind = kArrival, .value = next_++});
  }

  // A client sends request `index`, meant for `t_intended_ns`.
  void arrive(int64_t index, core::Nanos t_intended_ns) {
    const auto& entry = schedule_.entries[static_cast<size_t>(index)];
    ++totals_.arrived;
    ++in_flight_;
    size_t slot = flights_.size();
    if (free_.empty()) {
      flights_.emplace_back();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    Flight& flight = flights_[slot];
    flight.index = index;
    auto& row = flight.row;
    row = {};
    row.index = index;
    row.id = fmt::format("sim-{}", index);
    row.input_tokens_asked = entry.input_tokens;
    row.prompt_tokens = entry.input_tokens;
    row.output_tokens_asked = entry.output_tokens;
    row.t_intended_ns = t_intended_ns;
    row.t_send_ns = row.t_sent_ns = now_ns_;
    if (entry.session >= 0) {
      row.session = entry.session;
      row.turn = entry.turn;
    }
    if (entry.stage >= 0) row.stage = entry.stage;
    if (independent_) enqueues_.push_back(now_ns_ + request_ns_);
    heap_.push(
        {.t_ns = now_ns_ + request_ns_, .kind = kEnqueue, .value = static_cast<int64_t>(slot)});
  }

  // It has reached the engine's queue.
  void enqueue(int64_t slot) {
    if (independent_ && ++enqueues_begin_ == enqueues_.size()) {
      enqueues_.clear();
      enqueues_begin_ = 0;
    }
    Flight& flight = flights_[static_cast<size_t>(slot)];
    const auto& entry = schedule_.entries[static_cast<size_t>(flight.index)];
    const int32_t chosen = router_.choose(views_, entry.session, entry.prefix_group);
    sched::RequestSpec spec;
    spec.prompt_tokens = entry.input_tokens;
    spec.max_new_tokens = entry.output_tokens;
    spec.arrival = now_ns_;
    if (options_.scheduler.prefix_caching) spec.block_keys = keys_.of(entry);
    if (const auto added = replicas_[static_cast<size_t>(chosen)]->add(slot, spec); !added) {
      refuse(slot, added.error().message);
      return;
    }
    see(chosen);
    start(chosen);
  }

  // What routers see of a replica, kept up where it changes: thousands of them are not asked each
  // time.
  void see(int32_t replica) {
    const auto& of = *replicas_[static_cast<size_t>(replica)];
    views_[static_cast<size_t>(replica)] = {of.live(), of.pending_tokens(), true};
  }

  void start(int32_t replica) {
    const auto end = replicas_[static_cast<size_t>(replica)]->begin(now_ns_, next_enqueue_ns());
    if (end) heap_.push({.t_ns = *end, .kind = kStepEnd, .target = replica});
  }

  // Nothing reaches a replica's queue before this, so macro-steps may go so far. Where ends of
  // requests start others, any event may be such an end.
  core::Nanos next_enqueue_ns() const {
    if (!independent_) return heap_.empty() ? kNever : heap_.top().t_ns;
    if (enqueues_begin_ < enqueues_.size()) return enqueues_[enqueues_begin_];
    return arrival_ns_ == kNever ? kNever : arrival_ns_ + request_ns_;
  }

  void end_step(int32_t replica) {
    replicas_[static_cast<size_t>(replica)]->end([&](const TokensOut& out) {
      auto& row = flights_[static_cast<size_t>(out.request)].row;
      if (!row.t_first_token_ns) {
        row.t_first_token_ns = row.t_first_event_ns = row.t_first_output_ns = out.t_ns.front();
        row.t_headers_ns = out.t_ns.front();
      }
      row.t_last_token_ns = out.t_ns.back();
      row.output_tokens = row.output_tokens.value_or(0) + static_cast<int32_t>(out.t_ns.size());
      if (options_.token_events) {
        for (const core::Nanos t_ns : out.t_ns) row.events.push_back({t_ns, t_ns, 1});
      }
      if (out.finished) done_.push_back(out.request);
    });
    see(replica);
    for (const int64_t slot : done_) finish(slot);
    done_.clear();
    start(replica);
  }

  void finish(int64_t slot) {
    auto& row = flights_[static_cast<size_t>(slot)].row;
    row.status = record::Status::kOk;
    row.http_status = 200;
    row.token_source = record::TokenSource::kUsage;
    row.finish_reason = "length";
    row.t_done_ns = row.t_close_ns = *row.t_last_token_ns;
    row.first_event_tokens = options_.token_events ? 1 : 0;
    row.tokens_per_event_exact = options_.token_events;
    totals_.output_tokens += *row.output_tokens;
    ++totals_.finished;
    leave(slot);
  }

  void refuse(int64_t slot, const std::string& reason) {
    auto& row = flights_[static_cast<size_t>(slot)].row;
    row.status = record::Status::kHttp4xx;
    row.http_status = 400;
    row.error = reason;
    row.t_close_ns = now_ns_;
    ++totals_.refused;
    leave(slot);
  }

  // The row goes out; its conversation, its user or who waits for a place goes on.
  void leave(int64_t slot) {
    Flight& flight = flights_[static_cast<size_t>(slot)];
    const int64_t index = flight.index;
    const bool ok = flight.row.status == record::Status::kOk;
    sink_(std::move(flight.row));
    free_.push_back(static_cast<size_t>(slot));
    --in_flight_;
    totals_.end_ns = std::max(totals_.end_ns, now_ns_);
    const auto at = static_cast<size_t>(index);
    if (!options_.closed_loop && ok && schedule_.has_next_turn(at)) {
      heap_.push({.t_ns = now_ns_ + schedule_.entries[at + 1].think_ns,
                  .kind = kTurn,
                  .value = index + 1});
    }
    if (options_.closed_loop && next_ < static_cast<int64_t>(schedule_.entries.size())) {
      arrive(next_, now_ns_);
      ++next_;
    } else if (waiting_begin_ < waiting_.size()) {
      const int64_t waiting = waiting_[waiting_begin_++];
      arrive(waiting, schedule_.entries[static_cast<size_t>(waiting)].t_intended_ns);
    }
  }

  Result<ClusterTotals> totals() {
    for (const auto& replica : replicas_) {
      if (!replica->idle() || replica->live() != 0) {
        return failed("simulation: a replica is not idle at the end");
      }
      if (auto whole = replica->check_integrity(); !whole) return whole.error();
      const auto stats = replica->stats();
      totals_.steps += replica->totals().steps;
      totals_.scheduled_tokens += replica->totals().tokens;
      totals_.preemptions += stats.preemptions;
      totals_.prefix_hit_tokens += stats.prefix_hit_tokens;
      totals_.prefix_query_tokens += stats.prefix_query_tokens;
      totals_.replicas.push_back(replica->totals());
    }
    totals_.events = heap_.pushed();
    if (totals_.arrived != totals_.finished + totals_.refused || in_flight_ != 0) {
      return failed(fmt::format("simulation: {} arrived, {} finished and {} refused",
                                totals_.arrived, totals_.finished, totals_.refused));
    }
    return std::move(totals_);
  }

  const workload::Schedule& schedule_;
  const ClusterOptions& options_;
  const std::function<void(record::RequestRow&&)>& sink_;
  Router router_;
  PrefixKeys keys_;
  core::Nanos request_ns_;
  bool independent_;                   // no request waits for the end of another
  core::Nanos arrival_ns_ = kNever;    // of the arrival in the heap
  std::vector<core::Nanos> enqueues_;  // of requests between client and queue; independent_ only
  size_t enqueues_begin_ = 0;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<ReplicaView> views_;
  EventHeap heap_;
  core::Nanos now_ns_ = 0;
  int64_t next_ = 0, in_flight_ = 0;
  std::vector<int64_t> waiting_;  // for a place under max_concurrency
  size_t waiting_begin_ = 0;
  std::vector<Flight> flights_;
  std::vector<size_t> free_;
  std::vector<int64_t> done_;
  ClusterTotals totals_;
};

}  // namespace

Result<ClusterTotals> simulate(const workload::Schedule& schedule, const ClusterOptions& options,
                               const StepTimeMaker& make_time,
                               const std::function<void(record::RequestRow&&)>& sink) {
  if (options.replicas < 1 || options.replicas > 100'000) {
    return invalid_argument(
        fmt::format("--replicas: found {}, expected 1 to 100000", options.replicas));
  }
  Simulation simulation(schedule, options, sink);
  if (auto added = simulation.add_replicas(make_time); !added) return added.error();
  return simulation.run();
}

}  // namespace prony::sim
