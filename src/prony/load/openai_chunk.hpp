// OpenAiChunkParser: the events of OpenAI-like streams. Chat and completions share everything but
// where a choice keeps its text: usage in any place and form, finish reasons, errors in all the
// shapes servers use, the end marker.
// Thread safety: one thread.
#pragma once
#include <string>
#include <string_view>

#include "prony/load/json_event.hpp"

namespace prony::load {

class OpenAiChunkParser : public JsonEventParser {
 protected:
  /// Reads one field of `choices[0]` that the base does not know. Returns false if it is broken
  /// (delta.message says how).
  virtual bool read_choice_field(std::string_view key, simdjson::dom::element value,
                                 Delta& delta) = 0;
  /// The choice is read whole.
  virtual void end_choice(StreamMemory& /*memory*/, Delta& /*delta*/) {}

  /// Text fields may be null, a string, or parts ([{"type":"text","text":"..."}], Mistral). Adds to
  /// what `into` holds already. False if it is something else.
  bool add_text(simdjson::dom::element value, std::string& joined, std::string_view& into);

  std::string joined_text_, joined_reasoning_, joined_tools_;  // reused; only for joined pieces

 private:
  void read(Object event, StreamMemory& memory, Delta& delta) final;
  bool read_choices(simdjson::dom::element value, StreamMemory& memory, Delta& delta);
  bool read_choice(simdjson::dom::object choice, StreamMemory& memory, Delta& delta);
};

}  // namespace prony::load
