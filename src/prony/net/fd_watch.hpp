// FdWatch: readiness of one file descriptor on an EventLoop, level-triggered: while an interest is
// on and the descriptor is ready, the handler is called again. Owns the descriptor. The seam that
// keeps Boost.Asio inside event_loop.cpp. Allocates at open(), not per event.
// Thread safety: loop thread only.
#pragma once
#include "prony/net/event_loop.hpp"

namespace prony::net {

class FdWatch {
 public:
  /// A call may close or destroy the watch. Errors and hang-ups count as ready: the next system
  /// call on the descriptor reports them.
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void on_readable() = 0;
    virtual void on_writable() {}
  };

  FdWatch(EventLoop& loop, Handler& handler) : loop_(loop), handler_(handler) {}
  ~FdWatch() { close(); }
  FdWatch(const FdWatch&) = delete;
  FdWatch& operator=(const FdWatch&) = delete;

  /// Takes over `fd`, nonblocking, with no interest on. Requires closed (checked).
  void open(int fd);
  void close();
  bool is_open() const { return state_ != nullptr; }
  int fd() const { return fd_; }  // -1 while closed

  void want_read(bool on);
  void want_write(bool on);

  struct State;  // event_loop.cpp

 private:
  EventLoop& loop_;
  Handler& handler_;
  State* state_ = nullptr;
  int fd_ = -1;
};

}  // namespace prony::net
