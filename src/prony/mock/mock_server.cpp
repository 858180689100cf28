#include "prony/mock/mock_server.hpp"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "prony/mock/answer.hpp"
#include "prony/mock/api_request.hpp"
#include "prony/mock/faults.hpp"
#include "prony/mock/stamps.hpp"
#include "prony/net/http_server.hpp"
#include "prony/version.hpp"

namespace prony::mock {

using core::Nanos;

namespace {

constexpr Nanos kIdleCloseNs = 200 * core::kNanosPerMilli;
// Long enough to be no fault of its own.
constexpr Nanos kIdleNs = 600 * core::kNanosPerSecond;

void respond_json(net::Exchange& exchange, int status, std::string_view body) {
  exchange.respond(status, {{"Content-Type", "application/json"}}, body);
}

}  // namespace

struct MockServer::Impl {
  Impl(net::EventLoop& loop_in, const Options& options_in, std::vector<const Fault*> faults_in)
      : loop(loop_in),
        options(options_in),
        faults(std::move(faults_in)),
        fault_names(joined_names(faults)) {}

  void handle(const net::HttpRequest& request, const std::shared_ptr<net::Exchange>& exchange);
  void generate(const net::HttpRequest& request, const std::shared_ptr<net::Exchange>& exchange,
                bool chat);
  Plan make_plan(const RequestFacts& facts) const;
  void on_end(Answer& answer);
  void record(Answer& answer);
  std::string metrics() const;

