// Dialect: one protocol spoken by LLM servers: how a request is written and how the events of its
// stream are read. One small source a dialect; the table in dialect.cpp lists them with what they
// can do. A Dialect is immutable; an EventParser holds the buffers of one event loop.
// Thread safety: Dialect any thread; EventParser one thread.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"
#include "prony/load/delta.hpp"

namespace prony::load {

/// How many tokens each event holds, and who says so.
enum class UsageRequest {
  kNone,        // ask for nothing (servers that refuse stream_options)
  kFinal,       // usage once, at the end
  kContinuous,  // usage in every chunk: exact counts an event
  kTokenIds,    // final usage, and the token ids of each chunk
};

/// What all requests of a run have in common.
struct BodyOptions {
  std::string model;
  UsageRequest usage = UsageRequest::kFinal;
  bool stream = true;
  bool ignore_eos = false;            // answers of exactly the asked length (vLLM, SGLang, Prony)
  std::optional<double> temperature;  // unset: the server's default
  core::Json extra = core::Json::object();  // --extra-body; its members win
};

/// An earlier message of a conversation. `role` is "user" or "assistant".
struct BodyMessage {
  std::string_view role, text;
};

/// One request of the schedule, ready to be written.
struct BodyPrompt {
  std::string_view text;
  std::span<const int32_t> ids;  // [tokens]; used instead of text if not empty
  int32_t output_tokens = 0;     // asked for
  /// What was said before `text`, oldest first; empty unless DialectInfo::takes_history.
  std::span<const BodyMessage> history = {};
};

class EventParser {
 public:
  virtual ~EventParser() = default;
  /// Reads one event. Never fails: what cannot be read is Delta::Kind::kBroken. `event` is the
  /// value of the SSE field of that name. Allocates nothing once its buffers have grown.
  virtual void parse(std::string_view data, std::string_view event, Delta& delta) = 0;
};

struct DialectInfo {
  const char* name;            // --endpoint-type
  const char* aliases;         // comma-separated, may be empty
  const char* path;            // below the base URL, which stands for .../v1
  bool takes_token_ids;        // a prompt may be token ids
  bool continuous_usage;       // understands UsageRequest::kContinuous where the server does
  bool channels;               // tells reasoning and tool calls from text
  bool takes_history = false;  // earlier messages go as messages; else they are part of the text
};

class Dialect {
 public:
  virtual ~Dialect() = default;
  virtual const DialectInfo& info() const = 0;
  /// The request's JSON body.
  virtual std::string body(const BodyPrompt& prompt, const BodyOptions& options) const = 0;
  virtual std::unique_ptr<EventParser> make_parser() const = 0;
};

/// All dialects, in the order of the help text. "auto" is not among them (endpoint.hpp).
std::span<const Dialect* const> dialects();
/// By name or alias. Error: kInvalidArgument, "FLAG: found 'x', expected one of ...".
Result<const Dialect*> find_dialect(std::string_view name, std::string_view flag);
/// The dialect whose path `endpoint` ends with, or null: "/v1/chat/completions" is openai-chat.
const Dialect* dialect_of_path(std::string_view endpoint);

/// Refuses what no dialect can measure: more than one choice a request (n, best_of), stream:false.
/// Error: kInvalidArgument naming the flag.
Result<void> check_extra_body(const core::Json& extra, std::string_view flag);

const Dialect& openai_chat();
const Dialect& openai_completions();

/// The message of an error body (any of the forms servers use), one line, at most ~300 bytes; the
/// first line of the text itself where it is no JSON.
std::string error_text(std::string_view body);
/// `text` on one line: control characters become spaces, cut at a character border.
std::string one_line(std::string_view text, size_t bytes_max = 300);

}  // namespace prony::load
