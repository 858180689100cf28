// Service: the OpenAI-compatible HTTP server over any Executor: routes, admission, streaming,
// cancellation when a client goes, drain at the end. One event-loop thread speaks HTTP, one step
// loop generates (step_loop.hpp); this class lives on the event loop.
// Routes: /v1/models /v1/completions /v1/chat/completions /tokenize /detokenize /health /version
// /metrics. Thread safety: loop thread only.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/core/result.hpp"
#include "prony/net/event_loop.hpp"
#include "prony/net/http_server.hpp"
#include "prony/sched/executor.hpp"
#include "prony/sched/scheduler.hpp"
#include "prony/server/api.hpp"
#include "prony/server/generation.hpp"
#include "prony/server/metrics.hpp"
#include "prony/server/step_loop.hpp"
#include "prony/token/chat.hpp"
#include "prony/token/tokenizer.hpp"

namespace prony::server {

struct ServiceOptions {
  std::string model_name;  // what /v1/models says and requests must ask for
  std::string version;
  int32_t max_waiting = 1024;         // requests beyond max_sequences; more are answered 503
  int32_t retry_after_s = 1;          // what the 503 says
  size_t max_queued_bytes = 8 << 20;  // unread output of one client; beyond it the client is cut
  uint64_t seed = 0;                  // of requests that name none
  SamplingDefaults sampling;          // of requests that say nothing
  net::HttpServer::Options http;
  sched::SchedulerOptions scheduler;
};

class Service {
 public:
  /// Keeps references to all but the options. `on_failure` is called on the loop when the device
  /// fails; the service then answers 500 to everything. Error: kEnvironment (cannot listen),
  /// kInvalidArgument (scheduler options).
  static Result<std::unique_ptr<Service>> create(net::EventLoop& loop, sched::Executor& executor,
                                                 const token::Tokenizer& tokenizer,
                                                 const token::ChatTemplate& chat_template,
                                                 const core::Clock& clock, ServiceOptions options,
                                                 std::function<void(const Error&)> on_failure);
  ~Service();

  uint16_t port() const { return http_->port(); }
  /// Accepts nothing more and calls `done` once everything in flight has been answered.
  void drain(std::function<void()> done);

 private:
  using ExchangePtr = std::shared_ptr<net::Exchange>;
  Service(net::EventLoop& loop, sched::Executor& executor, const token::Tokenizer& tokenizer,
          const token::ChatTemplate& chat_template, ServiceOptions options,
          std::function<void(const Error&)> on_failure);

  void handle(const net::HttpRequest& request, const ExchangePtr& exchange);
  void handle_generation(const net::HttpRequest& request, const ExchangePtr& exchange, bool chat);
  void handle_tokenize(const net::HttpRequest& request, const ExchangePtr& exchange);
  void handle_detokenize(const net::HttpRequest& request, const ExchangePtr& exchange);
  void respond_json(const ExchangePtr& exchange, std::string_view body);
  void respond_error(const ExchangePtr& exchange, const ApiError& error);
  net::Headers headers(std::string_view content_type) const;

  std::optional<ApiError> refuse(const GenerationRequest& request, size_t sequences) const;
  ApiResult<std::vector<std::vector<int32_t>>> tokenize(const GenerationRequest& request) const;
  std::optional<ApiError> check_lengths(const std::vector<std::vector<int32_t>>& prompts,
                                        GenerationRequest& request) const;
  void start(std::shared_ptr<Generation> generation, std::vector<std::vector<int32_t>> prompts,
             core::Nanos arrived_ns);
  void take_news(std::vector<Output> news);
  void end(const std::shared_ptr<Generation>& generation);
  void cancel(const std::shared_ptr<Generation>& generation);
  void check_drained();

  net::EventLoop& loop_;
  sched::Executor& executor_;
  const token::Tokenizer& tokenizer_;
  const token::ChatTemplate& chat_template_;
  ServiceOptions options_;
  std::function<void(const Error&)> on_failure_;
  Metrics metrics_;
  std::unique_ptr<net::HttpServer> http_;
  std::unordered_map<Ticket, std::shared_ptr<Generation>> live_;
  uint64_t requests_ = 0;  // generation requests so far: ids and default seeds
  std::function<void()> drained_;
  std::shared_ptr<Service*> self_;   // nulled at destruction: tasks posted to the loop look here
  std::unique_ptr<StepLoop> steps_;  // last: its thread calls back until it is gone
};

}  // namespace prony::server
