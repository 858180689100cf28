#include "prony/load/endpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "prony/core/json.hpp"
#include "prony/load/endpoint_detect.hpp"

namespace prony::load {
namespace {

using core::Nanos;

constexpr Nanos kAttempt = 3 * core::kNanosPerSecond;  // for one GET to be answered
constexpr Nanos kPause = 200 * core::kNanosPerMilli;   // between attempts
constexpr Nanos kTellAfter = core::kNanosPerSecond;    // of waiting
constexpr size_t kBodyMax = 1 << 20;

// One exchange as a state machine; its answer is filled as things come.
class Probe final : private net::HttpConnection::Handler {
 public:
  Probe(const net::Origin& origin, const net::Address& address, std::string message, Nanos timeout)
      : message_(std::move(message)),
        timer_(loop_, [this] { loop_.stop(); }),
        connection_(loop_, origin, address, *this) {
    answer_.kind = ProbeAnswer::Kind::kRefused;
    answer_.error = "no connection";
    timer_.arm(core::monotonic_ns() + timeout);
    connection_.connect();
    loop_.run();
    connection_.close();
  }
  ProbeAnswer take() { return std::move(answer_); }

 private:
  void on_connected(Nanos) override {
    answer_.kind = ProbeAnswer::Kind::kSilent;
    answer_.error = "connected, but no answer";
    connection_.send(message_);
  }
  void on_sent(Nanos, Nanos) override {}
  void on_head(const net::ResponseHead& head, const net::ReceiveStamp&) override {
    answer_.kind = ProbeAnswer::Kind::kAnswered;
    answer_.status = head.status;
    answer_.server = one_line(head.server, 100);
    answer_.prony_device = one_line(head.prony_device, 100);
    answer_.error.clear();
    if (head.content_type == "text/event-stream") loop_.stop();
  }
  void on_body(std::string_view piece, const net::ReceiveStamp&) override {
    answer_.body.append(piece.substr(0, kBodyMax - std::min(kBodyMax, answer_.body.size())));
    if (answer_.body.size() >= kBodyMax) loop_.stop();
  }
  void on_complete(const net::ReceiveStamp&, bool) override { loop_.stop(); }
  void on_error(const net::NetError& error, const net::ReceiveStamp&) override {
    if (answer_.kind == ProbeAnswer::Kind::kSilent) answer_.kind = ProbeAnswer::Kind::kClosed;
    if (answer_.kind != ProbeAnswer::Kind::kAnswered) answer_.error = error.message;
    loop_.stop();
  }

  std::string message_;
  ProbeAnswer answer_;
  net::EventLoop loop_;
  net::Timer timer_;
  net::HttpConnection connection_;
};

// llama.cpp opens its port before the model is loaded.
bool still_loading(const ProbeAnswer& answer) {
  return answer.status == 503 && answer.body.find("oading") != std::string::npos;
}

// Whether the answer is a list of models as OpenAI's; takes the first.
bool read_models(const std::string& body, Endpoint& endpoint) {
  const auto json = core::parse_json(body, "models");
  if (!json.ok() || !json.value().is_object()) return false;
  const auto data = json.value().find("data");
  if (data == json.value().end() || !data->is_array() || data->empty()) return false;
  const auto& first = data->front();
  if (!first.is_object()) return false;
  const auto text = [&first](const char* key) -> std::string {
    const auto found = first.find(key);
    return found != first.end() && found->is_string() ? found->get<std::string>() : "";
  };
  if (endpoint.model.empty()) endpoint.model = text("id");
  endpoint.owner = text("owned_by");
  return true;
}

struct Waiter {
  const EndpointOptions& options;
  const std::function<void(std::string_view)>& note;
  const std::atomic<bool>* interrupt;