  net::EventLoop& loop;
  const Options options;
  const std::vector<const Fault*> faults;
  const std::string fault_names;
  std::unique_ptr<StampsFile> stamps;
  std::unordered_map<Answer*, std::unique_ptr<Answer>> answers;
  uint64_t requests = 0, finished = 0;
  int64_t prompt_tokens = 0, generated_tokens = 0;
  std::unique_ptr<net::HttpServer> server;  // last: it closes exchanges, which end answers
};

void MockServer::Impl::handle(const net::HttpRequest& request,
                              const std::shared_ptr<net::Exchange>& exchange) {
  const bool post = request.method == "POST";
  if (post && request.path == "/v1/chat/completions") return generate(request, exchange, true);
  if (post && request.path == "/v1/completions") return generate(request, exchange, false);
  if (request.method != "GET") {
    return respond_json(*exchange, 404, error_body("no such path", "NotFoundError", 404));
  }
  if (request.path == "/v1/models") {
    std::string body = R"({"object":"list","data":[{"id":)";
    append_json_string(body, options.model);
    return respond_json(*exchange, 200,
                        body + R"(,"object":"model","created":0,"owned_by":"prony"}]})");
  }
  if (request.path == "/health") return exchange->respond(200, {}, "");
  if (request.path == "/version") {
    return respond_json(*exchange, 200,
                        fmt::format(R"({{"version":"{}","server":"prony-mock"}})", kVersion));
  }
  if (request.path == "/metrics") {
    return exchange->respond(200, {{"Content-Type", "text/plain; version=0.0.4"}}, metrics());
  }
  respond_json(*exchange, 404, error_body("no such path", "NotFoundError", 404));
}

Plan MockServer::Impl::make_plan(const RequestFacts& facts) const {
  Plan plan;
  plan.ttft_ns = options.ttft_ns;
  plan.itl_ns = options.itl_ns;
  plan.tokens = options.tokens.value_or(facts.tokens_asked);
  plan.finish_reason = plan.tokens < facts.tokens_asked ? "stop" : "length";
  plan.chunk_tokens = {options.tokens_per_chunk};
  for (const Fault* fault : faults) fault->apply(plan, facts);
  return plan;
}

void MockServer::Impl::generate(const net::HttpRequest& request,
                                const std::shared_ptr<net::Exchange>& exchange, bool chat) {
  const uint64_t index = requests++;
  auto parsed = parse_api_request(request.body, chat);
  if (!parsed) {
    return respond_json(*exchange, 400, error_body(parsed.error().message, "BadRequestError", 400));
  }
  RequestFacts facts = parsed->facts;
  facts.index = index;
  facts.index_on_connection = request.index_on_connection;
  prompt_tokens += facts.prompt_tokens;
  std::string id(request.header("x-request-id"));
  if (id.empty()) id = fmt::format("mock-{}", index);
  auto answer = std::make_unique<Answer>(
      loop,
      Answer::Request{.facts = facts,
                      .plan = make_plan(facts),
                      .id = std::move(id),
                      .model = parsed->model.empty() ? options.model : parsed->model,
                      .t_received_ns = request.t_received_ns},
      exchange, [this](Answer& ended) { on_end(ended); });
  Answer* started = answer.get();
  answers.emplace(started, std::move(answer));
  started->start();
}

void MockServer::Impl::record(Answer& answer) {
  generated_tokens += answer.tokens_sent();
  if (stamps == nullptr) return;
  stamps->add({.id = answer.request().id,
               .t_received_ns = answer.request().t_received_ns,
               .writes = answer.take_writes(),
               .fault = fault_names});
}

void MockServer::Impl::on_end(Answer& answer) {
  ++finished;
  record(answer);
  answers.erase(&answer);
}

std::string MockServer::Impl::metrics() const {
  const auto metric = [](std::string_view name, std::string_view type, auto value) {
    return fmt::format("# TYPE {0} {1}\n{0}{{model_name=\"mock\"}} {2}\n", name, type, value);
  };
  return metric("vllm:num_requests_running", "gauge", answers.size()) +
         metric("vllm:num_requests_waiting", "gauge", 0) +
         metric("vllm:prompt_tokens_total", "counter", prompt_tokens) +
         metric("vllm:generation_tokens_total", "counter", generated_tokens) +
         metric("vllm:request_success_total", "counter", finished);
}

Result<std::unique_ptr<MockServer>> MockServer::create(net::EventLoop& loop,
                                                       const Options& options) {
  const auto out_of_range = [](std::string_view flag, auto found, std::string_view expected) {
    return invalid_argument(fmt::format("{}: found {}, expected {}", flag, found, expected));
  };
  if (options.ttft_ns < 0) return out_of_range("--ttft-ms", core::to_ms(options.ttft_ns), ">= 0");
  if (options.itl_ns < 0) return out_of_range("--itl-ms", core::to_ms(options.itl_ns), ">= 0");
  if (options.tokens.value_or(1) < 1) return out_of_range("--tokens", *options.tokens, ">= 1");
  if (options.tokens_per_chunk < 1) {
    return out_of_range("--tokens-per-chunk", options.tokens_per_chunk, ">= 1");
  }
  auto faults = find_faults(options.faults);
  if (!faults) return faults.error();
  auto impl = std::make_unique<Impl>(loop, options, std::move(faults).value());
  if (!options.stamps_path.empty()) {
    auto stamps = StampsFile::create(options.stamps_path);
    if (!stamps) return stamps.error();
    impl->stamps = std::move(stamps).value();
  }
  net::HttpServer::Options http;
  http.host = options.host;
  http.port = options.port;
  http.server_name = "prony-mock";
  http.idle_timeout_ns = kIdleNs;
  for (const Fault* fault : impl->faults) {
    if (fault->name == "idle-close") http.idle_timeout_ns = kIdleCloseNs;
  }
  auto server =
      net::HttpServer::create(loop, http,
                              [raw = impl.get()](const net::HttpRequest& request,
                                                 const std::shared_ptr<net::Exchange>& exchange) {
                                raw->handle(request, exchange);
                              });
  if (!server) return server.error();
  impl->server = std::move(server).value();
  return std::unique_ptr<MockServer>(new MockServer(std::move(impl)));
}

MockServer::MockServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MockServer::~MockServer() = default;

uint16_t MockServer::port() const {
  return impl_->server->port();
}
size_t MockServer::answers_in_flight() const {
  return impl_->answers.size();
}

Result<void> MockServer::finish() {
  // The server closes its exchanges, and each answer ends as if its peer had gone.
  impl_->server.reset();
  return impl_->stamps == nullptr ? Result<void>() : impl_->stamps->finish();
}

}  // namespace prony::mock
