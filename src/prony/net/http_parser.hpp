// ResponseParser and RequestParser: HTTP/1.1 messages from bytes in any pieces, parsed by
// Boost.Beast; the seam that keeps Beast inside http_parser.cpp. Bodies are handed on as slices of
// the input, without a copy. Thread safety: none; one per connection.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "prony/net/http_client.hpp"
#include "prony/net/http_server.hpp"

namespace prony::net {

class ResponseParser {
 public:
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void on_head(const ResponseHead& head) = 0;
    /// Bytes of one chunk, or of an unchunked body.
    virtual void on_body(std::string_view piece) = 0;
  };
  enum class Status { kMore, kDone, kBad };

  explicit ResponseParser(Sink& sink);
  ~ResponseParser();

  /// Takes all of `bytes` (the head of a line that is not whole is kept). 1xx answers are skipped.
  /// kDone: the response is whole, see reusable(). Call no more after kDone or kBad before reset().
  Status feed(std::string_view bytes);
  /// The peer closed: kDone if that is how this body ends, else kBad.
  Status finish();
  /// From within the sink: the rest is of no interest; feed() returns soon, with any status.
  void stop();
  /// For the next response.
  void reset();

  /// After kDone: the peer keeps the connection and sent nothing beyond the response.
  bool reusable() const;
  /// The head is whole and the body ends only with the connection.
  bool until_close() const;
  /// After kBad: why.
  std::string error() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class RequestParser {
 public:
  struct Limits {
    size_t body_bytes = 32 << 20;
    size_t header_bytes = 64 << 10;
  };
  enum class Status { kMore, kDone, kBad, kHeaderTooLarge, kBodyTooLarge };

  explicit RequestParser(const Limits& limits);
  ~RequestParser();

  /// Parses up to the end of one request; returns how many bytes were used. The caller presents
  /// the unused ones again, with more behind them (kMore), or as the next request (after reset()).
  size_t feed(std::string_view bytes, Status& status);
  void reset();

  /// True once, when a client waits for "100 Continue" before it sends the body.
  bool take_expects_continue();
  /// At least one byte of a request has come.
  bool started() const;
  // After kDone.
  HttpRequest& request();
  bool keep_alive() const;
  bool http_1_0() const;
  /// After kBad: why.
  std::string error() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace prony::net
