// HttpServer: HTTP/1.1 over one EventLoop (Boost.Beast parses). A handler gets each request with an
// Exchange and answers at once or later, whole or as a stream. The server and everything of an
// Exchange live on the loop thread; other threads use EventLoop::post.
// Thread safety: loop thread only.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/core/result.hpp"
#include "prony/net/event_loop.hpp"

namespace prony::net {

using Headers = std::vector<std::pair<std::string, std::string>>;

/// Valid, with all its views, until the handler returns: keep copies.
struct HttpRequest {
  std::string method;
  std::string path;   // without query
  std::string query;  // after '?', may be empty
  Headers headers;
  std::string body;
  uint64_t index_on_connection = 0;  // requests that came before it on its connection
  core::Nanos t_received_ns = 0;     // the request was whole: just after the read that completed it

  /// Value of a header, case-insensitive; empty if absent.
  std::string_view header(std::string_view name) const;
};

/// One request being answered. Held by shared_ptr: the handler may keep it for as long as it
/// streams. Calls after the peer has gone are ignored. Dropped without an answer it answers 500;
/// dropped in the middle of a stream it closes the connection, so that no client waits for ever.
class Exchange {
 public:
  virtual ~Exchange() = default;

  /// A whole response. Requires that nothing was sent yet (checked).
  virtual void respond(int status, const Headers& headers, std::string_view body) = 0;
  /// Sends the head of a stream: chunked, or until close for an HTTP/1.0 client.
  virtual void start_stream(int status, const Headers& headers) = 0;
  /// One chunk, handed to the kernel at once where it takes it, else queued.
  virtual void write(std::string_view piece) = 0;
  /// Bytes outside any framing, for servers that misbehave on purpose (mock). Without a
  /// start_stream() the whole response, head included, is the caller's.
  virtual void write_raw(std::string_view bytes) = 0;
  /// Ends the stream (the last chunk is sent only after a start_stream()); the connection stays
  /// open unless the client or `keep_alive` says otherwise.
  virtual void finish(bool keep_alive = true) = 0;
  /// Closes the connection in the middle; `reset` sends RST instead of FIN.
  virtual void abort(bool reset = false) = 0;

  /// Called once if the peer closes (or stops reading for write_timeout_ns) before the response was
  /// whole; never from within a call to this exchange.
  virtual void on_peer_close(std::function<void()> callback) = 0;
  virtual bool open() const = 0;
  /// Bytes queued because the peer reads slowly.
  virtual size_t queued_bytes() const = 0;
  /// Taken just before the call that handed the kernel the last byte of the latest write() or
  /// write_raw(), so that no receive stamp on this machine precedes it; 0 while it is still queued.
  virtual core::Nanos last_write_ns() const = 0;
};

class HttpServer {
 public:
  struct Options {
    std::string host = "127.0.0.1";
    uint16_t port = 0;                   // 0: any free one
    size_t body_limit_bytes = 32 << 20;  // a larger body is answered 413
    size_t header_limit_bytes = 64 << 10;
    core::Nanos idle_timeout_ns = 75 * core::kNanosPerSecond;  // between requests of a connection
    core::Nanos request_timeout_ns = 60 * core::kNanosPerSecond;  // first to last byte of a request
    core::Nanos write_timeout_ns = 60 * core::kNanosPerSecond;    // the peer reads nothing: closed
    std::string server_name = "prony";                            // Server header; empty: none
  };
  using Handler = std::function<void(const HttpRequest&, const std::shared_ptr<Exchange>&)>;

  /// Binds and listens. Error: kEnvironment ("cannot listen on HOST:PORT: reason").
  static Result<std::unique_ptr<HttpServer>> create(EventLoop& loop, const Options& options,
                                                    Handler handler);
  virtual ~HttpServer() = default;

  virtual uint16_t port() const = 0;
  /// Accepts nothing more; exchanges in flight go on.
  virtual void stop_accepting() = 0;
  virtual size_t open_connections() const = 0;
};

}  // namespace prony::net
