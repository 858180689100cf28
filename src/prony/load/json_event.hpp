// JsonEventParser: what the events of all dialects share: the end marker [DONE], keep-alives, JSON
// that is parsed whole and validated (simdjson's DOM: measured 134 ns an event of 200 bytes at
// run-time dispatch, where its On-Demand front end, compiled for the baseline, took 208), because a
// broken event must never count as a token, and errors in all the shapes that servers use. A
// dialect reads the members that it knows and hands the others to other().
// Thread safety: one thread.
#pragma once
#include <simdjson.h>

#include <string>
#include <string_view>

#include "prony/load/dialect.hpp"

namespace prony::load {

class JsonEventParser : public EventParser {
 public:
  explicit JsonEventParser(const StreamForm& form = {});
  void parse(std::string_view data, std::string_view event, StreamMemory& memory,
             Delta& delta) final;

 protected:
  using Element = simdjson::dom::element;
  using Object = simdjson::dom::object;

  /// Reads one event, a JSON object. What is broken is said with broken().
  virtual void read(Object event, StreamMemory& memory, Delta& delta) = 0;

  /// A member that the dialect does not know: it may report an error. Errors as members named
  /// "error" count whatever else the event holds; {"object":"error"} and {"type":"error"} only
  /// where no payload() was seen.
  void other(std::string_view key, Element value) {
    if (key == "error") {
      if (value.is_null()) return;
      error_ = value;
      has_error_ = true;
    } else if (key == "object" || key == "type") {
      std::string_view word;
      flat_error_ |= value.get(word) == simdjson::SUCCESS && word == "error";
    }
  }
  void payload() { has_payload_ = true; }
  /// The event reports the error in `value`: an object with message, type, code, or text.
  void fail(Element value) {
    error_ = value;
    has_error_ = true;
  }
  /// The value of `event:`, for dialects that name their events there.
  std::string_view event_name() const { return event_name_; }

  /// Marks the event as not what the dialect allows; always false.
  static bool broken(Delta& delta, std::string_view why) {
    delta.kind = Delta::Kind::kBroken;
    delta.message = why;
    return false;
  }
  /// A string or null into `into`; false, and broken, if it is anything else.
  static bool text(Element value, std::string_view& into, Delta& delta, std::string_view why);
  static std::string_view string_or_empty(Element value);
  /// A boolean into `into`; false, and broken, if it is anything else.
  static bool flag(Element value, bool& into, Delta& delta, std::string_view why) {
    return value.get(into) == simdjson::SUCCESS || broken(delta, why);
  }
  /// The member "index", the number of an answer: there must be one answer a request, number 0.
  static bool only_answer(Element index, Delta& delta) {
    return count_or_none(index) <= 0 ||
           broken(delta, "an answer other than 0, expected one answer a request");
  }
  /// All counts of the event are read.
  static void note_usage(Delta& delta) {
    delta.has_usage = delta.usage.completion_tokens >= 0 || delta.usage.prompt_tokens >= 0;
  }
  /// Counts come as integers; some gateways write 5.0. Anything else says nothing: -1.
  static int32_t count_or_none(Element value);

  /// Usage as OpenAI's routes write it, chat and completions with prompt_tokens and
  /// completion_tokens, responses with input_tokens and output_tokens. Null in every chunk is
  /// usual.
  static void read_openai_usage(Element value, Delta& delta);

  /// The member `key` of the JSON body of an HTTP message, if it is text.
  std::string_view body_member(std::string_view message, std::string_view key);

 private:
  bool parse_padded(std::string_view data, Element& root);
  void read_error(Object top, Delta& delta);

  simdjson::dom::parser parser_;
  std::string padded_;   // the event with the padding simdjson reads beyond its end
  std::string message_;  // text of an error
  std::string_view event_name_;
  Element error_;
  bool has_error_ = false, flat_error_ = false, has_payload_ = false;  // of the event being read
};

}  // namespace prony::load