  // The first address that answers, and its answer.
  Result<ProbeAnswer> wait(Endpoint& endpoint, const std::vector<net::Address>& addresses,
                           std::string_view target) const {
    const Nanos begin = core::monotonic_ns();
    bool told = false;
    for (int round = 1;; ++round) {
      ProbeAnswer last;
      for (const auto& address : addresses) {
        auto answer = probe(endpoint.origin, address, target, options.headers, kAttempt);
        const bool loading = still_loading(answer);
        if (answer.kind == ProbeAnswer::Kind::kAnswered && !loading) {
          endpoint.address = address;
          return answer;
        }
        if (loading) answer.error = "it is still loading its model";
        const bool silent = answer.kind == ProbeAnswer::Kind::kSilent ||
                            (answer.kind == ProbeAnswer::Kind::kClosed && round >= 3);
        if (silent) {
          // It takes connections; perhaps it knows the path of the requests and nothing else.
          endpoint.address = address;
          endpoint.warnings.push_back(
              fmt::format("GET {} got no answer ({})", target, answer.error));
          return answer;
        }
        last = std::move(answer);
      }
      const Nanos now = core::monotonic_ns();
      if (interrupt != nullptr && interrupt->load()) return failed("interrupted by the user");
      if (now - begin >= options.ready_timeout_ns) {
        return environment_error(
            fmt::format("{}: not ready within {:g} s (--ready-timeout): {}", endpoint.base_url,
                        static_cast<double>(options.ready_timeout_ns) / 1e9, last.error));
      }
      if (!told && now - begin > kTellAfter) {
        told = true;
        note(fmt::format("waiting for {} ({})", endpoint.base_url, last.error));
      }
      core::MonotonicClock().sleep_until(now + kPause);
    }
  }
};

// Fills in dialect and model where they are not known yet.
Result<void> settle_dialect(const EndpointOptions& options, const Server& server,
                            const std::vector<const Dialect*>& possible,
                            const std::function<void(std::string_view)>& note,
                            const std::atomic<bool>* interrupt, Endpoint& endpoint) {
  if (endpoint.dialect == nullptr) {
    auto detected = detect(server, possible, options.path, interrupt);
    if (!detected) return detected.error();
    endpoint.dialect = detected.value().dialect;
    endpoint.model = detected.value().model;
    note(fmt::format("endpoint type {}: {}", endpoint.dialect->info().name, detected.value().why));
  } else if (endpoint.model.empty() && options.ready_timeout_ns > 0) {
    endpoint.model = identify(*endpoint.dialect, server, kAttempt).model;
  }
  if (!endpoint.model.empty()) return {};
  if (endpoint.dialect->info().names_model) {
    return invalid_argument(
        fmt::format("--model: missing, and {}/v1/models names none", endpoint.base_url));
  }
  endpoint.model = "unnamed";  // its requests do not say
  return {};
}

}  // namespace

bool Endpoint::counts_every_chunk() const {
  return owner == "vllm" || owner == "sglang" || owner == "prony";
}

bool Endpoint::is_mock() const {
  return server.starts_with("prony-mock");
}

bool Endpoint::dislikes_idle_connections() const {
  return owner == "llamacpp" || server.starts_with("llama.cpp") || dialect == &llamacpp();
}

Result<net::Url> parse_base_url(std::string_view text) {
  auto url = net::parse_url(text, "--base-url");
  if (!url) return url;
  auto& path = url.value().path;
  while (path.ends_with('/')) path.pop_back();
  if (path.ends_with("/v1")) path.resize(path.size() - 3);
  return url;
}

ProbeAnswer probe(const net::Origin& origin, const net::Address& address, std::string_view target,
                  const net::Headers& headers, core::Nanos timeout_ns) {
  auto all = headers;
  all.emplace_back("Connection", "close");
  all.emplace_back("Accept", "application/json");
  return Probe(origin, address, net::format_request("GET", origin, target, all, ""), timeout_ns)
      .take();
}

Result<Endpoint> open_endpoint(const EndpointOptions& options,
                               const std::function<void(std::string_view)>& note,
                               const std::atomic<bool>* interrupt) {
  auto url = parse_base_url(options.base_url);
  if (!url) return url.error();
  Endpoint endpoint;
  endpoint.origin = url.value().origin;
  endpoint.origin.verify_peer = !options.insecure;
  endpoint.base_url = options.base_url;
  endpoint.model = options.model;
  endpoint.headers = options.headers;
  while (endpoint.base_url.ends_with('/')) endpoint.base_url.pop_back();
  if (endpoint.base_url.ends_with("/v1")) {
    endpoint.base_url.resize(endpoint.base_url.size() - 3);
  }
  std::vector<const Dialect*> possible;  // that --endpoint may stand for
  if (options.type != "auto") {
    auto dialect = find_dialect(options.type, "--endpoint-type");
    if (!dialect) return dialect.error();
    endpoint.dialect = dialect.value();
  } else if (options.path) {
    possible = dialects_of_path(*options.path);
    if (possible.empty()) {
      return invalid_argument(fmt::format(
          "--endpoint: found '{}', whose dialect is not known; name it with --endpoint-type",
          *options.path));
    }
    if (possible.size() == 1) endpoint.dialect = possible.front();
  }

  auto addresses = net::resolve(endpoint.origin);
  if (!addresses) return addresses.error();
  endpoint.address = addresses.value().front();
  const auto& base_path = url.value().path;
  Server server;
  if (options.ready_timeout_ns > 0) {
    const Waiter waiter{options, note, interrupt};
    const auto answer = waiter.wait(endpoint, addresses.value(), base_path + "/v1/models");
    if (!answer) return answer.error();
    endpoint.server = answer.value().server;
    endpoint.prony_device = answer.value().prony_device;
    if (answer.value().status == 200) {
      server.lists_models = read_models(answer.value().body, endpoint);
    }
    if (answer.value().status == 401 || answer.value().status == 403) {
      endpoint.warnings.push_back(
          fmt::format("GET {}/v1/models: http {}; set OPENAI_API_KEY or --header", base_path,
                      answer.value().status));
    }
  }
  server.origin = endpoint.origin;
  server.base_url = endpoint.base_url;
  server.base_path = base_path;
  server.headers = options.headers;
  server.model = endpoint.model;
  if (auto settled = settle_dialect(options, server, possible, note, interrupt, endpoint);
      !settled) {
    return settled.error();
  }
  endpoint.target = request_target(base_path, options.path, endpoint.dialect, endpoint.model);
  return endpoint;
}

}  // namespace prony::load
