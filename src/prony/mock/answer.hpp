// Answer: one answer of the mock being played: a timer that is set to each step's absolute deadline
// (receipt of the request plus the step's offset), so that lateness never adds up, and the stamps
// of what was written. Thread safety: loop thread.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "prony/mock/plan.hpp"
#include "prony/mock/render.hpp"
#include "prony/mock/stamps.hpp"
#include "prony/mock/timeline.hpp"
#include "prony/mock/wire_out.hpp"
#include "prony/net/event_loop.hpp"
#include "prony/net/http_server.hpp"

namespace prony::mock {

class Answer {
 public:
  struct Request {
    RequestFacts facts;
    Plan plan;
    std::string id;     // X-Request-Id
    std::string model;  // as asked for
    core::Nanos t_received_ns = 0;
  };
  /// `on_end` is called once, last, and may destroy the answer: when it is whole, was broken off as
  /// planned, or the peer has gone.
  Answer(net::EventLoop& loop, Request request, std::shared_ptr<net::Exchange> exchange,
         std::function<void(Answer&)> on_end);
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  void start();

  const Request& request() const { return request_; }
  int64_t tokens_sent() const { return tokens_sent_; }
  /// The stamps so far; leaves none here.
  std::vector<std::pair<core::Nanos, int64_t>> take_writes() { return std::move(writes_); }

 private:
  void play();
  void play_due(core::Nanos now_ns);
  bool end();
  void whole();
  void note_write(int64_t tokens);
  void resolve_stamps();
  void over();
  core::Nanos due_ns(size_t step) const { return request_.t_received_ns + steps_[step].at_ns; }

  const Request request_;
  std::shared_ptr<net::Exchange> exchange_;
  std::function<void(Answer&)> on_end_;
  net::Timer timer_;
  WireOut out_;
  Renderer renderer_;
  std::vector<Step> steps_;
  size_t next_ = 0;
  bool head_sent_ = false;
  bool over_ = false;
  std::string buffer_;  // what goes into the next write
  int64_t buffer_tokens_ = 0;
  std::vector<std::pair<core::Nanos, int64_t>> writes_;
  size_t unresolved_ = 0;  // writes from here on have no stamp yet: the peer reads slowly
  int64_t tokens_sent_ = 0;
};

}  // namespace prony::mock
