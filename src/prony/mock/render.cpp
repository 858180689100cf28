#include "prony/mock/render.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace prony::mock {
namespace {

constexpr size_t kHugeBytes = 1 << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Where a line break may stand in `json`: after the first comma outside a string.
size_t break_point(std::string_view json) {
  bool in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '\\' && in_string) {
      ++i;
    } else if (json[i] == '"') {
      in_string = !in_string;
    } else if (json[i] == ',' && !in_string) {
      return i + 1;
    }
  }
  return json.size();
}

}  // namespace

void append_json_string(std::string& to, std::string_view text) {
  to += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        to += "\\\"";
        break;
      case '\\':
        to += "\\\\";
        break;
      case '\n':
        to += "\\n";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          to += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          to += c;
        }
    }
  }
  to += '"';
}

std::string token_text(Text text, int64_t index) {
  static constexpr std::array<std::string_view, 8> kWords = {"tide",  "turns", "over",  "grey",
                                                             "stone", "and",   "comes", "back"};
  // Two, three and four bytes a character.
  static constexpr std::array<std::string_view, 4> kMultiByte = {"é", "海", "🙂", "ß海🚀"};
  // None of these ends a line of SSE or a JSON string.
  static constexpr std::array<std::string_view, 4> kSeparators = {"\xE2\x80\xA8", "\xE2\x80\xA9",
                                                                  "\xC2\x85", "\v\f\x1E"};
  static constexpr std::array<std::string_view, 4> kMarkup = {
      "<script>alert(1)</script>", "</td><img src=x onerror=alert(1)>", "\"'&amp;<!--", "\\u003c"};
  const auto pick = [index](const auto& list) {
    return std::string(list[static_cast<size_t>(index) % list.size()]);
  };
  switch (text) {
    case Text::kWords:
      return (index == 0 ? "" : " ") + pick(kWords);
    case Text::kMultiByte:
      return pick(kMultiByte);
    case Text::kSeparators:
      return "a" + pick(kSeparators) + "b";
    case Text::kMarkup:
      return pick(kMarkup);
  }
  return {};
}

std::string tokens_text(Text text, int64_t first, int64_t count) {
  std::string joined;
  for (int64_t i = first; i < first + count; ++i) joined += token_text(text, i);
  return joined;
}

std::string error_body(std::string_view message, std::string_view type, int code) {
  std::string body = R"({"error":{"message":)";
  append_json_string(body, message);
  return body + fmt::format(R"(,"type":"{}","param":null,"code":{}}}}})", type, code);
}

Renderer::Renderer(const Plan& plan, const RequestFacts& facts, std::string_view id,
                   std::string_view model, int64_t created_s)
    : plan_(plan), facts_(facts) {
  head_ = R"({"id":)";
  append_json_string(head_, id);
  const std::string_view object = !facts.chat    ? "text_completion"
                                  : facts.stream ? "chat.completion.chunk"
                                                 : "chat.completion";
  head_ += fmt::format(R"(,"object":"{}","created":{},"model":)", object, created_s);
  append_json_string(head_, model);
}

void Renderer::append_line(std::string& to, std::string_view text) const {
  to += text;
  to += plan_.wire.line_end;
}

void Renderer::append_fields(std::string& to) {
  if (plan_.wire.id_event_retry) {
    append_line(to, "event: message");
    append_line(to, fmt::format("id: {}", events_));
    if (events_ == 0) append_line(to, "retry: 3000");
  }
  ++events_;
}

void Renderer::append_data(std::string& to, std::string_view data) {
  const std::string_view field = plan_.wire.space_after_colon ? "data: " : "data:";
  append_fields(to);
  if (const size_t at = break_point(data); plan_.wire.two_data_lines && at < data.size()) {
    to += field;
    append_line(to, data.substr(0, at));
    data.remove_prefix(at);
  }
  to += field;
  append_line(to, data);
}

void Renderer::append_event(std::string& to, const Step& step) {
  if (plan_.wire.two_data_lines) {
    scratch_.clear();
    append_payload(scratch_, step);
    return append_data(to, scratch_);
  }
  append_fields(to);
  to += plan_.wire.space_after_colon ? "data: " : "data:";
  append_payload(to, step);
  to += plan_.wire.line_end;
}

void Renderer::append(std::string& to, const Step& step) {
  if (plan_.wire.byte_order_mark && at_start_) to += kByteOrderMark;
  at_start_ = false;
  switch (step.kind) {
    case StepKind::kPing:
      append_line(to, ": ping");
      break;
    case StepKind::kErrorField:
      append_line(to, "error: " + error_body("the slot was lost", "server_error", 500));
      break;
    case StepKind::kDone:
      append_data(to, "[DONE]");
      if (!plan_.wire.final_blank) return;
      break;
    case StepKind::kPartOfEvent: {
      std::string event;
      append_event(event, {.kind = StepKind::kTokens,
                           .first_token = step.total_tokens,
                           .tokens = 1,
                           .total_tokens = step.total_tokens});
      to += event.substr(0, event.size() / 2);
      return;
    }
    case StepKind::kEnd:
      return;
    default:
      append_event(to, step);
      break;
  }
  append_line(to, "");
}

