// OpenAiChunkParser: the events of OpenAI-like streams. Chat and completions share everything but
// where a choice keeps its text: usage in any place and form, finish reasons, errors in all the
// shapes servers use, the end marker. Events are parsed whole and validated (simdjson's DOM:
// measured 134 ns an event of 200 bytes at run-time dispatch, where its On-Demand front end,
// compiled for the baseline, took 208), because a broken event must never count as a token.
// Thread safety: one thread.
#pragma once
#include <simdjson.h>

#include <string>
#include <string_view>

#include "prony/load/dialect.hpp"

namespace prony::load {

class OpenAiChunkParser : public EventParser {
 public:
  OpenAiChunkParser();
  void parse(std::string_view data, std::string_view event, Delta& delta) final;

 protected:
  /// Reads one field of `choices[0]` that the base does not know. Returns false if it is broken
  /// (delta.message says how).
  virtual bool read_choice_field(std::string_view key, simdjson::dom::element value,
                                 Delta& delta) = 0;

  /// Text fields may be null, a string, or parts ([{"type":"text","text":"..."}], Mistral). Adds to
  /// what `into` holds already. False if it is something else.
  bool add_text(simdjson::dom::element value, std::string& joined, std::string_view& into);

  std::string joined_text_, joined_reasoning_, joined_tools_;  // reused; only for joined pieces

 private:
  void parse_json(std::string_view data, bool is_error, Delta& delta);
  bool read_choices(simdjson::dom::element value, Delta& delta);
  bool read_choice(simdjson::dom::object choice, Delta& delta);
  void read_error(const simdjson::dom::element* error, simdjson::dom::object top, Delta& delta);

  simdjson::dom::parser parser_;
  std::string padded_;   // the event with the padding simdjson reads beyond its end
  std::string message_;  // text of an error
};

}  // namespace prony::load
