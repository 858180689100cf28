#include "prony/net/server_connection.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include "prony/core/check.hpp"
#include "prony/net/server_exchange.hpp"
#include "prony/net/socket.hpp"

namespace prony::net {

using core::Nanos;

namespace {

// After our last byte the peer gets this long to read it and close.
constexpr Nanos kLingerNs = 2 * core::kNanosPerSecond;
// Pipelined requests beyond this stay in the kernel until it is their turn.
constexpr size_t kPipelineBytes = 64 << 10;
// A queue that drained gives its memory back above this.
constexpr size_t kKeptQueueBytes = 64 << 10;

}  // namespace

ServerConnection::ServerConnection(ServerContext& server, int fd)
    : server_(&server),
      loop_(server.loop),
      watch_(server.loop, *this),
      parser_({.body_bytes = server.options.body_limit_bytes,
               .header_bytes = server.options.header_limit_bytes}),
      timer_(server.loop, [this] { on_deadline(); }) {
  watch_.open(fd);
}

void ServerConnection::start() {
  request_since_ns_ = core::monotonic_ns();
  watch_.want_read(true);
  rearm();
}

void ServerConnection::close() {
  if (closed()) return;
  const auto self = shared_from_this();  // the server may hold the last reference
  state_ = State::kClosed;
  watch_.close();
  timer_.cancel();
  if (ExchangeImpl* exchange = std::exchange(exchange_, nullptr)) exchange->peer_closed();
  if (ServerContext* server = std::exchange(server_, nullptr)) server->forget(*this);
}

void ServerConnection::drain() {
  if (state_ == State::kReading && !parser_.started() && queued_bytes() == 0) close();
}

// ---- input

void ServerConnection::on_readable() {
  const auto self = shared_from_this();
  const std::span<char> buffer = loop_.scratch();
  const ssize_t n = ::recv(watch_.fd(), buffer.data(), buffer.size(), 0);
  if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) return;
  if (n < 0) return close();
  if (n == 0) return end_of_stream();
  take_input({buffer.data(), static_cast<size_t>(n)});
}

void ServerConnection::end_of_stream() {
  // All was said but not yet read: that the peer says no more is no reason to keep it from it.
  if (state_ == State::kReading && queued_bytes() > 0 && !parser_.started()) {
    close_after_flush_ = true;
    return watch_.want_read(false);
  }
  close();
}

void ServerConnection::take_input(std::string_view bytes) {
  if (state_ == State::kLingering) return;  // thrown away
  if (!in_.empty() || state_ != State::kReading) {
    in_ += bytes;
    bytes = in_;
  }
  const bool from_in = bytes.data() == in_.data();
  while (state_ == State::kReading && take_request(bytes)) {
  }
  if (closed() || state_ == State::kLingering) return;
  if (from_in) {
    in_.erase(0, in_.size() - bytes.size());
  } else {
    in_.assign(bytes);
  }
  if (state_ == State::kAnswering) watch_.want_read(in_.size() < kPipelineBytes);
  rearm();
}

/// Parses what it can; true: a request was dispatched and perhaps answered, so go on.
bool ServerConnection::take_request(std::string_view& bytes) {
  if (bytes.empty()) return false;
  const bool began = parser_.started();
  RequestParser::Status status{};
  bytes.remove_prefix(parser_.feed(bytes, status));
  if (!began && parser_.started()) request_since_ns_ = core::monotonic_ns();
  switch (status) {
    case RequestParser::Status::kMore:
      if (parser_.take_expects_continue()) {
        constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
        send({&kContinue, 1});
      }
      return false;
    case RequestParser::Status::kDone:
      dispatch();
      return true;
    case RequestParser::Status::kBad:
      refuse(400, fmt::format("not an http/1.1 request: {}", parser_.error()));
      return false;
    case RequestParser::Status::kHeaderTooLarge:
      refuse(431,
             fmt::format("headers are longer than {} bytes", server_->options.header_limit_bytes));
      return false;
    case RequestParser::Status::kBodyTooLarge:
      refuse(413, fmt::format("body is longer than {} bytes", server_->options.body_limit_bytes));
      return false;
  }
  return false;
}

