#include "prony/load/driver.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "prony/core/check.hpp"
#include "prony/load/start_lead.hpp"

namespace prony::load {
namespace {

using record::Status;

constexpr core::Nanos kTick = 50 * core::kNanosPerMilli;  // how soon an interrupt is seen
constexpr core::Nanos kProgress = 250 * core::kNanosPerMilli;
/// Prompts that take longer to make go on being made beside the run.
constexpr core::Nanos kFeedWait = 120 * core::kNanosPerSecond;

// The first turns of the sessions of each worker.
std::vector<std::vector<int64_t>> deal_sessions(std::span<const workload::ScheduleEntry> entries,
                                                int64_t workers) {
  std::vector<std::vector<int64_t>> starts(static_cast<size_t>(workers));
  size_t next = 0;
  for (const auto& entry : entries) {
    if (entry.turn == 0) starts[next++ % starts.size()].push_back(entry.index);
  }
  return starts;
}

// Share of worker `index` of `total` things, differing by one at most.
int64_t share(int64_t total, int64_t workers, int64_t index) {
  return total / workers + (index < total % workers ? 1 : 0);
}

}  // namespace

ClientMeters::ClientMeters()
    : read_lag_ns(LoopMeters().read_lag_ns), issue_lag_ns(LoopMeters().issue_lag_ns) {}

Driver::Driver(const Options& options, const std::atomic<bool>* interrupt)
    : options_(options), interrupt_(interrupt) {
  PRONY_CHECK(options.threads >= 1);
  const auto done = [this] {
    const std::lock_guard lock(mutex_);
    --pending_;
    changed_.notify_all();
  };
  for (int i = 0; i < options.threads; ++i) {
    auto worker = options.worker;
    if (!options.cores.empty()) {
      worker.core = options.cores[static_cast<size_t>(i) % options.cores.size()];
    }
    worker.connections_ahead = share(worker.connections_ahead, options.threads, i);
    if (worker.connections_max > 0) {
      worker.connections_max = std::max<int64_t>(1, worker.connections_max / options.threads);
    }
    workers_.push_back(std::make_unique<Worker>(worker, done));
  }
  for (auto& worker : workers_) threads_.emplace_back([&worker = *worker] { worker.run(); });
}

Driver::~Driver() {
  for (auto& worker : workers_) worker->quit();
  for (auto& thread : threads_) thread.join();
}

void Driver::wait_for_workers(const std::function<void()>& every_tick) {
  std::unique_lock lock(mutex_);
  while (pending_ > 0) {
    changed_.wait_for(lock, std::chrono::nanoseconds(kTick));
    if (pending_ == 0) return;
    lock.unlock();
    every_tick();
    lock.lock();
  }
}

void Driver::open_connections(int64_t count) {
  const auto n = static_cast<int64_t>(workers_.size());
  {
    const std::lock_guard lock(mutex_);
    pending_ = static_cast<int>(n);
  }
  for (int64_t i = 0; i < n; ++i) {
    workers_[static_cast<size_t>(i)]->open_connections(share(count, n, i), [this] {
      const std::lock_guard lock(mutex_);
      --pending_;
      changed_.notify_all();
    });
  }
  wait_for_workers([] {});  // the connect time-out bounds it
}

LoadResult Driver::run(const Job& job, const Progress& progress) {
  PRONY_CHECK(!job.closed_loop || job.max_concurrency.has_value());
  auto workers = static_cast<int64_t>(workers_.size());
  // A worker without a place would never send its share.
  if (job.max_concurrency) workers = std::clamp<int64_t>(*job.max_concurrency, 1, workers);
  MessageFeed feed(static_cast<int64_t>(job.entries.size()), job.message,
                   {.budget_bytes = options_.feed_budget_bytes});
  const core::Nanos t_give_up = core::monotonic_ns() + kFeedWait;
  const auto interrupted = [this] { return interrupt_ != nullptr && interrupt_->load(); };
  while (!feed.wait_ready(kTick) && core::monotonic_ns() < t_give_up && !interrupted()) {
  }

  if (interrupted()) {  // before anything was sent
    LoadResult nothing;
    nothing.t_start_ns = nothing.t_end_ns = core::monotonic_ns();
    nothing.interrupted = true;
    return nothing;
  }
  if (job.before_start) job.before_start();
  record::RowStore rows(options_.rows);
  const core::Nanos t_start = core::monotonic_ns() + kStartLead;
  {
    const std::lock_guard lock(mutex_);
    pending_ = static_cast<int>(workers);
  }
  std::vector<std::vector<int64_t>> session_starts;
  if (job.sessions) session_starts = deal_sessions(job.entries, workers);
  for (int64_t i = 0; i < workers; ++i) {
    Phase phase;
    if (job.sessions) {
      phase.sessions = &*job.sessions;
      phase.session_starts = std::move(session_starts[static_cast<size_t>(i)]);
    }
    phase.entries = job.entries;
    phase.first = i;
    phase.stride = workers;
    phase.closed_loop = job.closed_loop;
    if (job.max_concurrency) phase.max_in_flight = share(*job.max_concurrency, workers, i);
    phase.t_start_ns = t_start;
    if (job.duration_ns > 0) phase.t_stop_ns = t_start + job.duration_ns;
    phase.feed = &feed;
    phase.rows = &rows.add_appender();
    phase.id = job.id;
    phase.on_row = job.on_row;
    workers_[static_cast<size_t>(i)]->begin(std::move(phase));
  }

  core::Nanos t_last_meant = t_start + job.duration_ns;
  if (job.duration_ns == 0 && !job.entries.empty()) {
    t_last_meant = t_start + job.entries.back().t_intended_ns;
  }
  // When the last turn will be meant is known beforehand for single requests only.
  const bool meant_known = job.duration_ns > 0 || (!job.closed_loop && !job.sessions);
  const bool drains = job.drain_ns > 0 && meant_known;
  core::Nanos t_progress = t_start;
  bool stopped = false, by_user = false, concluded = false;
  const auto stop_all = [&](Status status, const char* why) {
    stopped = true;
    for (int64_t i = 0; i < workers; ++i) workers_[static_cast<size_t>(i)]->stop(status, why);
  };
  wait_for_workers([&] {
    const core::Nanos now = core::monotonic_ns();
    if (!stopped && interrupted()) {
      by_user = true;
      stop_all(Status::kInterrupted, "interrupted by the user");
    } else if (!stopped && !concluded && job.enough && job.enough()) {
      concluded = true;
      t_last_meant = std::min(t_last_meant, now);
      for (int64_t i = 0; i < workers; ++i) workers_[static_cast<size_t>(i)]->conclude();
    } else if (!stopped && (drains || (concluded && job.drain_ns > 0)) &&
               now > t_last_meant + job.drain_ns) {
      stop_all(Status::kUnfinished, "in flight when the drain time was over");
    } else if (!stopped && rows.failed()) {
      stop_all(Status::kInterrupted, "the run ended because its rows could not be written");
    }
    if (now >= t_progress + kProgress) {
      t_progress = now;
      if (progress) progress(live_totals(t_start));
    }
  });
  auto result = collect(t_start, std::move(rows));
  result.interrupted = by_user;
  if (progress) progress(live_totals(t_start));
  return result;
}

LiveTotals Driver::live_totals(core::Nanos t_start_ns) const {
  LiveTotals totals;
  LiveHistogram::Counts ttft{};
  for (const auto& worker : workers_) {
    const auto& live = worker->meters().live;
    totals.sent += live.sent.load(std::memory_order_relaxed);
    totals.in_flight += live.in_flight.load(std::memory_order_relaxed);
    totals.waiting += live.waiting.load(std::memory_order_relaxed);
    totals.completed += live.completed.load(std::memory_order_relaxed);
    totals.failed += live.failed.load(std::memory_order_relaxed);
    totals.tokens += live.tokens.load(std::memory_order_relaxed);
    live.ttft.add_to(ttft);
  }
  totals.ttft_p50_ms = LiveHistogram::quantile_ms(ttft, 0.5);
  totals.ttft_p99_ms = LiveHistogram::quantile_ms(ttft, 0.99);
  totals.elapsed_ns = core::monotonic_ns() - t_start_ns;
  return totals;
}

LoadResult Driver::collect(core::Nanos t_start_ns, record::RowStore rows) {
  LoadResult result;
  result.t_start_ns = t_start_ns;
  result.t_end_ns = core::monotonic_ns();
  rows.seal();
  result.rows = std::move(rows);
  for (auto& worker : workers_) {
    auto part = worker->take_result();
    auto& client = result.client;
    const auto& meters = worker->meters();
    client.read_lag_ns.merge(meters.read_lag_ns);
    client.issue_lag_ns.merge(meters.issue_lag_ns);
    client.token_events += meters.token_events;
    client.merged_events += meters.merged_events;
    client.unstamped_events += meters.unstamped_events;
    client.stamp_faults += meters.stamp_faults;
    client.late_messages += meters.late_messages;
    client.connections_lost += part.connections_lost;
    client.held_back += part.held_back;
    client.clock_step_max_ns = std::max(client.clock_step_max_ns, part.clock_step_max_ns);
    client.scheduling = std::min(client.scheduling, part.scheduling);
    client.spin_ns = std::max(client.spin_ns, part.spin_ns);
    if (part.occupancy.wall_ns > 0) {
      client.loop_busy.push_back(static_cast<double>(part.occupancy.busy_ns) /
                                 static_cast<double>(part.occupancy.wall_ns));
    }
    if (result.server.empty()) result.server = part.server;
    if (result.prony_device.empty()) result.prony_device = part.prony_device;
  }
  return result;
}

}  // namespace prony::load
