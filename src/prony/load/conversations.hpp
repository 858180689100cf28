// Conversations: the sessions that one worker has open: what was said so far, and the turns that
// wait for their time. A turn is due when the one before it has ended and its think time is over;
// its message is written at that end, during the think time, so that it leaves on time. A turn that
// fails ends its session: the turns after it become rows of status cancelled.
// Thread safety: none; the worker's thread.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/load/dialect.hpp"
#include "prony/load/message_feed.hpp"
#include "prony/record/request_row.hpp"
#include "prony/workload/schedule.hpp"

namespace prony::load {

/// How the turns of a run are written. The feed of such a run holds prompts, not messages.
struct SessionJob {
  /// The HTTP message of request `index`. Any thread.
  std::function<std::string(int64_t index, std::span<const BodyMessage> history,
                            std::string_view prompt)>
      write;
  /// The answer that later turns quote, instead of the one received; null: the one received.
  std::function<std::string(int64_t index)> answer;
  bool keep_text = false;  // rows keep their text (--save-text)
};

class Conversations {
 public:
  Conversations(const SessionJob& job, std::span<const workload::ScheduleEntry> entries,
                MessageFeed& feed)
      : job_(job), entries_(entries), feed_(feed) {}

  struct Turn {
    int64_t index = 0;
    core::Nanos t_due_ns = 0;
    std::string message;
  };

  /// The message of a first turn. `late`: as MessageFeed::take().
  std::string open(int64_t index, bool& late);
  /// A turn ended: takes note of its answer (and clears it from the row unless it is kept); true if
  /// another turn will come, which waits from now on. Times by `t_end_ns`.
  bool on_end(record::RequestRow& row, core::Nanos t_end_ns, bool& late);
  /// A turn ended when nothing more is sent: forgets its session.
  void abandon(record::RequestRow& row);
  /// The turns after `index` that will not happen; the session is closed.
  std::span<const workload::ScheduleEntry> close(int64_t index);

  bool waiting() const { return !heap_.empty(); }
  size_t waiting_count() const { return heap_.size(); }
  /// When the next turn is due. Requires waiting().
  core::Nanos next_due_ns() const { return heap_.front()->turn.t_due_ns; }
  /// Takes it out. Requires waiting().
  Turn take_due();
  /// Forgets all turns that wait, and gives back those that were due.
  std::vector<Turn> drop_waiting(core::Nanos now_ns);

 private:
  struct Session {
    std::vector<std::pair<std::string, std::string>> said;  // prompts and answers so far
    std::string prompt;                                     // of the turn in flight or waiting
    Turn turn;
  };
  static bool later(const std::unique_ptr<Session>& a, const std::unique_ptr<Session>& b);
  void clear_text(record::RequestRow& row) const;
  std::string written(int64_t index, const Session& session) const;
  bool has_next(int64_t index) const;

  const SessionJob& job_;
  std::span<const workload::ScheduleEntry> entries_;
  MessageFeed& feed_;
  std::unordered_map<int64_t, std::unique_ptr<Session>> in_flight_;  // by the index of the turn
  std::vector<std::unique_ptr<Session>> heap_;                       // waiting, soonest first
};

}  // namespace prony::load