void ServerConnection::dispatch() {
  HttpRequest request = std::move(parser_.request());
  request.t_received_ns = core::monotonic_ns();
  request.index_on_connection = requests_++;
  head_only_ = request.method == "HEAD";
  may_keep_ = parser_.keep_alive();
  http_1_0_ = parser_.http_1_0();
  parser_.reset();
  body_ = Body::kNone;
  last_write_ns_ = 0;
  state_ = State::kAnswering;
  const auto exchange = std::make_shared<ExchangeImpl>(shared_from_this());
  exchange_ = exchange.get();
  server_->handler(request, exchange);
}

void ServerConnection::refuse(int status, std::string_view message) {
  state_ = State::kAnswering;
  head_only_ = may_keep_ = false;
  body_ = Body::kNone;
  respond(status, {{"Content-Type", "application/json"}},
          fmt::format(R"({{"error":{{"message":"{}","type":"invalid_request_error",)"
                      R"("param":null,"code":{}}}}})",
                      message, status));
}

// ---- answers

std::string ServerConnection::head(int status, const Headers& headers, bool& keep_alive) {
  std::string text = fmt::format("HTTP/1.1 {} {}\r\n", status, reason_phrase(status));
  text.reserve(256);
  if (!server_->options.server_name.empty()) {
    append_header(text, "Server", server_->options.server_name);
  }
  append_header(text, "Date", server_->date.text(core::realtime_ns()));
  keep_alive = keep_alive && !server_->draining;
  bool says_connection = false;
  for (const auto& [name, value] : headers) {
    if (equal_ignoring_case(name, "connection")) {
      says_connection = true;
      if (equal_ignoring_case(value, "close")) keep_alive = false;
    }
    append_header(text, name, value);
  }
  if (!says_connection) {
    if (!keep_alive) append_header(text, "Connection", "close");
    if (keep_alive && http_1_0_) append_header(text, "Connection", "keep-alive");
  }
  return text;
}

void ServerConnection::respond(int status, const Headers& headers, std::string_view body) {
  PRONY_CHECK(body_ == Body::kNone, "respond() after an answer was begun");
  body_ = Body::kWhole;
  bool keep_alive = may_keep_;
  std::string text = head(status, headers, keep_alive);
  if (status != 204 && status != 304) {
    append_header(text, "Content-Length", std::to_string(body.size()));
  }
  text += "\r\n";
  const std::array<std::string_view, 2> pieces = {text, head_only_ ? std::string_view() : body};
  send_marked(pieces);
  end_answer(keep_alive);
}

void ServerConnection::start_stream(int status, const Headers& headers) {
  PRONY_CHECK(body_ == Body::kNone, "start_stream() after an answer was begun");
  body_ = http_1_0_ ? Body::kUntilClose : Body::kChunked;
  if (body_ == Body::kUntilClose) may_keep_ = false;
  std::string text = head(status, headers, may_keep_);
  if (body_ == Body::kChunked) append_header(text, "Transfer-Encoding", "chunked");
  text += "\r\n";
  const std::string_view piece = text;
  send({&piece, 1});
}

void ServerConnection::write(std::string_view piece) {
  PRONY_CHECK(body_ == Body::kChunked || body_ == Body::kUntilClose,
              "write() before start_stream()");
  if (piece.empty() || head_only_) return;  // an empty chunk would end the body
  if (body_ == Body::kUntilClose) return send_marked({&piece, 1});
  std::array<char, 20> size;
  const auto end = std::to_chars(size.data(), size.data() + size.size() - 2, piece.size(), 16).ptr;
  end[0] = '\r';
  end[1] = '\n';
  const std::array<std::string_view, 3> pieces = {
      std::string_view(size.data(), static_cast<size_t>(end + 2 - size.data())), piece, "\r\n"};
  send_marked(pieces);
}

void ServerConnection::write_raw(std::string_view bytes) {
  if (body_ == Body::kNone) body_ = Body::kRaw;
  send_marked({&bytes, 1});
}

void ServerConnection::finish(bool keep_alive) {
  PRONY_CHECK(body_ != Body::kNone, "finish() before an answer was begun");
  if (body_ == Body::kChunked && !head_only_) {
    constexpr std::string_view kLastChunk = "0\r\n\r\n";
    send({&kLastChunk, 1});
  }
  end_answer(keep_alive && may_keep_);
}

