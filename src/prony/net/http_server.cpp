#include "prony/net/http_server.hpp"

#include <cerrno>
#include <unordered_map>
#include <utility>
#include <vector>

#include "prony/net/fd_watch.hpp"
#include "prony/net/http_format.hpp"
#include "prony/net/server_connection.hpp"
#include "prony/net/socket.hpp"

namespace prony::net {
namespace {

// So many connections are taken in one turn before other sockets get theirs.
constexpr int kAcceptsPerTurn = 64;
// Out of file descriptors: accept() fails at once for as long as that lasts.
constexpr core::Nanos kAcceptPauseNs = 100 * core::kNanosPerMilli;

class HttpServerImpl final : public HttpServer, public ServerContext, FdWatch::Handler {
 public:
  HttpServerImpl(EventLoop& event_loop, const Options& server_options, HttpServer::Handler answer,
                 int listener)
      : ServerContext(event_loop, server_options, std::move(answer)),
        port_(local_port(listener)),
        watch_(event_loop, *this),
        accept_again_(event_loop, [this] { watch_.want_read(true); }) {
    watch_.open(listener);
    watch_.want_read(true);
  }
  ~HttpServerImpl() override {
    watch_.close();
    while (!connections_.empty()) close_one();
  }

  uint16_t port() const override { return port_; }
  size_t open_connections() const override { return connections_.size(); }

  void stop_accepting() override {
    draining = true;
    accept_again_.cancel();
    watch_.close();
    std::vector<std::shared_ptr<ServerConnection>> all;
    for (const auto& [key, connection] : connections_) all.push_back(connection);
    for (const auto& connection : all) connection->drain();
  }

 private:
  void close_one() {
    const std::shared_ptr<ServerConnection> connection = connections_.begin()->second;
    connection->close();  // forgets itself
  }
  void forget(ServerConnection& connection) override { connections_.erase(&connection); }

  void on_readable() override {
    for (int i = 0; i < kAcceptsPerTurn && watch_.is_open(); ++i) {
      const int fd = accept_connection(watch_.fd());
      if (fd >= 0) {
        const auto connection = std::make_shared<ServerConnection>(*this, fd);
        connections_.emplace(connection.get(), connection);
        connection->start();
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        watch_.want_read(false);
        return accept_again_.arm(core::monotonic_ns() + kAcceptPauseNs);
      } else if (errno != EINTR && errno != ECONNABORTED) {
        return;
      }
    }
  }

  const uint16_t port_;
  std::unordered_map<ServerConnection*, std::shared_ptr<ServerConnection>> connections_;
  FdWatch watch_;
  Timer accept_again_;
};

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (equal_ignoring_case(key, name)) return value;
  }
  return {};
}

Result<std::unique_ptr<HttpServer>> HttpServer::create(EventLoop& loop, const Options& options,
                                                       Handler handler) {
  auto listener = listen_on(options.host, options.port);
  if (!listener) return listener.error();
  return std::unique_ptr<HttpServer>(
      new HttpServerImpl(loop, options, std::move(handler), listener.value()));
}

}  // namespace prony::net
