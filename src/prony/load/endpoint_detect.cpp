#include "prony/load/endpoint_detect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "prony/core/json.hpp"
#include "prony/load/timeline.hpp"

namespace prony::load {
namespace {

using core::Nanos;

constexpr Nanos kIdentityTimeout = 3 * core::kNanosPerSecond;
constexpr Nanos kAskTimeout = 60 * core::kNanosPerSecond;  // one token; may load the model first
constexpr Nanos kTotal = 120 * core::kNanosPerSecond;

std::string string_at(const core::Json& json, const std::string& pointer) {
  const core::Json::json_pointer at(pointer);
  return json.contains(at) && json.at(at).is_string() ? json.at(at).get<std::string>() : "";
}

// Of Triton's models the one that takes text: TensorRT-LLM's usual names, or the only one.
std::string triton_model(const Server& server, Nanos timeout_ns) {
  const net::Url url{server.origin, server.base_path + "/v2/repository/index"};
  const auto answer = net::fetch(url, "POST", "{}", server.headers, timeout_ns);
  if (!answer.ok() || answer.value().status != 200) return {};
  const auto json = core::parse_json(answer.value().body, "index");
  if (!json.ok() || !json.value().is_array()) return {};
  std::vector<std::string> names;
  for (const auto& model : json.value()) {
    if (model.is_object()) names.push_back(string_at(model, "/name"));
  }
  for (const char* usual : {"ensemble", "tensorrt_llm_bls"}) {
    if (std::find(names.begin(), names.end(), usual) != names.end()) return usual;
  }
  return names.size() == 1 ? names.front() : "";
}

// Asks for one token and judges the answer as the load will. Empty: it speaks the dialect; else why
// not.
std::string ask(const Dialect& dialect, const Server& server, const std::string& target,
                Nanos timeout_ns) {
  BodyOptions options;
  options.model = server.model;
  const auto body = dialect.body({.text = "hi", .ids = {}, .output_tokens = 1}, options);
  const auto answer = net::fetch({server.origin, target}, "POST", body, server.headers, timeout_ns);
  if (!answer.ok()) return answer.error().message;

  LoopMeters meters;
  const auto parser = dialect.make_parser();
  Timeline timeline(*parser, meters, {});
  timeline.begin({});
  timeline.on_sent(1, 1);
  timeline.on_request("\r\n\r\n" + body);
  const net::ReceiveStamp stamp{.kernel_ns = 2, .user_ns = 2, .from_kernel = false};
  net::ResponseHead head;
  head.status = answer.value().status;
  head.chunked = true;
  timeline.on_head(head, stamp);
  timeline.on_body(answer.value().body, stamp);
  timeline.on_complete(stamp);
  const auto row = timeline.take_row();
  if (row.status == record::Status::kOk) return {};
  // A token may be held back or end the answer at once; then the dialect's own marker proves it.
  const bool marked = row.t_done_ns.has_value() && !parser->form().ends_with_body;
  if (row.status == record::Status::kEmpty && marked) return {};
  return row.error;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
                       (byte >= 'a' && byte <= 'z') || c == '-' || c == '_' || c == '.' || c == '~';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return out;
}

// Finds out, remembers what was tried, and knows when to stop.
class Search {
 public:
  Search(const Server& server, const std::optional<std::string>& path,
         const std::atomic<bool>* interrupt)
      : server_(server), path_(path), interrupt_(interrupt), t_end_ns_(now() + kTotal) {}

  bool over() const { return (interrupt_ != nullptr && interrupt_->load()) || now() >= t_end_ns_; }

  /// Which native servers it says it is; each is asked once.
  std::vector<const Dialect*> identities() {
    std::vector<const Dialect*> found;
    for (const auto* dialect : dialects()) {
      if (dialect->info().identity[0] == '\0' || over()) continue;
      const auto identity = identify(*dialect, server_, std::min(kIdentityTimeout, left()));
      if (!identity.found) continue;
      if (server_.model.empty()) server_.model = identity.model;
      found.push_back(dialect);
    }
    identified_ = found;
    return found;
  }

