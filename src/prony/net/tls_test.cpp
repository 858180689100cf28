// HttpConnection over TLS against a blocking OpenSSL server with a certificate made here: the
// handshake, verification by authority and name, kernel stamps through the memory BIO, and ends of
// a connection with and without close_notify.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "prony/core/file.hpp"
#include "prony/net/test_peer.hpp"

namespace prony::net {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

/// A self-signed certificate for 127.0.0.1 and good.test, valid now, on disk as PEM.
class Certificate {
 public:
  Certificate() {
    key_ = ::EVP_RSA_gen(2048);
    certificate_ = ::X509_new();
    ::X509_set_version(certificate_, 2);
    ::ASN1_INTEGER_set(::X509_get_serialNumber(certificate_), 1);
    ::X509_gmtime_adj(::X509_getm_notBefore(certificate_), -3600);
    ::X509_gmtime_adj(::X509_getm_notAfter(certificate_), 3600);
    ::X509_set_pubkey(certificate_, key_);
    X509_NAME* name = ::X509_get_subject_name(certificate_);
    ::X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                 reinterpret_cast<const unsigned char*>("prony test"), -1, -1, 0);
    ::X509_set_issuer_name(certificate_, name);
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    ::X509V3_set_ctx(&context, certificate_, certificate_, nullptr, nullptr, 0);
    X509_EXTENSION* names = ::X509V3_EXT_conf_nid(nullptr, &context, NID_subject_alt_name,
                                                  "IP:127.0.0.1,DNS:good.test");
    ::X509_add_ext(certificate_, names, -1);
    ::X509_EXTENSION_free(names);
    ::X509_sign(certificate_, key_, ::EVP_sha256());
    path = ::testing::TempDir() + fmt::format("prony_tls_{}.pem", ::getpid());
    FILE* file = ::fopen(path.c_str(), "w");
    ::PEM_write_X509(file, certificate_);
    ::fclose(file);
  }
  ~Certificate() {
    ::unlink(path.c_str());
    ::X509_free(certificate_);
    ::EVP_PKEY_free(key_);
  }
  SSL_CTX* server_context() const {
    SSL_CTX* context = ::SSL_CTX_new(::TLS_server_method());
    ::SSL_CTX_use_certificate(context, certificate_);
    ::SSL_CTX_use_PrivateKey(context, key_);
    return context;
  }
  std::string path;

 private:
  EVP_PKEY* key_ = nullptr;
  X509* certificate_ = nullptr;
};

const Certificate& certificate() {
  static const Certificate made;
  return made;
}

/// The server's side of one connection.
class TlsPeer {
 public:
  explicit TlsPeer(TestSocket& socket)
      : context_(certificate().server_context()), ssl_(::SSL_new(context_)) {
    ::SSL_set_fd(ssl_, socket.fd());
    accepted = ::SSL_accept(ssl_) == 1;
    ::ERR_clear_error();
  }
  ~TlsPeer() {
    ::SSL_free(ssl_);
    ::SSL_CTX_free(context_);
  }
  std::string read_until(std::string_view mark) {
    std::string got;
    char block[4096];
    int n = 0;
    while (got.find(mark) == std::string::npos && (n = ::SSL_read(ssl_, block, sizeof block)) > 0) {
      got.append(block, static_cast<size_t>(n));
    }
    ::ERR_clear_error();
    return got;
  }
  void write(std::string_view bytes) {
    ::SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()));
  }
  void close_notify() { ::SSL_shutdown(ssl_); }
  void new_keys() { ::SSL_key_update(ssl_, SSL_KEY_UPDATE_REQUESTED); }

  bool accepted = false;

 private:
  SSL_CTX* context_;
  SSL* ssl_;
};

Origin tls_origin(uint16_t port, const std::string& host = "127.0.0.1") {
  return {.tls = true, .host = host, .port = port, .ca_file = certificate().path};
}

TEST(Tls, StreamsWithKernelStamps) {
  std::vector<core::Nanos> written;
  RawServer server([&](TestSocket& socket, int) {
    TlsPeer peer(socket);
    for (int request = 0; request < 2; ++request) {
      EXPECT_EQ(peer.read_until("\r\n\r\n"), kGet);
      peer.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
      for (int i = 0; i < 20; ++i) {
        ::usleep(500);
        written.push_back(core::monotonic_ns());
        peer.write(fmt::format("4\r\nt{:02}.\r\n", i));
        if (i == 10) peer.new_keys();
      }
      peer.write("0\r\n\r\n");
    }
    peer.close_notify();
  });
  EventLoop loop;
  TestClient client(loop, tls_origin(server.port()), {std::string(kGet), std::string(kGet)});
  client.wait_for_idle_close = true;
  client.run();
  server.join();
  ASSERT_TRUE(client.errors.empty()) << client.errors[0].message;
  ASSERT_EQ(client.responses.size(), 2U);
  size_t at = 0;
  for (const auto& response : client.responses) {
    EXPECT_TRUE(response.complete);
    EXPECT_TRUE(response.reusable);
    ASSERT_EQ(response.pieces.size(), 20U);
    for (const auto& piece : response.pieces) {
      EXPECT_TRUE(piece.stamp.from_kernel);
      EXPECT_LE(piece.stamp.kernel_ns, piece.stamp.user_ns);
      EXPECT_GE(piece.stamp.kernel_ns, written[at++] - 200);
    }
  }
  EXPECT_EQ(client.idle_closes, 1);
}

