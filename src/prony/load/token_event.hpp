// TokenEventParser: the generate_stream events of TGI and LightLLM: one token an event, as
// {"token":{"id","text","special"}}, and the answer's end in the same event as its last token. A
// special token (end of text) counts as a token and is no text. Body: inputs and parameters.
// Thread safety: one thread.
#pragma once
#include "prony/load/json_event.hpp"

namespace prony::load {

class TokenEventParser : public JsonEventParser {
 protected:
  /// A member of the event other than `token`.
  virtual bool read_member(std::string_view key, Element value, Delta& delta) = 0;
  /// A member of `token` other than id, text, special.
  virtual void read_token_member(std::string_view /*key*/, Element /*value*/, Delta& /*delta*/) {}
  /// All members are read.
  virtual void end_event(StreamMemory& /*memory*/, Delta& /*delta*/) {}

 private:
  void read(Object event, StreamMemory& memory, Delta& delta) final;
  bool read_token(Element value, Delta& delta);
};

/// {"inputs":..,"parameters":{max_new_tokens, do_sample, temperature}}, to be completed.
core::Json token_event_body(const BodyPrompt& prompt, const BodyOptions& options);

}  // namespace prony::load
