// Test helper: an HTTP server on a thread of its own whose handler is a lambda on the loop thread,
// and a scripted stream of exact deadlines. Thread safety: create and destroy on one thread; the
// handler runs on the server's loop.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "prony/core/check.hpp"
#include "prony/net/event_loop.hpp"
#include "prony/net/http_client.hpp"
#include "prony/net/http_server.hpp"

namespace prony::load {

class TestServer {
 public:
  using Handler = std::function<void(TestServer&, const net::HttpRequest&,
                                     const std::shared_ptr<net::Exchange>&)>;

  explicit TestServer(Handler handler) : handler_(std::move(handler)) {
    auto made = net::HttpServer::create(
        loop_, {},
        [this](const net::HttpRequest& request, const std::shared_ptr<net::Exchange>& exchange) {
          ++requests;
          handler_(*this, request, exchange);
        });
    PRONY_CHECK(made.ok());
    server_ = std::move(made).value();
    port_ = server_->port();
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~TestServer() {
    loop_.stop();
    thread_.join();
    steps_.clear();
    server_.reset();
  }

  net::Origin origin() const { return {.tls = false, .host = "127.0.0.1", .port = port_}; }
  net::Address address() const { return {"127.0.0.1", port_}; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  /// Loop thread: runs `action` at `t_ns`.
  void at(core::Nanos t_ns, std::function<void()> action) {
    auto timer = std::make_unique<net::Timer>(loop_, std::move(action));
    timer->arm(t_ns);
    steps_.push_back(std::move(timer));
  }

  /// A chat stream: role chunk, `tokens` single-token chunks from ttft on, itl apart, finish, usage
  /// and [DONE]; then the end of the body. `keep_alive` false closes the connection after it.
  void stream(const net::HttpRequest& request, std::shared_ptr<net::Exchange> exchange,
              core::Nanos ttft_ns, core::Nanos itl_ns, int tokens, bool keep_alive = true) {
    ++live;
    for (int now = live; now > live_max; now = live) live_max = now;
    exchange->start_stream(200, {{"Content-Type", "text/event-stream"}});
    exchange->write(
        event(R"({"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]})"));
    for (int i = 0; i < tokens; ++i) {
      at(request.t_received_ns + ttft_ns + i * itl_ns, [this, exchange, i, tokens, keep_alive] {
        if (!exchange->open()) return;
        exchange->write(event(R"({"choices":[{"index":0,"delta":{"content":"t"}}]})"));
        if (i + 1 < tokens) return;
        exchange->write(event(R"({"choices":[{"index":0,"delta":{},"finish_reason":"length"}]})"));
        exchange->write(event(R"({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":)" +
                              std::to_string(tokens) + "}}"));
        exchange->write("data: [DONE]\n\n");
        exchange->finish(keep_alive);
        --live;
      });
    }
  }
  static std::string event(const std::string& data) { return "data: " + data + "\n\n"; }

  std::atomic<int> requests{0}, live{0}, live_max{0};

 private:
  Handler handler_;
  net::EventLoop loop_;
  std::unique_ptr<net::HttpServer> server_;
  uint16_t port_ = 0;
  std::vector<std::unique_ptr<net::Timer>> steps_;
  std::thread thread_;
};

}  // namespace prony::load
