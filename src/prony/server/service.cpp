#include "prony/server/service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "prony/core/hash.hpp"

namespace prony::server {
namespace {

constexpr int32_t kDefaultCompletionTokens = 16;  // OpenAI's and vLLM's default of the older route

// Requests with different salts must not share prefix blocks; those without one do.
uint64_t salt_of(const std::string& text) {
  return text.empty() ? 0 : core::fnv1a(text);
}

// Only what may stand in an id and a header: the client chose it.
std::string request_id(const net::HttpRequest& request, uint64_t number) {
  const auto given = request.header("X-Request-Id");
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.' || c == ':';
  };
  if (!given.empty() && given.size() <= 128 && std::all_of(given.begin(), given.end(), is_plain)) {
    return std::string(given);
  }
  return fmt::format("{:016x}", number);
}

}  // namespace

Result<std::unique_ptr<Service>> Service::create(net::EventLoop& loop, sched::Executor& executor,
                                                 const token::Tokenizer& tokenizer,
                                                 const token::ChatTemplate& chat_template,
                                                 const core::Clock& clock, ServiceOptions options,
                                                 std::function<void(const Error&)> on_failure) {
  std::unique_ptr<Service> service(new Service(loop, executor, tokenizer, chat_template,
                                               std::move(options), std::move(on_failure)));
  const auto deliver = [&loop, self = service->self_](std::vector<Output> news) {
    loop.post([self, news = std::move(news)]() mutable {
      if (*self != nullptr) (*self)->take_news(std::move(news));
    });
  };
  const auto fail = [&loop, self = service->self_](const Error& error) {
    loop.post([self, error] {
      if (*self != nullptr) (*self)->on_failure_(error);
    });
  };
  auto steps = StepLoop::create(executor, service->options_.scheduler, service->metrics_, clock,
                                deliver, fail);
  if (!steps) return steps.error();
  service->steps_ = std::move(steps).value();
  auto http = net::HttpServer::create(
      loop, service->options_.http,
      [raw = service.get()](const net::HttpRequest& request, const ExchangePtr& exchange) {
        raw->handle(request, exchange);
      });
  if (!http) return http.error();
  service->http_ = std::move(http).value();
  return service;
}

Service::Service(net::EventLoop& loop, sched::Executor& executor, const token::Tokenizer& tokenizer,
                 const token::ChatTemplate& chat_template, ServiceOptions options,
                 std::function<void(const Error&)> on_failure)
    : loop_(loop),
      executor_(executor),
      tokenizer_(tokenizer),
      chat_template_(chat_template),
      options_(std::move(options)),
      on_failure_(std::move(on_failure)),
      metrics_(options_.model_name),
      self_(std::make_shared<Service*>(this)) {}

Service::~Service() {
  *self_ = nullptr;
  steps_.reset();  // joins the thread, which may still post
}

void Service::handle(const net::HttpRequest& request, const ExchangePtr& exchange) {
  const struct {
    const char *method, *path;
    std::function<void()> answer;
  } kRoutes[] = {
      {"POST", "/v1/chat/completions", [&] { handle_generation(request, exchange, true); }},
      {"POST", "/v1/completions", [&] { handle_generation(request, exchange, false); }},
      {"POST", "/tokenize", [&] { handle_tokenize(request, exchange); }},
      {"POST", "/detokenize", [&] { handle_detokenize(request, exchange); }},
      {"GET", "/v1/models",
       [&] {
         core::Json model;
         model["id"] = options_.model_name;
         model["object"] = "model";
         model["owned_by"] = "prony";
         model["max_model_len"] = executor_.capacity().max_context;
         core::Json list;
         list["object"] = "list";
         list["data"].push_back(std::move(model));
         respond_json(exchange, list.dump());
       }},
      {"GET", "/health",
       [&] { exchange->respond(drained_ ? 503 : 200, headers("text/plain"), ""); }},
      {"GET", "/version",
       [&] {
         core::Json version;
         version["version"] = options_.version;
         version["server"] = "prony";
         version["device"] = executor_.device();
         respond_json(exchange, version.dump());
       }},
      {"GET", "/metrics",
       [&] { exchange->respond(200, headers("text/plain; version=0.0.4"), metrics_.text()); }},
  };
  bool known_path = false;
  for (const auto& route : kRoutes) {
    if (request.path != route.path) continue;
    known_path = true;
    if (request.method == route.method) return route.answer();
  }
  if (known_path) {
    return respond_error(
        exchange, {405, "MethodNotAllowed",
                   fmt::format("{} is not allowed on {}", request.method, request.path), ""});
  }
  respond_error(exchange, {404, "NotFoundError", fmt::format("no route {}", request.path), ""});
}

