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
#include "prony/load/stream_memory.hpp"

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

/// How a stream is cut into events, and what the Timeline must know to judge it.
struct StreamForm {
  enum class Framing {
    kSse,    // server-sent events
    kLines,  // a JSON object a line (or up to a NUL)
  };
  Framing framing = Framing::kSse;
  bool ends_with_body = false;  // no end marker but the end of a body of known extent
  bool echoes_prompt = false;   // the answer may begin with the prompt: on_request() is wanted
};

/// Reads the events of all streams of one event loop; what one stream needs to remember between
/// its events is in its StreamMemory.
class EventParser {
 public:
  explicit EventParser(const StreamForm& form) : form_(form) {}
  virtual ~EventParser() = default;
  const StreamForm& form() const { return form_; }
  /// The HTTP message that the stream answers, before its first event; only where echoes_prompt.
  virtual void on_request(std::string_view /*message*/, StreamMemory& /*memory*/) {}
  /// Reads one event. Never fails: what cannot be read is Delta::Kind::kBroken. `event` is the
  /// value of the SSE field of that name. Allocates nothing once its buffers have grown.
  virtual void parse(std::string_view data, std::string_view event, StreamMemory& memory,
                     Delta& delta) = 0;

 private:
  StreamForm form_;
};

/// The capabilities of a dialect; docs/dialects.md shows them as a table (compared by a test).
struct DialectInfo {
  const char* name;     // --endpoint-type
  const char* aliases;  // comma-separated, may be empty
  const char* path;     // below the base URL, which stands for .../v1; {model} is replaced
  StreamForm form;
  const char* text;       // "pieces", "whole" (each event all text so far) or "either"
  const char* end;        // what tells that an answer is whole
  const char* counts;     // where the server says how many tokens there are
  bool takes_token_ids;   // a prompt may be token ids
  bool continuous_usage;  // understands UsageRequest::kContinuous where the server does
  bool channels;          // tells reasoning and tool calls from text
  bool names_model;       // the request says which model
  bool ignores_eos;       // has a way to ask for answers of the asked length
  const char* identity;   // GET path that only such servers answer, for `auto`; empty: none
  // JSON pointers into that answer, comma-separated: one of them is there, and may name the model.
  const char* identity_members;
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
/// The dialects whose path `endpoint` ends with: "/v1/chat/completions" is openai-chat alone,
/// "/generate" may be sglang or vllm-generate.
std::vector<const Dialect*> dialects_of_path(std::string_view endpoint);

/// Refuses what no dialect can measure: more than one choice a request (n, best_of), stream:false.
/// Error: kInvalidArgument naming the flag.
Result<void> check_extra_body(const core::Json& extra, std::string_view flag);

/// What most bodies share: the prompt in "prompt", as text or as token ids; "stream", and
/// "temperature" and "ignore_eos" where they are asked for.
void put_prompt(const BodyPrompt& prompt, core::Json& body);
void put_sampling(const BodyOptions& options, core::Json& body);
/// `body` with --extra-body: its members win, objects merge, null removes (RFC 7396).
std::string write_body(core::Json body, const BodyOptions& options);

const Dialect& openai_chat();
const Dialect& openai_completions();
const Dialect& openai_responses();
const Dialect& sglang();
const Dialect& llamacpp();
const Dialect& tgi();
const Dialect& ollama();
const Dialect& vllm_generate();
const Dialect& triton();
const Dialect& trtllm();
const Dialect& lightllm();

/// The message of an error body (any of the forms servers use), one line, at most ~300 bytes; the
/// first line of the text itself where it is no JSON.
std::string error_text(std::string_view body);
/// `text` on one line: control characters become spaces, cut at a character border.
std::string one_line(std::string_view text, size_t bytes_max = 300);

}  // namespace prony::load
