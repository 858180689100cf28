// Render: the bytes of one step of a streamed answer (an SSE event, comment or piece of one) and
// the bodies of whole answers, in OpenAI's JSON. Thread safety: one Renderer per answer.
#pragma once
#include <string>
#include <string_view>

#include "prony/mock/plan.hpp"
#include "prony/mock/timeline.hpp"

namespace prony::mock {

/// `text` as a JSON string, quotes included. Invalid UTF-8 is passed on.
void append_json_string(std::string& to, std::string_view text);

/// The text of token `index`; joined in order they are the answer.
std::string token_text(Text text, int64_t index);
std::string tokens_text(Text text, int64_t first, int64_t count);

/// OpenAI's error body, in one line.
std::string error_body(std::string_view message, std::string_view type, int code);

class Renderer {
 public:
  /// The plan and facts must outlive it. `id` names the answer, `model` is echoed.
  Renderer(const Plan& plan, const RequestFacts& facts, std::string_view id, std::string_view model,
           int64_t created_s);

  /// Appends the step as it goes over the wire.
  void append(std::string& to, const Step& step);
  /// The answer as one JSON document, for a request that did not ask for a stream.
  std::string whole() const;

 private:
  void append_event(std::string& to, const Step& step);
  void append_data(std::string& to, std::string_view data);
  void append_fields(std::string& to);
  void append_line(std::string& to, std::string_view text) const;
  void append_payload(std::string& to, const Step& step) const;
  void append_chunk(std::string& to, const Step& step) const;
  void append_choice(std::string& to, const Step& step) const;
  void append_delta(std::string& to, const Step& step) const;
  void append_usage(std::string& to, int64_t completion_tokens) const;

  const Plan& plan_;
  const RequestFacts& facts_;
  std::string head_;  // what every chunk begins with, up to "choices"
  std::string scratch_;
  int64_t events_ = 0;
  bool at_start_ = true;
};

}  // namespace prony::mock
