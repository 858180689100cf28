#include "prony/mock/wire_out.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace prony::mock {
namespace {

constexpr size_t kRawPieceBytes = 3;

/// Where to cut `bytes` so that its last multi-byte character is in both halves; 0: there is none.
size_t inside_last_character(std::string_view bytes) {
  for (size_t i = bytes.size(); i-- > 0;) {
    if ((static_cast<unsigned char>(bytes[i]) & 0xC0) == 0x80) return i;
  }
  return 0;
}

}  // namespace

void WireOut::head() {
  if (plan_.wire.framing == Framing::kChunked) {
    net::Headers headers = plan_.headers;
    headers.emplace_back("Content-Type", "text/event-stream; charset=utf-8");
    headers.emplace_back("X-Request-Id", request_id_);
    if (plan_.after == After::kCloseAnnounced) headers.emplace_back("Connection", "close");
    return exchange_->start_stream(200, headers);
  }
  if (plan_.wire.framing == Framing::kEarlyHints) {
    exchange_->write_raw("HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n");
  }
  const bool old = plan_.wire.framing == Framing::kHttp10;
  const bool chunked = !old && plan_.wire.framing != Framing::kUntilClose;
  const bool says_close = plan_.wire.framing == Framing::kUntilClose ||
                          (chunked && plan_.after == After::kCloseAnnounced);
  // X-Request-Id came in one header line, so it holds no line break.
  exchange_->write_raw(
      fmt::format("HTTP/{} 200 OK\r\nServer: prony-mock\r\nContent-Type: text/event-stream\r\n"
                  "X-Request-Id: {}\r\n{}{}\r\n",
                  old ? "1.0" : "1.1", request_id_, chunked ? "Transfer-Encoding: chunked\r\n" : "",
                  says_close ? "Connection: close\r\n" : ""));
}

void WireOut::put(std::string_view bytes) {
  if (plan_.wire.cut_characters) {
    const size_t at = inside_last_character(bytes);
    if (at > 0) write(bytes.substr(0, at));
    return write(bytes.substr(at));
  }
  const size_t size = plan_.wire.piece_bytes == 0 ? bytes.size() : plan_.wire.piece_bytes;
  for (size_t at = 0; at < bytes.size(); at += size) write(bytes.substr(at, size));
}

void WireOut::write(std::string_view piece) {
  switch (plan_.wire.framing) {
    case Framing::kChunked:
      return exchange_->write(piece);
    case Framing::kUntilClose:
    case Framing::kHttp10:
      return exchange_->write_raw(piece);
    case Framing::kExtensions:
      return exchange_->write_raw(
          fmt::format("{:x};token=\"a;b\";n={}\r\n{}\r\n", piece.size(), piece.size(), piece));
    case Framing::kTrailers:
    case Framing::kEarlyHints:
      return exchange_->write_raw(fmt::format("{:X}\r\n{}\r\n", piece.size(), piece));
    case Framing::kRawPieces: {
      const std::string framed = fmt::format("{:x}\r\n{}\r\n", piece.size(), piece);
      for (size_t at = 0; at < framed.size(); at += kRawPieceBytes) {
        exchange_->write_raw(std::string_view(framed).substr(at, kRawPieceBytes));
      }
    }
  }
}

void WireOut::finish() {
  switch (plan_.wire.framing) {
    case Framing::kChunked:
      return exchange_->finish(keeps());
    case Framing::kUntilClose:
    case Framing::kHttp10:
      return exchange_->finish(false);
    case Framing::kExtensions:
      exchange_->write_raw("0;last\r\n\r\n");
      return exchange_->finish(keeps());
    case Framing::kTrailers:
      exchange_->write_raw("0\r\nX-Checksum: 7\r\nContent-Type: text/plain\r\n\r\n");
      return exchange_->finish(keeps());
    case Framing::kEarlyHints:
      exchange_->write_raw("0\r\n\r\n");
      return exchange_->finish(keeps());
    case Framing::kRawPieces:
      exchange_->write_raw("0\r\n");
      exchange_->write_raw("\r\n");
      return exchange_->finish(keeps());
  }
}

void WireOut::whole() {
  if (plan_.raw) {
    exchange_->write_raw(plan_.body);
    return exchange_->finish(false);
  }
  net::Headers headers = plan_.headers;
  headers.emplace_back("Content-Type", plan_.content_type);
  headers.emplace_back("X-Request-Id", request_id_);
  if (plan_.after == After::kCloseSilently) {
    std::string message = fmt::format("HTTP/1.1 {} Status\r\n", plan_.status);
    for (const auto& [name, value] : headers) message += fmt::format("{}: {}\r\n", name, value);
    message += fmt::format("Content-Length: {}\r\n\r\n", plan_.body.size());
    exchange_->write_raw(message + plan_.body);
    return exchange_->finish(false);
  }
  if (plan_.after == After::kCloseAnnounced) headers.emplace_back("Connection", "close");
  exchange_->respond(plan_.status, headers, plan_.body);
}

}  // namespace prony::mock
