#include "prony/load/channel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "prony/core/check.hpp"

namespace prony::load {
namespace {

using record::Status;

std::string overdue_text(Status status, const Timeouts& timeouts) {
  switch (status) {
    case Status::kTimeoutConnect:
      return fmt::format("no connection within {:g} s", core::to_seconds(timeouts.connect_ns));
    case Status::kTimeoutTtft:
      return fmt::format("no token within {:g} s", core::to_seconds(timeouts.first_token_ns));
    case Status::kTimeoutStall:
      return fmt::format("nothing for {:g} s", core::to_seconds(timeouts.stall_ns));
    default:
      return fmt::format("not finished within {:g} s", core::to_seconds(timeouts.total_ns));
  }
}

}  // namespace

Channel::Channel(const Setup& setup, Owner& owner)
    : setup_(setup), owner_(owner), timeline_(setup.parser, setup.meters, setup.timeline) {
  deadline_.owner = this;
}

Channel::~Channel() {
  setup_.deadlines.remove(deadline_);
}

void Channel::open_ahead(core::Nanos now_ns) {
  PRONY_CHECK(closed() && !has_request_);
  fresh_ = false;
  connect(now_ns);
}

void Channel::start(record::RequestRow row, std::string message, core::Nanos t_released_ns,
                    core::Nanos now_ns) {
  PRONY_CHECK(!has_request_ && state_ != State::kBusy);
  has_request_ = true;
  issue_lag_ns_ = -1;
  message_ = std::move(message);
  t_released_ns_ = t_released_ns;
  timeline_.begin(std::move(row));
  if (state_ == State::kIdle) {
    fresh_ = false;
    send();
  } else if (state_ == State::kClosed) {
    fresh_ = true;
    connect(now_ns);
  }  // else a connection opened ahead is on its way
}

void Channel::connect(core::Nanos now_ns) {
  connection_ = std::make_unique<net::HttpConnection>(setup_.loop, setup_.origin, setup_.address,
                                                      static_cast<Handler&>(*this));
  state_ = State::kConnecting;
  t_connecting_ns_ = now_ns;
  connection_->connect();
  update_deadline();
}

void Channel::on_connected(core::Nanos t_connect_ns) {
  t_connected_ns_ = t_connect_ns;
  state_ = State::kIdle;
  if (has_request_) {
    if (fresh_) timeline_.on_connected(t_connecting_ns_, t_connect_ns);
    send();
    return;
  }
  setup_.deadlines.remove(deadline_);
  owner_.on_ready(*this);
}

void Channel::send() {
  state_ = State::kBusy;
  timeline_.on_sending(core::monotonic_ns());
  update_deadline();
  connection_->send(message_);
}

void Channel::on_sent(core::Nanos t_send_ns, core::Nanos t_sent_ns) {
  timeline_.on_sent(t_send_ns, t_sent_ns);
  if (issue_lag_ns_ >= 0) return;  // a resend
  // The handshake is the network's time, not the client's lateness.
  const core::Nanos handshake =
      std::max<core::Nanos>(0, t_connected_ns_ - std::max(t_connecting_ns_, t_released_ns_));
  issue_lag_ns_ = std::max<core::Nanos>(0, t_send_ns - t_released_ns_ - handshake);
  owner_.on_issued(*this);
}

void Channel::on_head(const net::ResponseHead& head, const net::ReceiveStamp& stamp) {
  if (setup_.parser.form().echoes_prompt) timeline_.on_request(message_);
  timeline_.on_head(head, stamp);
  owner_.on_head(head);
  if (timeline_.row().t_sent_ns) message_ = {};  // it cannot have to go again
  update_deadline();
}

void Channel::on_body(std::string_view piece, const net::ReceiveStamp& stamp) {
  timeline_.on_body(piece, stamp);
  if (timeline_.wants_close()) {
    stop(Status::kCancelled, "closed", stamp.user_ns);
    return;
  }
  update_deadline();
}

void Channel::on_complete(const net::ReceiveStamp& stamp, bool reusable) {
  timeline_.on_complete(stamp);
  finish(reusable);
}

void Channel::on_error(const net::NetError& error, const net::ReceiveStamp& stamp) {
  if (!has_request_) {  // a connection opened ahead failed
    drop_connection();
    owner_.on_lost(*this);
    return;
  }
  // Only a connection that had been lying idle may have died of that; a fresh one that closes
  // without an answer is the server's answer.
  const bool went_stale = state_ == State::kBusy && !fresh_ && !error.response_started &&
                          error.kind == net::NetErrorKind::kClosed;
  const bool never_came = state_ == State::kConnecting && !fresh_;
  if (went_stale || never_came) {
    drop_connection();
    if (went_stale) timeline_.begin_again();
    fresh_ = true;
    connect(stamp.user_ns);
    return;
  }
  timeline_.on_error(error, stamp);
  finish(false);
}

void Channel::on_idle_close() {
  drop_connection();
  owner_.on_lost(*this);
}

void Channel::stop(Status status, std::string_view why, core::Nanos now_ns) {
  if (has_request_) {
    timeline_.on_stopped(status, why, now_ns);
    finish(false);
  } else {
    drop_connection();
  }
}

void Channel::drop_connection() {
  if (connection_) connection_->close();
  connection_.reset();
  state_ = State::kClosed;
  setup_.deadlines.remove(deadline_);
}

void Channel::finish(bool reusable) {
  if (reusable) {
    state_ = State::kIdle;
    setup_.deadlines.remove(deadline_);
  } else {
    drop_connection();
  }
  has_request_ = false;
  message_ = {};
  auto row = timeline_.take_row();
  const core::Nanos t_free_ns = row.t_close_ns.value_or(0);
  owner_.on_finished(*this, std::move(row), t_free_ns);
}

// The heap learns of earlier deadlines only; check_deadline() finds the later ones.
void Channel::update_deadline() {
  const core::Nanos at_ns = state_ == State::kConnecting
                                ? t_connecting_ns_ + setup_.timeouts.connect_ns
                                : timeline_.deadline(setup_.timeouts).at_ns;
  if (!deadline_.queued() || at_ns < deadline_.at_ns) setup_.deadlines.set(deadline_, at_ns);
}

void Channel::check_deadline(core::Nanos now_ns) {
  if (state_ == State::kConnecting) {
    const core::Nanos at_ns = t_connecting_ns_ + setup_.timeouts.connect_ns;
    if (now_ns < at_ns) {
      setup_.deadlines.set(deadline_, at_ns);
    } else if (has_request_) {
      stop(Status::kTimeoutConnect, overdue_text(Status::kTimeoutConnect, setup_.timeouts), now_ns);
    } else {
      drop_connection();
      owner_.on_lost(*this);
    }
    return;
  }
  if (state_ != State::kBusy) {
    setup_.deadlines.remove(deadline_);
    return;
  }
  const auto deadline = timeline_.deadline(setup_.timeouts);
  if (now_ns < deadline.at_ns) {
    setup_.deadlines.set(deadline_, deadline.at_ns);
  } else {
    stop(deadline.status, overdue_text(deadline.status, setup_.timeouts), now_ns);
  }
}

}  // namespace prony::load
