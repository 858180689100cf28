// format_request and fetch: one message, and one whole exchange on a loop of its own.
#include <fmt/format.h>

#include <optional>

#include "prony/net/http_client.hpp"
#include "prony/net/http_format.hpp"

namespace prony::net {
namespace {

using core::Nanos;

// Readiness, model lists and metrics are kilobytes; more than this is not one of them.
constexpr size_t kFetchBodyLimit = 64 << 20;

std::string host_header(const Origin& origin) {
  const bool ipv6 = origin.host.find(':') != std::string::npos;
  std::string host = ipv6 ? "[" + origin.host + "]" : origin.host;
  if (origin.port != (origin.tls ? 443 : 80)) host += fmt::format(":{}", origin.port);
  return host;
}

class Fetch final : HttpConnection::Handler {
 public:
  Fetch(const Url& url, std::string request) : url_(url), request_(std::move(request)) {}

  Result<SimpleResponse> run(Nanos timeout_ns) {
    const auto addresses = resolve(url_.origin);
    if (!addresses) return addresses.error();
    Timer deadline(loop_, [this] { end("no answer in time"); });
    deadline.arm(core::monotonic_ns() + timeout_ns);
    // A name may have an address where nobody listens (::1 beside 127.0.0.1): try each.
    for (const Address& address : addresses.value()) {
      retry_ = false;
      HttpConnection connection(loop_, url_.origin, address, *this);
      connection_ = &connection;
      connection.connect();
      loop_.run();
      if (!retry_) break;
    }
    if (problem_) {
      return environment_error(fmt::format("{}://{}{}: {}", url_.origin.tls ? "https" : "http",
                                           host_header(url_.origin), url_.path, *problem_));
    }
    return std::move(response_);
  }

 private:
  void on_connected(Nanos) override { connection_->send(request_); }
  void on_sent(Nanos, Nanos) override {}
  void on_head(const ResponseHead& head, const ReceiveStamp&) override {
    response_.status = head.status;
    response_.prony_device = head.prony_device;
  }
  void on_body(std::string_view piece, const ReceiveStamp&) override {
    if (response_.body.size() + piece.size() > kFetchBodyLimit) {
      connection_->close();
      return end("the answer is longer than 64 MiB");
    }
    response_.body += piece;
  }
  void on_complete(const ReceiveStamp&, bool) override { end(std::nullopt); }
  void on_error(const NetError& error, const ReceiveStamp&) override {
    end(error.message);
    retry_ = error.kind == NetErrorKind::kConnect;
  }

  void end(std::optional<std::string> problem) {
    problem_ = std::move(problem);
    retry_ = false;
    loop_.stop();
  }

  const Url& url_;
  const std::string request_;
  EventLoop loop_;
  HttpConnection* connection_ = nullptr;
  SimpleResponse response_;
  std::optional<std::string> problem_;
  bool retry_ = false;
};

}  // namespace

std::string format_request(std::string_view method, const Origin& origin, std::string_view target,
                           const std::vector<std::pair<std::string, std::string>>& headers,
                           std::string_view body) {
  std::string message;
  message.reserve(256 + body.size());
  message += fmt::format("{} {} HTTP/1.1\r\n", method, target.empty() ? "/" : target);
  append_header(message, "Host", host_header(origin));
  bool has_type = false;
  for (const auto& [name, value] : headers) {
    has_type = has_type || equal_ignoring_case(name, "content-type");
    append_header(message, name, value);
  }
  if (!body.empty() && !has_type) append_header(message, "Content-Type", "application/json");
  if (!body.empty() || method == "POST" || method == "PUT") {
    append_header(message, "Content-Length", std::to_string(body.size()));
  }
  message += "\r\n";
  message += body;
  return message;
}

Result<SimpleResponse> fetch(const Url& url, std::string_view method, std::string_view body,
                             const std::vector<std::pair<std::string, std::string>>& headers,
                             Nanos timeout_ns) {
  return Fetch(url, format_request(method, url.origin, url.path, headers, body)).run(timeout_ns);
}

}  // namespace prony::net
