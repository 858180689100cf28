#include "prony/net/tls.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "prony/core/check.hpp"

namespace prony::net {
namespace {

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using ContextPtr = std::shared_ptr<SSL_CTX>;
using SslPtr = std::unique_ptr<SSL, Deleter<SSL_free>>;

bool is_numeric_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

std::string last_error() {
  const unsigned long code = ::ERR_get_error();
  ::ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ::ERR_reason_error_string(code);
  return reason == nullptr ? "unknown tls error" : reason;
}

Result<ContextPtr> make_context(const std::string& ca_file) {
  ContextPtr context(::SSL_CTX_new(::TLS_client_method()), Deleter<SSL_CTX_free>{});
  PRONY_CHECK(context != nullptr, "SSL_CTX_new failed");
  ::SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  // Thousands of sessions: give their 34 KiB of record buffers back between records.
  ::SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  if (ca_file.empty()) {
    ::SSL_CTX_set_default_verify_paths(context.get());
  } else if (::SSL_CTX_load_verify_locations(context.get(), ca_file.c_str(), nullptr) != 1) {
    return environment_error(
        fmt::format("cannot read certificate authorities from {}: {}", ca_file, last_error()));
  }
  return context;
}

/// Reading the system's authorities takes tens of milliseconds: once per file, not per connection.
Result<ContextPtr> shared_context(const std::string& ca_file) {
  static std::mutex mutex;
  static std::map<std::string, ContextPtr> contexts;
  const std::lock_guard lock(mutex);
  ContextPtr& known = contexts[ca_file];
  if (known == nullptr) {
    auto made = make_context(ca_file);
    if (!made) return made.error();
    known = std::move(made).value();
  }
  return known;
}

}  // namespace

struct TlsSession::Impl {
  /// What a return value <= 0 of an SSL_* call means.
  Status status_of(int rc) {
    switch (::SSL_get_error(ssl.get(), rc)) {
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE:
        return Status::kNeedMore;
      case SSL_ERROR_ZERO_RETURN:
        return Status::kClosed;
      default:
        break;
    }
    const long verify = ::SSL_get_verify_result(ssl.get());
    error = verify != X509_V_OK ? fmt::format("certificate not accepted: {}",
                                              ::X509_verify_cert_error_string(verify))
                                : last_error();
    ::ERR_clear_error();
    return Status::kFailed;
  }

  SslPtr ssl;
  BIO* from_peer = nullptr;  // both owned by ssl
  BIO* to_peer = nullptr;
  std::string error;
};

TlsSession::TlsSession() : impl_(std::make_unique<Impl>()) {}
TlsSession::~TlsSession() = default;

Result<std::unique_ptr<TlsSession>> TlsSession::create(const Origin& origin) {
  auto context = shared_context(origin.ca_file);
  if (!context) return context.error();
  std::unique_ptr<TlsSession> session(new TlsSession());
  Impl& s = *session->impl_;
  s.ssl.reset(::SSL_new(context.value().get()));
  s.from_peer = ::BIO_new(::BIO_s_mem());
  s.to_peer = ::BIO_new(::BIO_s_mem());
  PRONY_CHECK(s.ssl != nullptr && s.from_peer != nullptr && s.to_peer != nullptr, "out of memory");
  SSL* ssl = s.ssl.get();
  ::SSL_set_bio(ssl, s.from_peer, s.to_peer);
  ::SSL_set_connect_state(ssl);
  constexpr std::array<unsigned char, 9> kAlpn = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  ::SSL_set_alpn_protos(ssl, kAlpn.data(), kAlpn.size());
  const bool numeric = is_numeric_address(origin.host);
  if (!numeric) ::SSL_set_tlsext_host_name(ssl, origin.host.c_str());
  if (origin.verify_peer) {
    ::SSL_set_verify(ssl, SSL_VERIFY_PEER, nullptr);
    if (numeric) {
      ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(ssl), origin.host.c_str());
    } else {
      ::SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
      ::SSL_set1_host(ssl, origin.host.c_str());
    }
  } else {
    ::SSL_set_verify(ssl, SSL_VERIFY_NONE, nullptr);
  }
  return session;
}

void TlsSession::put(std::string_view cipher) {
  while (!cipher.empty()) {
    const int part = static_cast<int>(std::min<size_t>(cipher.size(), 1 << 20));
    const int written = ::BIO_write(impl_->from_peer, cipher.data(), part);
    PRONY_CHECK(written > 0, "a memory BIO takes everything");
    cipher.remove_prefix(static_cast<size_t>(written));
  }
}

TlsSession::Status TlsSession::handshake() {
  ::ERR_clear_error();
  const int rc = ::SSL_do_handshake(impl_->ssl.get());
  return rc == 1 ? Status::kOk : impl_->status_of(rc);
}

TlsSession::Status TlsSession::read(std::span<char> buffer, size_t& size) {
  ::ERR_clear_error();
  size = 0;
  const int rc = ::SSL_read_ex(impl_->ssl.get(), buffer.data(), buffer.size(), &size);
  return rc == 1 ? Status::kOk : impl_->status_of(rc);
}

TlsSession::Status TlsSession::write(std::string_view plain) {
  while (!plain.empty()) {
    ::ERR_clear_error();
    size_t written = 0;
    const int rc = ::SSL_write_ex(impl_->ssl.get(), plain.data(), plain.size(), &written);
    if (rc != 1) return impl_->status_of(rc);
    plain.remove_prefix(written);
  }
  return Status::kOk;
}

void TlsSession::take_output(std::string& to) {
  std::array<char, 4096> block;
  int n = 0;
  while ((n = ::BIO_read(impl_->to_peer, block.data(), block.size())) > 0) {
    to.append(block.data(), static_cast<size_t>(n));
  }
}

std::string TlsSession::error() const {
  return impl_->error;
}

}  // namespace prony::net