TEST(Tls, LargeRequestAndResponse) {
  std::string body(3 << 20, 'x');
  for (size_t i = 0; i < body.size(); i += 97) body[i] = static_cast<char>('a' + i % 26);
  RawServer server([&](TestSocket& socket, int) {
    TlsPeer peer(socket);
    const std::string got = peer.read_until("END");
    const std::string answer = got.substr(got.find("\r\n\r\n") + 4);
    peer.write(fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", answer.size()));
    peer.write(answer);
    peer.read_until("never");
  });
  EventLoop loop;
  const Origin origin = tls_origin(server.port());
  TestClient client(loop, origin, {format_request("POST", origin, "/", {}, body + "END")});
  client.run();
  EXPECT_TRUE(client.last().complete);
  EXPECT_EQ(client.last().body, body + "END");
  EXPECT_LE(client.last().t_send_ns, client.last().t_sent_ns);
  client.connection().close();
}

TEST(Tls, BodyUntilCloseNeedsCloseNotify) {
  for (const bool notify : {true, false}) {
    RawServer server([&](TestSocket& socket, int) {
      TlsPeer peer(socket);
      peer.read_until("\r\n\r\n");
      peer.write("HTTP/1.1 200 OK\r\n\r\nhello");
      if (notify) peer.close_notify();
    });
    EventLoop loop;
    TestClient client(loop, tls_origin(server.port()), {std::string(kGet)});
    client.run();
    EXPECT_EQ(client.last().body, "hello");
    EXPECT_EQ(client.last().complete, notify);
    EXPECT_EQ(client.errors.size(), notify ? 0U : 1U);
  }
}

NetError connect_error(const Origin& origin, bool* accepted = nullptr) {
  RawServer server([&](TestSocket& socket, int) {
    TlsPeer peer(socket);
    if (accepted != nullptr) *accepted = peer.accepted;
    peer.read_until("\r\n\r\n");
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  });
  EventLoop loop;
  Origin there = origin;
  there.port = server.port();
  TestClient client(loop, there, {std::string(kGet)});
  client.run();
  if (client.errors.empty()) return {.message = "none"};
  return client.errors[0];
}

TEST(Tls, VerifiesAuthorityAndName) {
  EXPECT_EQ(connect_error(tls_origin(0)).message, "none");
  EXPECT_EQ(connect_error(tls_origin(0, "good.test")).message, "none");

  const NetError name = connect_error(tls_origin(0, "bad.test"));
  EXPECT_EQ(name.kind, NetErrorKind::kConnect);
  EXPECT_THAT(name.message, HasSubstr("tls handshake failed: certificate not accepted: "));
  EXPECT_FALSE(name.response_started);
  EXPECT_THAT(connect_error(tls_origin(0, "127.0.0.2")).message, HasSubstr("not accepted"));

  Origin system = tls_origin(0);
  system.ca_file.clear();
  EXPECT_THAT(connect_error(system).message, HasSubstr("certificate not accepted"));
  system.verify_peer = false;
  EXPECT_EQ(connect_error(system).message, "none");

  Origin missing = tls_origin(0);
  missing.ca_file = "/nowhere.pem";
  EXPECT_THAT(connect_error(missing).message, HasSubstr("authorities from /nowhere.pem"));
}

TEST(Tls, PeerThatSpeaksNoTls) {
  for (const bool answers : {true, false}) {
    RawServer server([&](TestSocket& socket, int) {
      std::string hello;
      socket.read_some(hello);
      if (answers) socket.write("HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    EventLoop loop;
    TestClient client(loop, tls_origin(server.port()), {std::string(kGet)});
    client.run();
    ASSERT_EQ(client.errors.size(), 1U);
    EXPECT_EQ(client.errors[0].kind, NetErrorKind::kConnect);
    EXPECT_THAT(client.errors[0].message, HasSubstr("tls handshake"));
  }
}

}  // namespace
}  // namespace prony::net
