// HttpConnection: one HTTP/1.1 client connection as a state machine on an EventLoop, made for
// measurement: reads go through recvmsg with SO_TIMESTAMPING, so every piece of a body carries the
// kernel's receive stamp beside ours. One request at a time; kept alive between requests. Responses
// are parsed by Boost.Beast (chunked with extensions and trailers, content-length, or until close).
// With TLS the bytes pass a memory BIO after our own recvmsg, so the stamps stay the kernel's.
// Thread safety: loop thread only.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/core/result.hpp"
#include "prony/net/event_loop.hpp"

namespace prony::net {

/// Where to connect: scheme, host and port of a base URL.
struct Origin {
  bool tls = false;
  std::string host;
  uint16_t port = 80;
  bool verify_peer = true;  // false: --insecure
  std::string ca_file;      // PEM file of trusted authorities; empty: the system's
};

struct Url {
  Origin origin;
  std::string path;  // starts with '/' or is empty; no trailing '/'
};
/// http:// or https:// URL. Error: kInvalidArgument, naming `flag`, what was found and expected.
Result<Url> parse_url(std::string_view text, std::string_view flag);

struct Address {
  std::string ip;
  uint16_t port = 0;
};
/// Blocking getaddrinfo, once per run and never on the loop. Error: kEnvironment, naming the host.
Result<std::vector<Address>> resolve(const Origin& origin);

/// When bytes arrived. `kernel_ns` equals `user_ns` where the kernel gave no stamp.
struct ReceiveStamp {
  core::Nanos kernel_ns = 0;
  core::Nanos user_ns = 0;
  bool from_kernel = false;
};

struct ResponseHead {
  int status = 0;
  std::string_view content_type;  // lower case, without parameters; valid during the call
  std::string_view retry_after;
  std::string_view server;        // Server header
  std::string_view prony_device;  // X-Prony-Device header; empty for real hardware
  bool keep_alive = true;
  /// Transfer-Encoding: chunked. Then each on_body() holds bytes of one chunk only, so that events
  /// of one server write (one chunk) can be told from writes that the kernel merged into one read.
  bool chunked = false;
  /// Neither chunked nor of a given length: the body ends where the connection does, so that a
  /// broken connection cannot be told from the end.
  bool until_close = false;
};

enum class NetErrorKind {
  kConnect,   // refused, unreachable, TLS handshake failed
  kClosed,    // the peer closed or reset before the response was whole
  kProtocol,  // not HTTP/1.1
};
struct NetError {
  NetErrorKind kind = NetErrorKind::kClosed;
  std::string message;            // one line, lower case
  bool response_started = false;  // at least one byte of the response had arrived
};

class HttpConnection {
 public:
  /// Events of one connection; every call is on the loop thread and, but for on_sent(), from the
  /// loop itself and never from within connect() or send(). Within a call the handler may close()
  /// or destroy the connection, and in on_connected() and on_complete() call send().
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void on_connected(core::Nanos t_connect_ns) = 0;
    /// The request is wholly in the kernel: just before its first byte was handed over, just after
    /// its last. Comes from within send() where the kernel takes the request at once. A response
    /// may begin (or the exchange fail) before a long request is sent: then this never comes.
    virtual void on_sent(core::Nanos t_send_ns, core::Nanos t_sent_ns) = 0;
    virtual void on_head(const ResponseHead& head, const ReceiveStamp& stamp) = 0;
    /// A piece of the body, de-chunked, in order; several pieces may share one stamp (one read).
    /// A piece never spans two chunks.
    virtual void on_body(std::string_view piece, const ReceiveStamp& stamp) = 0;
    /// The response is whole. `reusable`: send() may follow at once on this connection.
    virtual void on_complete(const ReceiveStamp& stamp, bool reusable) = 0;
    /// Ends the exchange and the connection.
    virtual void on_error(const NetError& error, const ReceiveStamp& stamp) = 0;
    /// An idle kept-alive connection was closed by the peer; it is closed now.
    virtual void on_idle_close() {}
  };

  HttpConnection(EventLoop& loop, const Origin& origin, const Address& address, Handler& handler);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  /// Nonblocking; ends in on_connected() (after the TLS handshake) or on_error(). There is no bound
  /// on time here: the caller holds a Timer and calls close(). Call once.
  void connect();
  /// `request` is the whole message: request line, headers, empty line, body; it must stay valid
  /// until on_sent(). Requires connected and idle (checked).
  void send(std::string_view request);
  /// Closes at once; no further call to the handler.
  void close();

  bool connected() const;
  bool idle() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  // shared with the loop while a callback runs
};

/// A whole message with the given extra headers; Host, Content-Length and (with a body, unless
/// given) Content-Type: application/json included. `target` is path and query. Line breaks in a
/// header are dropped, so that a value cannot add a header.
std::string format_request(std::string_view method, const Origin& origin, std::string_view target,
                           const std::vector<std::pair<std::string, std::string>>& headers,
                           std::string_view body);

/// One whole exchange with a bound on time, on a loop of its own; for readiness checks, /v1/models,
/// /metrics. Error: kEnvironment ("URL: reason").
struct SimpleResponse {
  int status = 0;
  std::string body;
  std::string prony_device;
};
Result<SimpleResponse> fetch(const Url& url, std::string_view method, std::string_view body,
                             const std::vector<std::pair<std::string, std::string>>& headers,
                             core::Nanos timeout_ns);

}  // namespace prony::net
