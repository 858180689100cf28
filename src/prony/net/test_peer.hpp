// For the tests of net: peers made of blocking sockets on threads of their own, which do exactly
// what a script says, and a client handler that writes down all it is told.
// Thread safety: as said at each class.
#pragma once
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "prony/core/check.hpp"
#include "prony/net/event_loop.hpp"
#include "prony/net/http_client.hpp"

namespace prony::net {

/// A blocking TCP socket; every call gives up after 5 s.
class TestSocket {
 public:
  explicit TestSocket(int fd) : fd_(fd) {
    const timeval limit{.tv_sec = 5, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~TestSocket() { close(); }
  TestSocket(const TestSocket&) = delete;
  TestSocket& operator=(const TestSocket&) = delete;

  static int connect_to(uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(port);
    PRONY_CHECK(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    return fd;
  }
  static sockaddr_in loopback(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
  }

  bool write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  /// Each piece in a segment of its own, as far as the kernel lets us.
  void write_pieces(std::string_view bytes, size_t size, int pause_us = 0) {
    for (size_t at = 0; at < bytes.size(); at += size) {
      write(bytes.substr(at, size));
      if (pause_us > 0) ::usleep(static_cast<useconds_t>(pause_us));
    }
  }
  /// Until `mark` is seen, the peer closes or 5 s pass.
  std::string read_until(std::string_view mark) {
    std::string got;
    size_t searched = 0;
    while (got.find(mark, searched) == std::string::npos) {
      searched = got.size() < mark.size() ? 0 : got.size() - mark.size();
      if (!read_some(got)) break;
    }
    return got;
  }
  std::string read_all() {
    std::string got;
    while (read_some(got)) {
    }
    return got;
  }
  bool read_some(std::string& to) {
    char block[16384];
    const ssize_t n = ::recv(fd_, block, sizeof block, 0);
    if (n <= 0) return false;
    to.append(block, static_cast<size_t>(n));
    return true;
  }
  void shut_write() { ::shutdown(fd_, SHUT_WR); }
  void reset() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

/// Accepts `connections` connections one after the other and runs the script on each.
class RawServer {
 public:
  using Script = std::function<void(TestSocket&, int connection)>;
  explicit RawServer(Script script, int connections = 1) : script_(std::move(script)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = TestSocket::loopback(0);
    PRONY_CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    PRONY_CHECK(::listen(listener_, 64) == 0);
    socklen_t size = sizeof address;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    const timeval limit{.tv_sec = 5, .tv_usec = 0};
    ::setsockopt(listener_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    thread_ = std::thread([this, connections] {
      for (int i = 0; i < connections; ++i) {
        const int fd = ::accept(listener_, nullptr, nullptr);
        if (fd < 0) return;
        TestSocket socket(fd);
        script_(socket, i);
      }
    });
  }
  ~RawServer() {
    join();
    ::close(listener_);
  }
  /// Waits for the script to end; afterwards the test may read what it wrote.
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  uint16_t port() const { return port_; }

 private:
  Script script_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::thread thread_;
};

/// Runs requests one after the other on one connection and keeps what came. Loop thread.
class TestClient final : public HttpConnection::Handler {
 public:
  struct Piece {
    std::string text;
    ReceiveStamp stamp;
  };
  struct Response {
    int status = 0;
    std::string content_type, retry_after, server, prony_device, body;
    bool chunked = false, complete = false, reusable = false;
    std::vector<Piece> pieces;
    core::Nanos t_send_ns = 0, t_sent_ns = 0;
    ReceiveStamp head_stamp, end_stamp;
  };

  TestClient(EventLoop& loop, const Origin& origin, std::vector<std::string> requests)
      : loop_(loop),
        requests_(std::move(requests)),
        connection_(loop, origin, {.ip = "127.0.0.1", .port = origin.port}, *this),
        deadline_(loop, [this] {
          timed_out = true;
          loop_.stop();
        }) {}

  /// Runs the loop until all requests are answered or something failed; 10 s at most.
  TestClient& run() {
    deadline_.arm(core::monotonic_ns() + 10 * core::kNanosPerSecond);
    connection_.connect();
    loop_.run();
    deadline_.cancel();
    return *this;
  }

  HttpConnection& connection() { return connection_; }
  const Response& last() const { return responses.back(); }

  std::vector<Response> responses;
  std::vector<NetError> errors;
  int idle_closes = 0;
  bool timed_out = false;
  bool wait_for_idle_close = false;
  std::function<void(std::string_view)> on_piece;

 private:
  void on_connected(core::Nanos) override { next(); }
  void on_sent(core::Nanos t_send_ns, core::Nanos t_sent_ns) override {
    responses.back().t_send_ns = t_send_ns;
    responses.back().t_sent_ns = t_sent_ns;
  }
  void on_head(const ResponseHead& head, const ReceiveStamp& stamp) override {
    Response& r = responses.back();
    r.status = head.status;
    r.content_type = head.content_type;
    r.retry_after = head.retry_after;
    r.server = head.server;
    r.prony_device = head.prony_device;
    r.chunked = head.chunked;
    r.head_stamp = stamp;
  }
  void on_body(std::string_view piece, const ReceiveStamp& stamp) override {
    responses.back().body += piece;
    responses.back().pieces.push_back({std::string(piece), stamp});
    if (on_piece) on_piece(piece);
  }
  void on_complete(const ReceiveStamp& stamp, bool reusable) override {
    responses.back().complete = true;
    responses.back().reusable = reusable;
    responses.back().end_stamp = stamp;
    if (reusable && sent_ < requests_.size()) return next();
    if (!(reusable && wait_for_idle_close)) loop_.stop();
  }
  void on_error(const NetError& error, const ReceiveStamp&) override {
    errors.push_back(error);
    loop_.stop();
  }
  void on_idle_close() override {
    ++idle_closes;
    loop_.stop();
  }
  void next() {
    responses.emplace_back();
    connection_.send(requests_[sent_++]);
  }

  EventLoop& loop_;
  std::vector<std::string> requests_;
  size_t sent_ = 0;
  HttpConnection connection_;
  Timer deadline_;
};

inline Origin local_origin(uint16_t port) {
  return {.host = "127.0.0.1", .port = port};
}

}  // namespace prony::net