net::Headers Service::headers(std::string_view content_type) const {
  net::Headers list{{"Content-Type", std::string(content_type)}};
  // An emulated device says so on every answer: a run against it must never pass as measured.
  if (const auto device = executor_.device(); device.starts_with("emulated:")) {
    list.emplace_back("X-Prony-Device", device);
  }
  return list;
}

void Service::respond_json(const ExchangePtr& exchange, std::string_view body) {
  exchange->respond(200, headers("application/json"), body);
}

void Service::respond_error(const ExchangePtr& exchange, const ApiError& error) {
  auto list = headers("application/json");
  if (error.status == 503) list.emplace_back("Retry-After", std::to_string(options_.retry_after_s));
  exchange->respond(error.status, list, format_error(error));
}

void Service::handle_generation(const net::HttpRequest& request, const ExchangePtr& exchange,
                                bool chat) {
  auto parsed = parse_generation(request.body, chat, options_.sampling);
  if (const auto* error = std::get_if<ApiError>(&parsed)) return respond_error(exchange, *error);
  auto& wanted = std::get<GenerationRequest>(parsed);
  const size_t sequences = chat ? 1 : wanted.prompts.size();
  if (const auto error = refuse(wanted, sequences)) return respond_error(exchange, *error);
  auto prompts = tokenize(wanted);
  if (const auto* error = std::get_if<ApiError>(&prompts)) return respond_error(exchange, *error);
  auto& ids = std::get<std::vector<std::vector<int32_t>>>(prompts);
  if (const auto error = check_lengths(ids, wanted)) return respond_error(exchange, *error);

  const auto id = request_id(request, ++requests_);
  Formatter formatter({.chat = chat,
                       .id = (chat ? "chatcmpl-" : "cmpl-") + id,
                       .model = options_.model_name,
                       .created_s = core::realtime_ns() / core::kNanosPerSecond,
                       .logprobs = wanted.logprobs >= 0,
                       .token_ids = wanted.return_token_ids});
  auto stream_headers = headers("text/event-stream; charset=utf-8");
  stream_headers.emplace_back("Cache-Control", "no-cache");
  stream_headers.emplace_back("X-Request-Id", id);
  auto body_headers = headers("application/json");
  body_headers.emplace_back("X-Request-Id", id);
  start(std::make_shared<Generation>(std::move(wanted), std::move(formatter), tokenizer_, exchange,
                                     std::move(stream_headers), std::move(body_headers)),
        std::move(ids), request.t_received_ns);
}

// Model, drain and the bound of the queue: what is refused before any work.
std::optional<ApiError> Service::refuse(const GenerationRequest& request, size_t sequences) const {
  if (drained_) return ApiError{503, "ServiceUnavailableError", "the server is stopping", ""};
  if (!request.model.empty() && request.model != options_.model_name) {
    return ApiError{
        404, "NotFoundError",
        fmt::format("model: found '{}', this server has '{}'", request.model, options_.model_name),
        "model"};
  }
  const auto places = static_cast<size_t>(options_.scheduler.max_sequences) +
                      static_cast<size_t>(options_.max_waiting);
  if (live_.size() + sequences > places) {
    return ApiError{
        503, "ServiceUnavailableError",
        fmt::format("queue full: {} requests running or waiting, at most {}", live_.size(), places),
        ""};
  }
  return std::nullopt;
}

