#include "prony/workload/sharegpt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "prony/core/json.hpp"
#include "prony/token/quote.hpp"
#include "prony/workload/lengths.hpp"

namespace prony::workload {
namespace {

// Cuts a JSON array into the texts of its elements without building it.
class ArrayCutter {
 public:
  ArrayCutter(std::string_view text, const std::string& path) : text_(text), path_(path) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  }

  /// The next element, which begins at line(); empty at the end.
  Result<std::string_view> next() {
    skip_blanks();
    if (!std::exchange(begun_, true)) {
      if (!take('[')) return error("expected a list of conversations: [");
      skip_blanks();
      if (take(']')) return end();
    } else {
      if (take(']')) return end();
      if (!take(',')) return error("expected a comma or ] after a conversation");
      skip_blanks();
    }
    line_of_element_ = line_;
    const size_t from = at_;
    int64_t depth = 0;
    bool in_text = false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (in_text) {
        if (c == '\\') {
          ++at_;
        } else if (c == '"') {
          in_text = false;
        }
      } else if (c == '"') {
        in_text = true;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (c == '}' || c == ']') {
        if (depth == 0) break;
        if (--depth == 0) {
          ++at_;
          break;
        }
      } else if (c == ',' && depth == 0) {
        break;
      }
    }
    at_ = std::min(at_, text_.size());
    if (depth > 0 || in_text) return error("found the end of the file inside a conversation");
    return text_.substr(from, at_ - from);
  }
  int64_t line() const { return line_of_element_; }

 private:
  void skip_blanks() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (c != ' ' && c != '\t' && c != '\r' && c != '\n') return;
    }
  }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  Result<std::string_view> end() {
    skip_blanks();
    if (at_ < text_.size()) return error("expected nothing after the list");
    return std::string_view();
  }
  Error error(std::string_view what) const {
    return invalid_argument(fmt::format("{}:{}: {}", path_, line_, what));
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
  int64_t line_ = 1, line_of_element_ = 1;
  bool begun_ = false;
};

enum class Speaker { kPerson, kModel };

std::optional<Speaker> speaker_of(const core::Json& message) {
  for (const char* key : {"from", "role"}) {
    const auto found = message.find(key);
    if (found == message.end() || !found->is_string()) continue;
    const auto name = found->get<std::string>();
    for (const char* person : {"human", "user", "system"}) {
      if (name == person) return Speaker::kPerson;
    }
    for (const char* model : {"gpt", "chatgpt", "assistant", "bing", "bard"}) {
      if (name == model) return Speaker::kModel;
    }
  }
  return std::nullopt;
}

const std::string* text_of(const core::Json& message) {
  for (const char* key : {"value", "content"}) {
    const auto found = message.find(key);
    if (found != message.end() && found->is_string()) return found->get_ptr<const std::string*>();
  }
  return nullptr;
}

// Collects the turns of one conversation.
struct Conversation {
  std::vector<TraceRow> turns;
  int64_t prompt = 0, answer = 0;  // tokens of the turn that is open

  void add(Speaker speaker, int64_t tokens) {
    if (speaker == Speaker::kModel) {
      if (prompt > 0) answer += tokens;
      return;
    }
    close();
    prompt += tokens;
  }
  void close() {
    if (prompt == 0 || answer == 0) return;
    TraceRow row;
    row.input_tokens = static_cast<int32_t>(std::min<int64_t>(prompt, kTokensMax));
    row.output_tokens = static_cast<int32_t>(std::min<int64_t>(answer, kTokensMax));
    row.turn = static_cast<int32_t>(turns.size());
    turns.push_back(row);
    prompt = answer = 0;
  }
};

}  // namespace

Result<Trace> parse_sharegpt(std::string_view content, const std::string& path,
                             const TokenCounter& count) {
  Trace trace;
  trace.has_times = false;
  if (!count) trace.note = "tokens estimated as one for 4 bytes (no tokenizer)";
  ArrayCutter cutter(content, path);
  int64_t session = 0;
  while (true) {
    const auto text = cutter.next();
    if (!text) return text.error();
    if (text->empty()) break;
    const std::string where = fmt::format("{}:{}", path, cutter.line());
    const auto json = core::parse_json(*text, where);
    if (!json) return json.error();
    const auto messages = json->is_object() ? json->find("conversations") : json->end();
    if (messages == json->end() || !messages->is_array()) {
      return invalid_argument(
          fmt::format("{}: found {}, expected an object with a list "
                      "\"conversations\"",
                      where, token::quote(*text)));
    }
    Conversation conversation;
    for (size_t i = 0; i < messages->size(); ++i) {
      const auto& message = (*messages)[i];
      const auto speaker = message.is_object() ? speaker_of(message) : std::nullopt;
      const auto* said = message.is_object() ? text_of(message) : nullptr;
      if (!speaker || said == nullptr) {
        return invalid_argument(fmt::format(
            "{}: conversations[{}]: expected \"from\" human or gpt and a text \"value\"", where,
            i));
      }
      const auto bytes = static_cast<int64_t>(said->size());
      conversation.add(*speaker, count ? count(*said) : (bytes + 3) / 4);
    }
    conversation.close();
    if (conversation.turns.empty()) {
      ++trace.skipped_rows;
      continue;
    }
    for (auto& row : conversation.turns) {
      row.session = session;
      trace.rows.push_back(row);
    }
    ++session;
  }
  return finish_trace(std::move(trace), path);
}

}  // namespace prony::workload