  /// The first that answers; each dialect is asked once.
  const Dialect* first_of(std::span<const Dialect* const> candidates) {
    for (const auto* dialect : candidates) {
      if (std::find(asked_.begin(), asked_.end(), dialect) != asked_.end() || over()) continue;
      if (dialect->info().names_model && server_.model.empty()) {
        needs_model_ = true;
        continue;
      }
      asked_.push_back(dialect);
      const auto target = request_target(server_.base_path, path_, dialect, server_.model);
      auto problem = ask(*dialect, server_, target, std::min(kAskTimeout, left()));
      if (problem.empty()) {
        reason_ = fmt::format("{} gave a token", target);
        const bool identified =
            std::find(identified_.begin(), identified_.end(), dialect) != identified_.end();
        if (identified) reason_ += fmt::format(", GET {} an answer", dialect->info().identity);
        return dialect;
      }
      tried_ += fmt::format("{}{}: {}", tried_.empty() ? "" : "; ", dialect->info().name, problem);
    }
    return nullptr;
  }

  Detected found(const Dialect* dialect) const { return {dialect, server_.model, reason_}; }
  Error nothing() const {
    if (interrupt_ != nullptr && interrupt_->load()) return failed("interrupted by the user");
    if (needs_model_) {
      return invalid_argument(fmt::format("--model: missing, and {} names none", server_.base_url));
    }
    return environment_error(
        fmt::format("--endpoint-type auto: {} speaks no dialect that this program knows ({})",
                    server_.base_url, one_line(tried_, 1000)));
  }

 private:
  static Nanos now() { return core::monotonic_ns(); }
  Nanos left() const { return std::max(t_end_ns_ - now(), core::kNanosPerMilli); }

  Server server_;
  const std::optional<std::string>& path_;
  const std::atomic<bool>* interrupt_;
  Nanos t_end_ns_;
  std::vector<const Dialect*> asked_, identified_;
  std::string tried_, reason_;
  bool needs_model_ = false;
};

}  // namespace

Identity identify(const Dialect& dialect, const Server& server, core::Nanos timeout_ns) {
  const auto& info = dialect.info();
  Identity identity;
  if (info.identity[0] == '\0') return identity;
  const net::Url url{server.origin, server.base_path + info.identity};
  const auto answer = net::fetch(url, "GET", "", server.headers, timeout_ns);
  if (!answer.ok() || answer.value().status != 200) return identity;
  const auto json = core::parse_json(answer.value().body, "identity");
  if (!json.ok()) return identity;
  std::string_view keys = info.identity_members;
  while (!keys.empty()) {
    const auto pointer = std::string(keys.substr(0, keys.find(',')));
    keys.remove_prefix(std::min(keys.size(), pointer.size() + 1));
    if (!json.value().contains(core::Json::json_pointer(pointer))) continue;
    identity.found = true;
    if (identity.model.empty()) identity.model = string_at(json.value(), pointer);
  }
  if (identity.found && &dialect == &triton()) identity.model = triton_model(server, timeout_ns);
  return identity;
}

Result<Detected> detect(const Server& server, std::span<const Dialect* const> among,
                        const std::optional<std::string>& path,
                        const std::atomic<bool>* interrupt) {
  Search search(server, path, interrupt);
  const Dialect* dialect = nullptr;
  if (!among.empty()) {
    dialect = search.first_of(among);
    if (dialect == nullptr) return search.nothing();
    return search.found(dialect);
  }
  // What lists models as OpenAI does is measured by OpenAI's routes, chat first, as users use it.
  const std::array<const Dialect*, 2> openai = {&openai_chat(), &openai_completions()};
  if (server.lists_models) {
    dialect = search.first_of(openai);
  }
  if (dialect == nullptr) dialect = search.first_of(search.identities());
  if (dialect == nullptr) {
    std::vector<const Dialect*> rest(dialects().begin(), dialects().end());
    std::erase(rest, &trtllm());  // openai-completions with a trap: only by its name
    dialect = search.first_of(rest);
  }
  if (dialect == nullptr) return search.nothing();
  return search.found(dialect);
}

std::string request_target(std::string_view base_path, const std::optional<std::string>& path,
                           const Dialect* dialect, std::string_view model) {
  std::string below = path ? *path : std::string(dialect->info().path);
  if (const auto at = below.find("{model}"); at != std::string::npos) {
    below.replace(at, std::string_view("{model}").size(), escaped(model));
  }
  if (!below.starts_with('/')) below.insert(below.begin(), '/');
  return std::string(base_path) + below;
}

}  // namespace prony::load
