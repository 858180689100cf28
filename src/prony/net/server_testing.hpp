// For the tests of HttpServer: a server on a loop and thread of its own, and requests as text.
// Thread safety: ServerThread from the test's thread.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "prony/net/http_server.hpp"
#include "prony/net/test_peer.hpp"

namespace prony::net {

/// A server on a loop and thread of its own.
class ServerThread {
 public:
  explicit ServerThread(HttpServer::Handler handler, HttpServer::Options options = {}) {
    server_ = std::move(HttpServer::create(loop, options, std::move(handler))).value();
    thread_ = std::thread([this] { loop.run(); });
  }
  ~ServerThread() {
    if (thread_.joinable()) join();
  }
  void join() {
    loop.stop();
    thread_.join();
    server_.reset();
  }
  uint16_t port() const { return server_->port(); }
  HttpServer& server() { return *server_; }
  template <class F>
  auto on_loop(F f) {
    std::promise<decltype(f())> result;
    loop.post([&] { result.set_value(f()); });
    return result.get_future().get();
  }
  template <class F>
  bool soon(F f) {
    for (int i = 0; i < 500; ++i) {
      if (on_loop(f)) return true;
      ::usleep(10'000);
    }
    return false;
  }

  EventLoop loop;

 private:
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

inline void echo(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) {
  exchange->respond(
      200, {{"Content-Type", "text/plain"}},
      fmt::format("{} {} {} {}", request.method, request.path, request.query, request.body));
}

inline std::string body_of(const std::string& message) {
  const size_t at = message.find("\r\n\r\n");
  return at == std::string::npos ? "no body" : message.substr(at + 4);
}

inline std::string post(std::string_view path, std::string_view body, std::string_view extra = "") {
  return fmt::format("POST {} HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n{}\r\n{}", path,
                     body.size(), extra, body);
}

/// Sends `request`, lets the server close or `mark` come, returns all that came.
inline std::string ask(uint16_t port, std::string_view request,
                       std::string_view mark = "\x01never") {
  TestSocket socket(TestSocket::connect_to(port));
  socket.write(request);
  return socket.read_until(mark);
}

}  // namespace prony::net
