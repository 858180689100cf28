#include "prony/net/http_client.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "prony/core/check.hpp"
#include "prony/net/fd_watch.hpp"
#include "prony/net/http_parser.hpp"
#include "prony/net/socket.hpp"
#include "prony/net/tls.hpp"

namespace prony::net {

using core::Nanos;

namespace {
// Thousands of connections should not each keep the buffer of their largest request.
constexpr size_t kKeptCipherBytes = 16 << 10;
}  // namespace

struct HttpConnection::Impl final : FdWatch::Handler,
                                    ResponseParser::Sink,
                                    std::enable_shared_from_this<HttpConnection::Impl> {
  enum class Phase { kNew, kConnecting, kHandshake, kIdle, kBusy, kClosed };

  Impl(EventLoop& loop_in, const Origin& origin_in, const Address& address_in,
       HttpConnection::Handler& handler_in)
      : loop(loop_in),
        origin(origin_in),
        address(address_in),
        handler(&handler_in),
        watch(loop_in, *this),
        parser(*this) {}

  // FdWatch::Handler
  void on_readable() override;
  void on_writable() override;
  // ResponseParser::Sink
  void on_head(const ResponseHead& head) override { handler->on_head(head, stamp); }
  void on_body(std::string_view piece) override { handler->on_body(piece, stamp); }

  void connect();
  void connected();
  void send(std::string_view request);
  void close();

  void flush();
  void flush_tls();
  void receive(std::string_view bytes);
  void receive_cipher(std::string_view bytes);
  void receive_plain(std::string_view bytes);
  void end_of_stream(int error);
  void complete(bool reusable);
  void fail(NetErrorKind kind, std::string_view reason);
  void close_socket();
  bool closed() const { return phase == Phase::kClosed; }

  EventLoop& loop;
  const Origin origin;
  const Address address;
  HttpConnection::Handler* handler;  // null once the owner closed us
  FdWatch watch;
  ResponseParser parser;
  std::unique_ptr<TlsSession> tls;
  std::string cipher_out;  // what out_ points to under TLS

  Phase phase = Phase::kNew;
  std::string_view out;  // not yet in the kernel
  bool reporting_sent = false;
  bool response_started = false;
  bool tls_closed = false;  // the peer's close_notify came
  int write_error = 0;
  Nanos t_send_ns = 0;
  ReceiveStamp stamp;  // of the read being handed on
};

void HttpConnection::Impl::connect() {
  PRONY_CHECK(phase == Phase::kNew, "connect() is called once");
  phase = Phase::kConnecting;
  Result<int> fd = start_connect(address);
  if (fd && origin.tls) {
    auto session = TlsSession::create(origin);
    if (session) {
      tls = std::move(session).value();
    } else {
      watch.open(fd.value());
      fd = session.error();
    }
  }
  if (!fd) {
    // Not from within connect(): the caller has not yet stored what the handler would need.
    loop.post([weak = weak_from_this(), reason = fd.error().message] {
      if (const auto self = weak.lock(); self != nullptr && self->phase == Phase::kConnecting) {
        self->fail(NetErrorKind::kConnect, reason);
      }
    });
    return;
  }
  watch.open(fd.value());
  watch.want_write(true);
}

void HttpConnection::Impl::on_writable() {
  const auto self = shared_from_this();
  if (phase != Phase::kConnecting) return flush();
  watch.want_write(false);
  if (const int error = connect_error(watch.fd()); error != 0) {
    return fail(NetErrorKind::kConnect, errno_text(error));
  }
  watch.want_read(true);
  if (tls == nullptr) return connected();
  phase = Phase::kHandshake;
  receive_cipher({});
}

void HttpConnection::Impl::connected() {
  phase = Phase::kIdle;
  handler->on_connected(core::monotonic_ns());
}

void HttpConnection::Impl::send(std::string_view request) {
  PRONY_CHECK(phase == Phase::kIdle, "send() needs a connected, idle connection");
  PRONY_CHECK(!request.empty());
  phase = Phase::kBusy;
  parser.reset();
  response_started = false;
  reporting_sent = true;
  t_send_ns = 0;
  if (tls == nullptr) {
    out = request;
  } else {
    tls->write(request);  // a failed session fails its next read too, which reports it
    flush_tls();
  }
  flush();
}

void HttpConnection::Impl::flush_tls() {
  // out is a suffix of cipher_out: keep it one while appending.
  cipher_out.erase(0, cipher_out.size() - out.size());
  tls->take_output(cipher_out);
  out = cipher_out;
}

void HttpConnection::Impl::flush() {
  while (!out.empty()) {
    const Nanos before_ns = core::monotonic_ns();
    const ssize_t n = ::send(watch.fd(), out.data(), out.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return watch.want_write(true);
    if (n < 0) {
      // The read side reports it, after what the peer may have said before it closed.
      write_error = errno;
      out = {};
      reporting_sent = false;
      break;
    }
    if (t_send_ns == 0) t_send_ns = before_ns;
    out.remove_prefix(static_cast<size_t>(n));
  }
  watch.want_write(false);
  if (cipher_out.capacity() > kKeptCipherBytes) std::string().swap(cipher_out);
  if (std::exchange(reporting_sent, false)) handler->on_sent(t_send_ns, core::monotonic_ns());
}

void HttpConnection::Impl::on_readable() {
  const auto self = shared_from_this();
  const std::span<char> buffer = loop.scratch();
  // More than one read only while the buffer comes back full and nothing else is due; then the
  // loop's others have a turn.
  for (int round = 0; round < 4; ++round) {
    const ssize_t n = receive_stamped(loop, watch.fd(), buffer, stamp);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (n <= 0) return end_of_stream(n < 0 ? errno : 0);
    receive({buffer.data(), static_cast<size_t>(n)});
    if (closed() || static_cast<size_t>(n) < buffer.size() || loop.timer_due()) return;
  }
}

void HttpConnection::Impl::receive(std::string_view bytes) {
  if (tls != nullptr) {
    receive_cipher(bytes);
  } else {
    receive_plain(bytes);
  }
}

void HttpConnection::Impl::receive_cipher(std::string_view bytes) {
  tls->put(bytes);
  if (phase == Phase::kHandshake) {
    const TlsSession::Status status = tls->handshake();
    flush_tls();  // on failure too: the alert tells the peer why
    flush();
    if (status == TlsSession::Status::kFailed || status == TlsSession::Status::kClosed) {
      return fail(NetErrorKind::kConnect, "tls handshake failed: " + tls->error());
    }
    if (status == TlsSession::Status::kNeedMore) return;
    connected();
  }
  const std::span<char> buffer = loop.scratch();  // the ciphertext in it is in the session now
  while (!closed()) {
    size_t size = 0;
    switch (tls->read(buffer, size)) {
      case TlsSession::Status::kOk:
        receive_plain({buffer.data(), size});
        continue;
      case TlsSession::Status::kNeedMore:
        break;
      case TlsSession::Status::kClosed:
        tls_closed = true;
        return end_of_stream(0);
      case TlsSession::Status::kFailed:
        return fail(NetErrorKind::kProtocol, tls->error());
    }
    flush_tls();  // an answer of the session itself, such as a new key
    if (!out.empty()) flush();
    return;
  }
}

void HttpConnection::Impl::receive_plain(std::string_view bytes) {
  if (phase == Phase::kIdle) {
    // Unasked: the peer's parting word (408, say) before it closes.
    close_socket();
    return handler->on_idle_close();
  }
  response_started = true;
  const ResponseParser::Status status = parser.feed(bytes);
  if (handler == nullptr) return;
  switch (status) {
    case ResponseParser::Status::kMore:
      return;
    case ResponseParser::Status::kDone:
      return complete(parser.reusable());
    case ResponseParser::Status::kBad:
      return fail(NetErrorKind::kProtocol, "not http/1.1: " + parser.error());
  }
}

void HttpConnection::Impl::end_of_stream(int error) {
  const Nanos now_ns = core::monotonic_ns();
  stamp = {.kernel_ns = now_ns, .user_ns = now_ns, .from_kernel = false};
  if (phase == Phase::kIdle) {
    close_socket();
    return handler->on_idle_close();
  }
  if (phase == Phase::kHandshake) {
    return fail(NetErrorKind::kConnect,
                error != 0 ? errno_text(error) : "closed during the tls handshake");
  }
  // Under TLS only a close_notify ends a body: a bare FIN may be an attacker's.
  const bool in_order = error == 0 && (tls == nullptr || tls_closed);
  if (in_order && parser.until_close() && parser.finish() == ResponseParser::Status::kDone) {
    return complete(false);
  }
  if (error == 0) error = write_error;
  const std::string_view when =
      response_started ? "before the response was whole" : "before it answered";
  fail(NetErrorKind::kClosed, error != 0 ? fmt::format("{}, {}", errno_text(error), when)
                                         : fmt::format("closed by the peer {}", when));
}

void HttpConnection::Impl::complete(bool reusable) {
  reusable = reusable && out.empty() && write_error == 0;
  if (reusable) {
    phase = Phase::kIdle;
  } else {
    close_socket();
  }
  handler->on_complete(stamp, reusable);
}

void HttpConnection::Impl::fail(NetErrorKind kind, std::string_view reason) {
  close_socket();
  std::string message;
  const std::string place = fmt::format("{}:{}: ", address.ip, address.port);
  if (!reason.starts_with(place)) message = place;
  message += reason;
  const Nanos now_ns = core::monotonic_ns();
  if (stamp.user_ns == 0) stamp = {.kernel_ns = now_ns, .user_ns = now_ns, .from_kernel = false};
  handler->on_error({.kind = kind, .message = message, .response_started = response_started},
                    stamp);
}

void HttpConnection::Impl::close_socket() {
  watch.close();
  out = {};
  phase = Phase::kClosed;
}

void HttpConnection::Impl::close() {
  close_socket();
  handler = nullptr;
  parser.stop();
}

HttpConnection::HttpConnection(EventLoop& loop, const Origin& origin, const Address& address,
                               Handler& handler)
    : impl_(std::make_shared<Impl>(loop, origin, address, handler)) {}

HttpConnection::~HttpConnection() {
  impl_->close();
}

void HttpConnection::connect() {
  impl_->connect();
}
void HttpConnection::send(std::string_view request) {
  impl_->send(request);
}
void HttpConnection::close() {
  impl_->close();
}

bool HttpConnection::connected() const {
  return impl_->phase == Impl::Phase::kIdle || impl_->phase == Impl::Phase::kBusy;
}
bool HttpConnection::idle() const {
  return impl_->phase == Impl::Phase::kIdle;
}

}  // namespace prony::net
