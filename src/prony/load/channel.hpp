// Channel: one place for one request at a time: a connection, kept alive between requests and
// replaced when it dies, and the Timeline of the request on it. Resends a request once, on a fresh
// connection, if a kept-alive one died before a byte of the answer came back.
// Thread safety: loop thread only. Re-entrancy: each owner call is the last thing a Channel does in
// a callback, so the owner may start the next request on it at once.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "prony/load/deadline_heap.hpp"
#include "prony/load/timeline.hpp"
#include "prony/net/event_loop.hpp"
#include "prony/net/http_client.hpp"
#include "prony/record/request_row.hpp"

namespace prony::load {

class Channel final : private net::HttpConnection::Handler {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    /// The request ended; the channel is idle() or closed(). `t_free_ns`: when its place became
    /// free, by the clock of the stamps.
    virtual void on_finished(Channel& channel, record::RequestRow row, core::Nanos t_free_ns) = 0;
    /// A connection opened ahead is idle now.
    virtual void on_ready(Channel& channel) = 0;
    /// A connection without a request is gone; the channel is closed().
    virtual void on_lost(Channel& channel) = 0;
    virtual void on_head(const net::ResponseHead& head) = 0;
    /// The request left for the first time; issue_lag_ns() is known.
    virtual void on_issued(Channel& channel) = 0;
  };
  struct Setup {  // of the loop; outlives its channels
    net::EventLoop& loop;
    const net::Origin& origin;
    const net::Address& address;
    const Timeouts& timeouts;
    EventParser& parser;
    LoopMeters& meters;
    DeadlineHeap& deadlines;
    Timeline::Options timeline;
  };

  Channel(const Setup& setup, Owner& owner);
  ~Channel();

  bool closed() const { return state_ == State::kClosed; }
  bool idle() const { return state_ == State::kIdle; }
  bool busy() const { return has_request_; }

  /// Opens a connection ahead of its use. Requires closed().
  void open_ahead(core::Nanos now_ns);
  /// Sends a request: at once if idle, after the connection is there otherwise. `t_released_ns`:
  /// when it was free to go. Requires !busy().
  void start(record::RequestRow row, std::string message, core::Nanos t_released_ns,
             core::Nanos now_ns);
  /// Ends a request in flight as `status` (on_finished() follows) or closes without one.
  void stop(record::Status status, std::string_view why, core::Nanos now_ns);
  /// Called when the deadline in the heap came: ends what is overdue, else sets the next one.
  void check_deadline(core::Nanos now_ns);

  /// How long after it was free to go the request of this channel left, without the time of the
  /// handshake; -1 if it never left. Valid in on_issued() and on_finished().
  core::Nanos issue_lag_ns() const { return issue_lag_ns_; }

  /// Where the owner keeps it while it has no request; the owner's.
  std::vector<Channel*>* list = nullptr;
  size_t place = 0;

 private:
  enum class State { kClosed, kConnecting, kIdle, kBusy };

  void on_connected(core::Nanos t_connect_ns) override;
  void on_sent(core::Nanos t_send_ns, core::Nanos t_sent_ns) override;
  void on_head(const net::ResponseHead& head, const net::ReceiveStamp& stamp) override;
  void on_body(std::string_view piece, const net::ReceiveStamp& stamp) override;
  void on_complete(const net::ReceiveStamp& stamp, bool reusable) override;
  void on_error(const net::NetError& error, const net::ReceiveStamp& stamp) override;
  void on_idle_close() override;

  void connect(core::Nanos now_ns);
  void send();
  void drop_connection();
  void update_deadline();
  void finish(bool reusable);

  const Setup& setup_;
  Owner& owner_;
  std::unique_ptr<net::HttpConnection> connection_;
  Timeline timeline_;
  DeadlineNode deadline_;
  State state_ = State::kClosed;
  bool has_request_ = false;
  bool fresh_ = false;  // the connection was opened for this very request
  core::Nanos t_connecting_ns_ = 0, t_connected_ns_ = 0;
  core::Nanos t_released_ns_ = 0;
  core::Nanos issue_lag_ns_ = -1;
  std::string message_;  // kept until the answer begins: it may have to go again
};

}  // namespace prony::load