ApiResult<std::vector<std::vector<int32_t>>> Service::tokenize(
    const GenerationRequest& request) const {
  std::vector<std::vector<int32_t>> prompts;
  if (request.chat) {
    auto ids = chat_template_.render(request.messages);
    if (!ids) return ApiError{400, "BadRequestError", ids.error().message, "messages"};
    prompts.push_back(std::move(ids).value());
    return prompts;
  }
  for (const auto& prompt : request.prompts) {
    if (const auto* text = std::get_if<std::string>(&prompt)) {
      prompts.push_back(tokenizer_.encode(*text, {.add_bos = true}));
      continue;
    }
    const auto& ids = std::get<std::vector<int32_t>>(prompt);
    for (const auto id : ids) {
      if (!tokenizer_.is_valid(id)) {
        return ApiError{400, "BadRequestError",
                        fmt::format("prompt: found token id {}, the vocabulary has {}", id,
                                    tokenizer_.vocabulary_size()),
                        "prompt"};
      }
    }
    prompts.push_back(ids);
  }
  return prompts;
}

// Fills in the default of max_tokens and refuses what the context cannot hold, naming both numbers.
std::optional<ApiError> Service::check_lengths(const std::vector<std::vector<int32_t>>& prompts,
                                               GenerationRequest& request) const {
  const int32_t context = executor_.capacity().max_context;
  size_t longest = 0;
  for (const auto& prompt : prompts) longest = std::max(longest, prompt.size());
  const auto longest_prompt = static_cast<int64_t>(longest);
  const char* field = request.chat ? "messages" : "prompt";
  if (longest_prompt >= context) {
    return ApiError{400, "BadRequestError",
                    fmt::format("the maximum context length is {} tokens, the prompt has {} and "
                                "needs at least one more for output",
                                context, longest_prompt),
                    field};
  }
  const auto room = static_cast<int32_t>(context - longest_prompt);
  if (!request.max_tokens) {
    request.max_tokens = request.chat ? room : std::min(room, kDefaultCompletionTokens);
  }
  if (*request.max_tokens > room) {
    return ApiError{400, "BadRequestError",
                    fmt::format("the maximum context length is {} tokens, but {} were asked for "
                                "({} in the prompt, {} to generate)",
                                context, longest_prompt + *request.max_tokens, longest_prompt,
                                *request.max_tokens),
                    "max_tokens"};
  }
  if (request.min_tokens > *request.max_tokens) {
    return ApiError{400, "BadRequestError",
                    fmt::format("min_tokens: found {}, expected at most max_tokens, {}",
                                request.min_tokens, *request.max_tokens),
                    "min_tokens"};
  }
  return std::nullopt;
}

void Service::start(std::shared_ptr<Generation> generation,
                    std::vector<std::vector<int32_t>> prompts, core::Nanos arrived_ns) {
  const GenerationRequest& request = generation->request();
  const OutputStream::Options output{.max_tokens = *request.max_tokens,
                                     .min_tokens = request.min_tokens,
                                     .ignore_eos = request.ignore_eos,
                                     .stop = request.stop};
  std::vector<OutputStream> streams;
  for (size_t i = 0; i < prompts.size(); ++i) {
    auto stream = OutputStream::create(tokenizer_, output);
    if (!stream) {
      return respond_error(std::shared_ptr<net::Exchange>(generation, &generation->exchange()),
                           {400, "BadRequestError", stream.error().message, "stop"});
    }
    streams.push_back(std::move(stream).value());
  }
  const auto eos = tokenizer_.eos_ids();
  for (size_t i = 0; i < prompts.size(); ++i) {
    sched::Sampling sampling{.temperature = request.temperature,
                             .top_p = request.top_p,
                             .top_k = request.top_k,
                             // Without a seed of its own a request draws from the server's.
                             .seed = request.seed.value_or(options_.seed + requests_ * 1000 + i),
                             .logprobs = request.logprobs,
                             .min_tokens = request.min_tokens,
                             .banned_before_min = {}};
    if (request.min_tokens > 0) sampling.banned_before_min.assign(eos.begin(), eos.end());
    const auto prompt_tokens = static_cast<int32_t>(prompts[i].size());
    const Ticket ticket = steps_->submit({.input = {.prompt = std::move(prompts[i]),
                                                    .sampling = std::move(sampling),
                                                    .max_new_tokens = *request.max_tokens},
                                          .stream = std::move(streams[i]),
                                          .priority = request.priority,
                                          .cache_salt = salt_of(request.cache_salt),
                                          .arrived_ns = arrived_ns});
    generation->add_choice(ticket, prompt_tokens);
    live_[ticket] = generation;
  }
  generation->exchange().on_peer_close([this, weak = std::weak_ptr<Generation>(generation)] {
    if (const auto gone = weak.lock()) cancel(gone);
  });
}

