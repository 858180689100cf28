// TlsSession: the client side of TLS (OpenSSL) between memory buffers: ciphertext in and out are
// the caller's to move, so that its own recvmsg keeps the kernel's stamps. TLS 1.2 or later; the
// peer's certificate and name are verified unless the origin says not to.
// Thread safety: create() any thread; a session one thread.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "prony/core/result.hpp"
#include "prony/net/http_client.hpp"

namespace prony::net {

class TlsSession {
 public:
  /// Error: kEnvironment, naming the file of authorities that cannot be read.
  static Result<std::unique_ptr<TlsSession>> create(const Origin& origin);
  ~TlsSession();

  enum class Status { kOk, kNeedMore, kClosed, kFailed };

  /// Ciphertext from the peer.
  void put(std::string_view cipher);
  /// kOk: done; kNeedMore: send output(), then put() more.
  Status handshake();
  /// Plaintext, as much as is whole; kOk sets `size` > 0. kClosed: the peer closed in order.
  Status read(std::span<char> buffer, size_t& size);
  /// Plaintext to the peer, all of it, into output().
  Status write(std::string_view plain);
  /// Appends to `to` the ciphertext that the peer must get.
  void take_output(std::string& to);
  /// After kFailed: why, in one line.
  std::string error() const;

 private:
  TlsSession();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace prony::net
