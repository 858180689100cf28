// Driver: runs a schedule against an endpoint with one Worker (event loop, thread) a core, and
// brings back one row a request. Request i belongs to worker i mod n, so the union is the same for
// any number of threads; of conversations, session i does. Used twice in a run: for the warm-up,
// then for the measured load. Thread safety: one thread; the interrupt flag may be set from
// anywhere, a signal handler included.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "prony/load/message_feed.hpp"
#include "prony/load/meters.hpp"
#include "prony/load/worker.hpp"
#include "prony/record/row_store.hpp"
#include "prony/workload/schedule.hpp"

namespace prony::load {

/// One load: a schedule and how it is driven.
struct Job {
  std::span<const workload::ScheduleEntry> entries;
  MessageFeed::Make message;  // of entries[index]
  std::function<std::string(int64_t index)> id;
  /// Called when everything is ready, just before the load; may be empty.
  std::function<void()> before_start;
  /// Set where the entries are conversations; `message` then gives the prompt of a turn alone.
  std::optional<SessionJob> sessions;
  bool closed_loop = false;  // requires max_concurrency
  std::optional<int64_t> max_concurrency;
  core::Nanos duration_ns = 0;  // nothing is sent later than this after the start; 0: no such bound
  core::Nanos drain_ns = 0;     // after the last send was meant: what is left is unfinished; 0: the
                                // time-outs alone bound it
  std::function<void(const record::RequestRow&)> on_row;  // as it ends, on its loop; may be empty
  std::function<bool()> enough;  // asked at every tick; true: nothing more is sent. May be empty
};

/// Sums over all loops, for the progress line.
struct LiveTotals {
  int64_t sent = 0, in_flight = 0, waiting = 0, completed = 0, failed = 0, tokens = 0;
  std::optional<double> ttft_p50_ms, ttft_p99_ms;
  core::Nanos elapsed_ns = 0;  // since the start
};

/// What the loops measured of themselves (all loops together).
struct ClientMeters {
  ClientMeters();
  stats::Histogram read_lag_ns, issue_lag_ns;
  int64_t token_events = 0, merged_events = 0, unstamped_events = 0, stamp_faults = 0;
  int64_t late_messages = 0, connections_lost = 0, held_back = 0;
  core::Nanos clock_step_max_ns = 0;
  std::vector<double> loop_busy;  // fraction of the run, a loop
  // The least that a loop got: how it was scheduled, and its final spin at the end.
  core::Scheduling scheduling = core::Scheduling::kRealtime;
  core::Nanos spin_ns = 0;
};

struct LoadResult {
  record::RowStore rows;  // sealed
  ClientMeters client;
  core::Nanos t_start_ns = 0, t_end_ns = 0;
  bool interrupted = false;
  std::string server, prony_device;
};

class Driver {
 public:
  struct Options {
    WorkerOptions worker;  // `core` is set from `cores`
    int threads = 1;
    std::vector<int> cores;  // pin loop i to cores[i]; empty: not pinned
    int64_t feed_budget_bytes = int64_t{64} << 20;
    record::RowStore::Options rows;
  };
  using Progress = std::function<void(const LiveTotals&)>;

  /// Starts the threads. `interrupt` may be null.
  Driver(const Options& options, const std::atomic<bool>* interrupt);
  ~Driver();

  /// Opens `count` connections in all, ahead of the load; returns when each came or failed, bounded
  /// by the connect time-out.
  void open_connections(int64_t count);
  /// Runs the job to its end. `progress` is called on this thread, about four times a second.
  LoadResult run(const Job& job, const Progress& progress);

 private:
  LiveTotals live_totals(core::Nanos t_start_ns) const;
  void wait_for_workers(const std::function<void()>& every_tick);
  LoadResult collect(core::Nanos t_start_ns, record::RowStore rows);

  Options options_;
  const std::atomic<bool>* interrupt_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int pending_ = 0;  // workers not done with what they were told; under mutex_
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;
};

}  // namespace prony::load