void ServerConnection::end_answer(bool keep_alive) {
  exchange_ = nullptr;
  if (!keep_alive) {
    close_after_flush_ = true;
    if (queued_bytes() == 0) linger();
    return rearm();
  }
  state_ = State::kReading;
  request_since_ns_ = core::monotonic_ns();
  watch_.want_read(true);
  rearm();
  if (in_.empty() || resuming_) return;
  // Not from here: the caller is a handler, perhaps of this very connection, still at work.
  resuming_ = true;
  loop_.post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr || self->closed()) return;
    self->resuming_ = false;
    self->take_input({});
  });
}

void ServerConnection::abort(bool reset) {
  exchange_ = nullptr;
  if (reset) set_reset_on_close(watch_.fd());
  close();
}

// ---- output

void ServerConnection::send_marked(std::span<const std::string_view> pieces) {
  last_write_ns_ = 0;
  marked_total_ = queued_total_;
  for (const std::string_view piece : pieces) marked_total_ += piece.size();
  send(pieces);
}

void ServerConnection::send(std::span<const std::string_view> pieces) {
  if (write_failed_ || closed()) return;
  size_t total = 0;
  for (const std::string_view piece : pieces) total += piece.size();
  queued_total_ += total;
  size_t taken = 0;
  if (queued_bytes() == 0) {
    const Nanos before_ns = core::monotonic_ns();
    const ssize_t n = send_pieces(watch_.fd(), pieces);
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
      write_failed_ = true;
      return;
    }
    taken = n < 0 ? 0 : static_cast<size_t>(n);
    sent_total_ += taken;
    if (sent_total_ == marked_total_) last_write_ns_ = before_ns;
    progress_ns_ = before_ns;
  }
  if (taken == total) return;
  for (std::string_view piece : pieces) {
    const size_t skip = std::min(taken, piece.size());
    taken -= skip;
    out_.append(piece.substr(skip));
  }
  watch_.want_write(true);
  rearm();
}

void ServerConnection::on_writable() {
  const auto self = shared_from_this();
  flush();
}

void ServerConnection::flush() {
  while (queued_bytes() > 0) {
    const Nanos before_ns = core::monotonic_ns();
    const std::string_view rest = std::string_view(out_).substr(out_sent_);
    const ssize_t n = send_pieces(watch_.fd(), {&rest, 1});
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n < 0) return close();
    out_sent_ += static_cast<size_t>(n);
    sent_total_ += static_cast<size_t>(n);
    progress_ns_ = before_ns;
    if (sent_total_ >= marked_total_ && last_write_ns_ == 0) last_write_ns_ = before_ns;
  }
  if (queued_bytes() == 0) {
    out_.clear();
    out_sent_ = 0;
    if (out_.capacity() > kKeptQueueBytes) out_.shrink_to_fit();
    watch_.want_write(false);
    if (close_after_flush_) linger();
  } else if (out_sent_ > out_.size() / 2) {
    out_.erase(0, std::exchange(out_sent_, 0));  // amortized: each byte moves at most once
  }
  rearm();
}

void ServerConnection::linger() {
  if (state_ == State::kLingering) return;
  state_ = State::kLingering;
  in_.clear();
  ::shutdown(watch_.fd(), SHUT_WR);
  watch_.want_read(true);
  timer_.arm(core::monotonic_ns() + kLingerNs);
}

// ---- time

void ServerConnection::rearm() {
  if (closed() || state_ == State::kLingering) return;
  if (queued_bytes() > 0) {
    timer_.arm(progress_ns_ + server_->options.write_timeout_ns);
  } else if (state_ == State::kReading) {
    timer_.arm(request_since_ns_ + (parser_.started() ? server_->options.request_timeout_ns
                                                      : server_->options.idle_timeout_ns));
  } else {
    timer_.cancel();
  }
}

void ServerConnection::on_deadline() {
  const auto self = shared_from_this();
  if (state_ == State::kReading && queued_bytes() == 0 && parser_.started()) {
    return refuse(408, "the request did not arrive in time");
  }
  close();
}

}  // namespace prony::net
