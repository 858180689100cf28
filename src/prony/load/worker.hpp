// Worker: one event loop that loads the endpoint with its share of a schedule: sends each request
// when it is due (open loop) or when a place is free (closed loop), keeps a pool of connections,
// ends what is overdue, and leaves the rows in the store. Workers share nothing but the MessageFeed
// and the RowStore.
//
// A request is due at its intended instant; it is released when a place under max_in_flight is free
// too; it is sent when its connection is there. Latencies can be taken from the first and the last.
// Thread safety: run() on its thread; begin(), stop(), post-run access as said at each.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "prony/core/scheduling.hpp"
#include "prony/load/channel.hpp"
#include "prony/load/conversations.hpp"
#include "prony/load/deadline_heap.hpp"
#include "prony/load/dialect.hpp"
#include "prony/load/message_feed.hpp"
#include "prony/load/meters.hpp"
#include "prony/net/event_loop.hpp"
#include "prony/record/row_store.hpp"
#include "prony/workload/schedule.hpp"

namespace prony::load {

struct WorkerOptions {
  net::Origin origin;
  net::Address address;
  const Dialect* dialect = nullptr;
  Timeouts timeouts;
  Timeline::Options timeline;
  core::Nanos spin_ns = 0;        // before each intended instant; or EventLoop::kLearnSpin
  bool prefer_thread = false;     // before the ordinary threads of this host, if we may
  int64_t connections_ahead = 0;  // idle connections kept ready while requests remain
  int64_t connections_max = 0;    // 0: no limit of ours
  std::optional<int> core;        // pin to
};

/// What a worker does at a time: the warm-up, or the measured load.
struct Phase {
  std::span<const workload::ScheduleEntry> entries;  // of all workers
  int64_t first = 0, stride = 1;                     // this worker's: first, first + stride, ...
  bool closed_loop = false;  // due when a place is free; t_intended of the entries is ignored
  std::optional<int64_t> max_in_flight;  // of this worker
  core::Nanos t_start_ns = 0;            // instant 0 of the schedule
  core::Nanos t_stop_ns = 0;             // nothing is sent at or after it; 0: no such time
  MessageFeed* feed = nullptr;
  record::RowStore::Appender* rows = nullptr;             // this worker's
  std::function<std::string(int64_t index)> id;           // X-Request-Id of a request
  std::function<void(const record::RequestRow&)> on_row;  // as it ends, on the loop; may be empty
  /// Conversations: how turns are written, and the indices of the first turns of this worker, which
  /// has its sessions whole (`first` and `stride` are not used). In a closed loop a session keeps
  /// its place until its last turn has ended.
  const SessionJob* sessions = nullptr;
  std::vector<int64_t> session_starts;
};

/// What a worker brings back.
struct WorkerResult {
  net::EventLoop::Occupancy occupancy;  // from t_start to the end of the phase
  core::Nanos clock_step_max_ns = 0;
  core::Nanos spin_ns = 0;  // at the end
  core::Scheduling scheduling = core::Scheduling::kNormal;
  std::string server, prony_device;  // headers of the first answer
  int64_t connections_lost = 0;      // idle ones, closed by the server
  int64_t held_back = 0;             // requests that waited because connections_max was reached
};

class Worker final : private Channel::Owner {
 public:
  Worker(const WorkerOptions& options, std::function<void()> on_phase_end);
  ~Worker() override;

  /// Thread main: runs the loop until quit().
  void run();
  // Any thread:
  /// Opens `count` connections; `done` is called on the loop thread when all have come or failed.
  void open_connections(int64_t count, std::function<void()> done);
  /// One phase at a time; on_phase_end is called on the loop thread when all its requests ended.
  void begin(Phase phase);
  /// Ends the phase now: requests in flight or due end as `status`.
  void stop(record::Status status, std::string why);
  /// Sends nothing more; requests in flight go on to their end.
  void conclude();
  void quit();

  const LoopMeters& meters() const { return *meters_; }  // `live` any thread
  /// After on_phase_end and before the next begin().
  WorkerResult take_result();

 private:
  void on_finished(Channel& channel, record::RequestRow row, core::Nanos t_free_ns) override;
  void on_ready(Channel& channel) override;
  void on_lost(Channel& channel) override;
  void on_head(const net::ResponseHead& head) override;
  void on_issued(Channel& channel) override;

  void start_phase();
  void pump(core::Nanos t_free_ns);
  void issue(const workload::ScheduleEntry& entry, core::Nanos t_released_ns, core::Nanos now_ns);
  void issue_turn(core::Nanos t_free_ns, core::Nanos now_ns);
  void send(const workload::ScheduleEntry& entry, std::string message, core::Nanos t_intended_ns,
            core::Nanos t_released_ns, core::Nanos now_ns);
  void continue_session(record::RequestRow& row, core::Nanos t_end_ns);
  /// A turn is due and may go.
  bool turn_ready(core::Nanos now_ns) const;
  Channel* take_channel();
  Channel& new_channel();
  void keep_ahead(core::Nanos now_ns);
  void move_to(Channel& channel, std::vector<Channel*>* list);
  void on_opened(Channel& channel);
  void open_one();
  void give_up_unsent(record::Status status, std::string_view why);
  void end_phase_if_done();
  void check_deadlines();
  record::RequestRow new_row(const workload::ScheduleEntry& entry, core::Nanos t_intended_ns) const;
  void keep(const record::RequestRow& row);
  int64_t entry_index(int64_t position) const {
    return phase_.sessions != nullptr ? phase_.session_starts[static_cast<size_t>(position)]
                                      : phase_.first + position * phase_.stride;
  }
  const workload::ScheduleEntry& entry_at(int64_t position) const;
  core::Nanos intended_ns(int64_t position) const;
  bool has_place() const { return in_flight_ + held_ < places_; }

  WorkerOptions options_;
  std::function<void()> on_phase_end_;
  net::EventLoop loop_;
  core::Scheduling scheduling_ = core::Scheduling::kNormal;
  std::unique_ptr<LoopMeters> meters_;
  std::unique_ptr<EventParser> parser_;
  DeadlineHeap deadlines_;
  Channel::Setup setup_;
  net::Timer arrival_timer_, deadline_timer_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<Channel*> closed_, idle_, coming_;  // free ones, by state; coming_: opened ahead

  bool running_ = false;   // a phase is on
  bool stopping_ = false;  // nothing is sent any more
  Phase phase_;
  int64_t count_ = 0;   // of this worker in the phase
  int64_t due_ = 0;     // positions below it have come due
  int64_t issued_ = 0;  // positions below it were given to a channel, or given up
  int64_t in_flight_ = 0;
  int64_t places_ = 0;  // most requests in flight
  int64_t held_ = 0;    // places of sessions that think, in a closed loop
  std::optional<Conversations> conversations_;
  int64_t opening_ = 0;  // of open_connections()
  int64_t to_open_ = 0;  // of those: not begun yet
  std::function<void()> opened_;
  WorkerResult result_;  // of the phase that is on
  WorkerResult ended_;   // of the phase that ended
};

}  // namespace prony::load