void Service::take_news(std::vector<Output> news) {
  for (const auto& output : news) {
    const auto found = live_.find(output.ticket);
    if (found == live_.end()) continue;  // cancelled meanwhile
    const auto generation = found->second;
    generation->take(output);
    if (output.finish != Finish::kNone) live_.erase(output.ticket);
    if (generation->complete()) {
      end(generation);
    } else if (generation->exchange().queued_bytes() > options_.max_queued_bytes) {
      // The client reads too slowly to be served without unbounded memory.
      generation->exchange().abort();
      cancel(generation);
    }
  }
  check_drained();
}

// Forgets a generation; choices that still run (one failed, all fail) are cancelled.
void Service::end(const std::shared_ptr<Generation>& generation) {
  for (const auto ticket : generation->open_tickets()) {
    if (live_.erase(ticket) > 0) steps_->cancel(ticket);
  }
}

void Service::cancel(const std::shared_ptr<Generation>& generation) {
  end(generation);
  check_drained();
}

void Service::handle_tokenize(const net::HttpRequest& request, const ExchangePtr& exchange) {
  const auto parsed = parse_tokenize(request.body);
  if (const auto* error = std::get_if<ApiError>(&parsed)) return respond_error(exchange, *error);
  const auto& wanted = std::get<TokenizeRequest>(parsed);
  std::vector<int32_t> ids;
  if (const auto* text = std::get_if<std::string>(&wanted.input)) {
    ids = tokenizer_.encode(*text, {.add_bos = wanted.add_special_tokens});
  } else {
    auto rendered = chat_template_.render(std::get<1>(wanted.input));
    if (!rendered) {
      return respond_error(exchange,
                           {400, "BadRequestError", rendered.error().message, "messages"});
    }
    ids = std::move(rendered).value();
  }
  core::Json json;
  json["count"] = ids.size();
  json["max_model_len"] = executor_.capacity().max_context;
  json["tokens"] = ids;
  respond_json(exchange, json.dump());
}

void Service::handle_detokenize(const net::HttpRequest& request, const ExchangePtr& exchange) {
  const auto parsed = parse_detokenize(request.body);
  if (const auto* error = std::get_if<ApiError>(&parsed)) return respond_error(exchange, *error);
  const auto& ids = std::get<std::vector<int32_t>>(parsed);
  for (const auto id : ids) {
    if (tokenizer_.is_valid(id)) continue;
    return respond_error(exchange, {400, "BadRequestError",
                                    fmt::format("tokens: found {}, the vocabulary has {}", id,
                                                tokenizer_.vocabulary_size()),
                                    "tokens"});
  }
  core::Json json;
  json["prompt"] = tokenizer_.decode(ids, {.skip_special = false});
  respond_json(exchange, json.dump());
}

void Service::drain(std::function<void()> done) {
  drained_ = std::move(done);
  http_->stop_accepting();
  check_drained();
}

// The last answer may still be on its way into the kernel: `done` runs on the next turn.
void Service::check_drained() {
  if (!drained_ || !live_.empty()) return;
  loop_.post([self = self_] {
    if (*self != nullptr && (*self)->live_.empty() && (*self)->drained_) (*self)->drained_();
  });
}

}  // namespace prony::server
