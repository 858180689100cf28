#include "prony/load/conversations.hpp"

#include <algorithm>

#include "prony/core/check.hpp"

namespace prony::load {

bool Conversations::later(const std::unique_ptr<Session>& a, const std::unique_ptr<Session>& b) {
  // Equal instants by index, so that a run does not depend on the heap's whims.
  return a->turn.t_due_ns != b->turn.t_due_ns ? a->turn.t_due_ns > b->turn.t_due_ns
                                              : a->turn.index > b->turn.index;
}

bool Conversations::has_next(int64_t index) const {
  const auto at = static_cast<size_t>(index);
  return entries_[at].session >= 0 && at + 1 < entries_.size() &&
         entries_[at + 1].session == entries_[at].session;
}

std::string Conversations::written(int64_t index, const Session& session) const {
  std::vector<BodyMessage> history;
  history.reserve(2 * session.said.size());
  for (const auto& [prompt, answer] : session.said) {
    history.push_back({"user", prompt});
    history.push_back({"assistant", answer});
  }
  return job_.write(index, history, session.prompt);
}

std::string Conversations::open(int64_t index, bool& late) {
  auto session = std::make_unique<Session>();
  session->prompt = feed_.take(index, late);
  auto message = written(index, *session);
  if (has_next(index)) in_flight_.emplace(index, std::move(session));
  return message;
}

bool Conversations::on_end(record::RequestRow& row, core::Nanos t_end_ns, bool& late) {
  late = false;
  const auto found = in_flight_.find(row.index);
  const bool goes_on = found != in_flight_.end() && row.status == record::Status::kOk;
  std::unique_ptr<Session> session;
  if (found != in_flight_.end()) {
    session = std::move(found->second);
    in_flight_.erase(found);
  }
  if (goes_on) {
    // Reasoning is not quoted: chat templates drop it from earlier turns.
    auto answer = job_.answer ? job_.answer(row.index) : row.text;
    session->said.emplace_back(std::move(session->prompt), std::move(answer));
    const int64_t next = row.index + 1;
    session->prompt = feed_.take(next, late);
    session->turn = {next, t_end_ns + entries_[static_cast<size_t>(next)].think_ns,
                     written(next, *session)};
    heap_.push_back(std::move(session));
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  clear_text(row);
  return goes_on;
}

void Conversations::clear_text(record::RequestRow& row) const {
  if (job_.keep_text) return;
  row.text = {};
  row.reasoning = {};
  row.tool_calls = {};
}

void Conversations::abandon(record::RequestRow& row) {
  in_flight_.erase(row.index);
  clear_text(row);
}

std::span<const workload::ScheduleEntry> Conversations::close(int64_t index) {
  auto last = index;
  while (has_next(last)) feed_.drop(++last);
  return entries_.subspan(static_cast<size_t>(index) + 1, static_cast<size_t>(last - index));
}

Conversations::Turn Conversations::take_due() {
  PRONY_CHECK(!heap_.empty(), "a turn that waits");
  std::pop_heap(heap_.begin(), heap_.end(), later);
  auto session = std::move(heap_.back());
  heap_.pop_back();
  auto turn = std::move(session->turn);
  if (has_next(turn.index)) in_flight_.emplace(turn.index, std::move(session));
  return turn;
}

std::vector<Conversations::Turn> Conversations::drop_waiting(core::Nanos now_ns) {
  std::vector<Turn> due;
  while (!heap_.empty()) {
    auto turn = take_due();
    in_flight_.erase(turn.index);
    if (turn.t_due_ns <= now_ns) due.push_back(std::move(turn));
  }
  return due;
}

}  // namespace prony::load