void Renderer::append_usage(std::string& to, int64_t completion_tokens) const {
  fmt::format_to(std::back_inserter(to),
                 R"({{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{}}})",
                 facts_.prompt_tokens, completion_tokens, facts_.prompt_tokens + completion_tokens);
}

void Renderer::append_delta(std::string& to, const Step& step) const {
  to += '{';
  const bool role = step.kind == StepKind::kRole ||
                    (step.kind == StepKind::kTokens && plan_.role == Role::kInEveryChunk);
  if (role) to += R"("role":"assistant",)";
  if (step.kind == StepKind::kRole) {
    to += plan_.role == Role::kNullContent ? R"("content":null)" : R"("content":"")";
  } else if (step.kind == StepKind::kEmpty) {
    to += R"("content":"")";
  } else if (step.kind == StepKind::kTokens) {
    const std::string text = tokens_text(plan_.text, step.first_token, step.tokens);
    const bool thinking = step.first_token < plan_.tokens / 2;
    if (plan_.channel == Channel::kToolCall) {
      const bool first = step.first_token == 0;
      to += R"("tool_calls":[{"index":0,)";
      if (first) to += R"("id":"call_1","type":"function",)";
      to += first ? R"("function":{"name":"lookup","arguments":)" : R"("function":{"arguments":)";
      append_json_string(to, text);
      to += "}}]";
    } else {
      to += !thinking || plan_.channel == Channel::kContent ? R"("content":)"
            : plan_.channel == Channel::kReasoning          ? R"("reasoning":)"
                                                            : R"("reasoning_content":)";
      append_json_string(to, text);
    }
  }
  to += '}';
}

void Renderer::append_choice(std::string& to, const Step& step) const {
  to += R"({"index":0,)";
  if (facts_.chat) {
    to += R"("delta":)";
    append_delta(to, step);
  } else {
    to += R"("text":)";
    const bool text = step.kind == StepKind::kTokens;
    append_json_string(to, text ? tokens_text(plan_.text, step.first_token, step.tokens) : "");
  }
  to += R"(,"logprobs":null,"finish_reason":)";
  if (step.kind == StepKind::kFinish || step.finishes) {
    append_json_string(to, plan_.finish_reason);
  } else {
    to += "null";
  }
  to += '}';
}

void Renderer::append_payload(std::string& to, const Step& step) const {
  switch (step.kind) {
    case StepKind::kError:
      to += error_body("the engine died", "InternalServerError", 500);
      break;
    case StepKind::kGarbage:
      to += R"({"id":"broken","choices":[{"delta":{"conte)";
      break;
    case StepKind::kUsage:
      to += head_;
      to += R"(,"choices":[],"usage":)";
      append_usage(to, step.total_tokens);
      to += '}';
      break;
    case StepKind::kNoChoices:
      to += head_;
      to += step.total_tokens % 2 == 0 ? "}" : R"(,"choices":null})";
      break;
    default:
      append_chunk(to, step);
      break;
  }
}

void Renderer::append_chunk(std::string& to, const Step& step) const {
  to += head_;
  to += R"(,"choices":[)";
  append_choice(to, step);
  to += ']';
  if (step.kind == StepKind::kProgress) {
    to += fmt::format(R"(,"prompt_progress":{{"total":{0},"cache":0,"processed":{0}}})",
                      facts_.prompt_tokens);
  }
  if (step.huge) {
    to += R"(,"padding":")";
    to.append(kHugeBytes, 'x');
    to += '"';
  }
  const bool finishes = step.kind == StepKind::kFinish || step.finishes;
  const bool in_chunk = plan_.usage == Usage::kEveryChunk ||
                        (plan_.usage == Usage::kAsAsked && facts_.continuous_usage) ||
                        (plan_.usage == Usage::kWithFinish && finishes);
  if (in_chunk) {
    to += R"(,"usage":)";
    append_usage(to, step.total_tokens);
  } else if (plan_.usage == Usage::kNullInChunks) {
    to += R"(,"usage":null)";
  }
  to += '}';
}

std::string Renderer::whole() const {
  const std::string text = tokens_text(plan_.text, 0, plan_.tokens);
  std::string body = head_ + R"(,"choices":[{"index":0,)";
  if (facts_.chat) {
    body += R"("message":{"role":"assistant","content":)";
    append_json_string(body, text);
    body += "}";
  } else {
    body += R"("text":)";
    append_json_string(body, text);
  }
  body += fmt::format(R"(,"logprobs":null,"finish_reason":"{}"}}])", plan_.finish_reason);
  if (plan_.usage != Usage::kNever) {
    body += R"(,"usage":)";
    append_usage(body, plan_.tokens);
  }
  return body + "}";
}

}  // namespace prony::mock
