// 10,000 random streams, most of them damaged, in random pieces: the Timeline must agree with a
// second reading of the same bytes, written here without its parts (its own line splitting, another
// JSON parser), on what is a success. No success may be miscounted, and nothing may crash.
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/core/rng.hpp"
#include "prony/core/system.hpp"
#include "prony/load/timeline_test_util.hpp"

namespace prony::load {
namespace {

using core::Json;
using core::Rng;

std::string pick(Rng& rng, std::initializer_list<std::string> choices) {
  return choices.begin()[rng.below(choices.size())];
}

std::string random_stream(Rng& rng) {
  const std::string end_of_line = pick(rng, {"\n", "\n", "\r\n", "\r"});
  const std::string field = pick(rng, {"data: ", "data:"});
  std::string out = rng.below(8) == 0 ? "\xEF\xBB\xBF" : "";
  const auto event = [&](const std::string& data) {
    if (rng.below(10) == 0) out += ": ping" + end_of_line + end_of_line;
    if (rng.below(10) == 0) out += "id: 4" + end_of_line;
    out += field + data + end_of_line + end_of_line;
  };
  if (rng.below(4) != 0) event(chat_chunk(R"({"role":"assistant","content":""})"));
  const auto tokens = rng.below(12);
  for (uint64_t i = 0; i < tokens; ++i) {
    const auto text = pick(rng, {" sea", "\\n", "\\u00e9", "\xE6\xB5\xB7", "\xE2\x80\xA8", "x"});
    const auto key = pick(rng, {"content", "content", "reasoning", "reasoning_content"});
    event(chat_chunk("{\"" + key + "\":\"" + text + "\"}"));
    if (rng.below(20) == 0) event(R"({"error":{"message":"boom","code":500}})");
    if (rng.below(20) == 0) event(R"({"choices":[],"usage":null})");
  }
  if (rng.below(8) != 0) event(chat_chunk("{}", pick(rng, {"stop", "length", "stop", "abort"})));
  if (rng.below(2) == 0) event(R"({"choices":[],"usage":)" + usage_json(9, int(tokens)) + "}");
  if (rng.below(6) != 0) event("[DONE]");
  return out;
}

void damage(Rng& rng, std::string& bytes) {
  const auto at = [&] { return static_cast<size_t>(rng.below(bytes.size())); };
  for (uint64_t times = rng.below(4); times > 0 && bytes.size() > 4; --times) {
    switch (rng.below(6)) {
      case 0:
        bytes.resize(at());
        break;
      case 1:
        bytes[at()] = static_cast<char>(rng.below(256));
        break;
      case 2:
        bytes.erase(at(), 1 + rng.below(8));
        break;
      case 3:
        bytes.insert(at(), pick(rng, {"\n", "\n\n", "{", "\"", "data: ", "[DONE]", "error: x\n"}));
        break;
      case 4: {
        const auto from = at();
        bytes.insert(at(), bytes.substr(from, 1 + rng.below(200)));
        break;
      }
      default:
        break;
    }
  }
}

// The second reading.
struct Reading {
  bool error = false, broken = false, marker = false, done = false, not_stream = false;
  bool ambiguous = false;  // an object names a key twice: JSON does not say which one counts
  int tokens = 0;
  bool success() const { return !not_stream && !error && !broken && marker && tokens > 0; }
};

bool non_empty_text(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_string() && !json[key].get<std::string>().empty();
}

Json parse_noting_doubles(const std::string& data, Reading& r) {
  std::vector<std::set<std::string>> keys;
  return Json::parse(data, [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      r.ambiguous |= !keys.back().insert(parsed.get<std::string>()).second;
    }
    return true;
  });
}

// Returns false if reading stops there.
bool read_event(const std::string& data, bool whole, const std::string& type, Reading& r) {
  std::string word = data;
  while (!word.empty() && (word.back() == ' ' || word.back() == '\n')) word.pop_back();
  while (!word.empty() && (word.front() == ' ' || word.front() == '\n')) word.erase(0, 1);
  if (type != "error") {
    if (word == "[DONE]") {
      r.marker = r.done = true;
      return false;
    }
    if (word.empty()) return true;
  }
  Json json;
  try {
    json = parse_noting_doubles(data, r);
  } catch (const Json::exception&) {
    if (type == "error") {
      r.error = true;
    } else if (whole) {
      r.broken = true;
    }
    return false;
  }
  if (!json.is_object()) {
    (type == "error" ? r.error : r.broken) = true;
    return false;
  }
  const bool has_choices = json.contains("choices");
  if (has_choices && !json["choices"].is_null()) {
    const auto& choices = json["choices"];
    if (!choices.is_array() || choices.size() > 1) return r.broken = true, false;
    for (const auto& choice : choices) {
      if (!choice.is_object()) return r.broken = true, false;
      if (choice.contains("index") && choice["index"].is_number_integer() && choice["index"] != 0) {
        return r.broken = true, false;
      }
      for (const char* holder : {"delta", "message"}) {
        if (!choice.contains(holder) || choice[holder].is_null()) continue;
        const auto& delta = choice[holder];
        if (!delta.is_object()) return r.broken = true, false;
        for (const char* key : {"content", "refusal", "reasoning", "reasoning_content"}) {
          if (!delta.contains(key)) continue;
          const auto& value = delta[key];
          if (!value.is_null() && !value.is_string()) return r.broken = true, false;
        }
        if (non_empty_text(delta, "content") || non_empty_text(delta, "reasoning") ||
            non_empty_text(delta, "reasoning_content")) {
          ++r.tokens;
        }
      }
      if (choice.contains("finish_reason") && !choice["finish_reason"].is_null()) {
        if (!choice["finish_reason"].is_string()) return r.broken = true, false;
        const auto reason = choice["finish_reason"].get<std::string>();
        if (reason == "abort" || reason == "error") r.error = true;
        if (!reason.empty()) r.marker = true;
      }
    }
  }
  const auto flat = [&](const char* key) { return json.contains(key) && json[key] == "error"; };
  if (type == "error" || (json.contains("error") && !json["error"].is_null()) ||
      (!has_choices && (flat("object") || flat("type")))) {
    r.error = true;
  }
  return !r.error;
}

Reading read_stream(std::string bytes) {
  Reading r;
  const auto first = bytes.find_first_not_of("\xEF\xBB\xBF \t\r\n");
  if (first == std::string::npos) return r;
  if (bytes[first] == '{' || bytes[first] == '[' || bytes[first] == '<') {
    r.not_stream = true;
    return r;
  }
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.erase(0, 3);
  std::vector<std::string> lines;  // the last one has no line end
  std::string line;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == '\r' || bytes[i] == '\n') {
      if (bytes[i] == '\r' && i + 1 < bytes.size() && bytes[i + 1] == '\n') ++i;
      lines.push_back(line);
      line.clear();
    } else {
      line += bytes[i];
    }
  }
  lines.push_back(line);
  std::string data, type;
  bool has_data = false;
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto& text = lines[i];
    const bool last = i + 1 == lines.size();
    if (text.empty() || last) {
      if (last && !text.empty()) {  // a line without its end still counts as a field
        if (text.starts_with("data:")) {
          auto value = text.substr(5);
          if (value.starts_with(' ')) value.erase(0, 1);
          data += (has_data ? "\n" : "") + value;
          has_data = true;
        } else if (text.starts_with("event:")) {
          type = text.substr(text.starts_with("event: ") ? 7 : 6);
        } else if (text.starts_with("error:")) {
          r.error = true;
          return r;
        }
      }
      const bool whole = !last;
      if (has_data && !data.empty() && !read_event(data, whole, type, r)) return r;
      data.clear();
      type.clear();
      has_data = false;
      continue;
    }
    const auto colon = text.find(':');
    const auto name = text.substr(0, colon);
    auto value = colon == std::string::npos ? "" : text.substr(colon + 1);
    if (value.starts_with(' ')) value.erase(0, 1);
    if (name == "data") {
      data += (has_data ? "\n" : "") + value;
      has_data = true;
    } else if (name == "event") {
      type = value;
    } else if (name == "error") {
      r.error = true;
      return r;
    }
  }
  return r;
}

TEST(StreamFuzz, TenThousandStreamsAndNoSuccessMiscounted) {
  // PRONY_FUZZ_ROUNDS=1000000 is the longer look.
  const auto wanted = core::environment_variable("PRONY_FUZZ_ROUNDS");
  const int rounds = wanted ? std::max(10'000, std::atoi(wanted->c_str())) : 10'000;
  Rng rng(20240607);
  int successes = 0, failures = 0, ambiguous = 0;
  LoopMeters meters;
  const auto parser = openai_chat().make_parser();
  Timeline timeline(*parser, meters, {.keep_text = true});  // reused, as on a connection
  for (int round = 0; round < rounds; ++round) {
    auto bytes = random_stream(rng);
    if (rng.below(3) != 0) damage(rng, bytes);
    record::RequestRow asked;
    asked.output_tokens_asked = 8;
    timeline.begin(std::move(asked));
    timeline.on_sent(1000, 1001);
    auto head = sse_head();
    head.chunked = rng.below(2) == 0;
    timeline.on_head(head, stamp_at(2000));
    core::Nanos t = 3000;
    for (size_t at = 0; at < bytes.size() && !timeline.wants_close();) {
      const auto size = 1 + static_cast<size_t>(rng.below(rng.below(2) == 0 ? 5 : 400));
      timeline.on_body(std::string_view(bytes).substr(at, size), stamp_at(t));
      if (rng.below(2) == 0) t += 100;
      at += size;
    }
    if (timeline.wants_close()) {
      timeline.on_stopped(record::Status::kCancelled, "closed", t);
    } else if (rng.below(2) == 0) {
      timeline.on_complete(stamp_at(t));
    } else {
      timeline.on_error({net::NetErrorKind::kClosed, "closed", true}, stamp_at(t));
    }
    const auto row = timeline.take_row();
    const auto expected = read_stream(bytes);
    if (expected.ambiguous) {
      ++ambiguous;
      continue;
    }
    ASSERT_EQ(row.status == record::Status::kOk, expected.success())
        << "round " << round << ": " << status_name(row.status) << " " << row.error << "\nerror "
        << expected.error << " broken " << expected.broken << " marker " << expected.marker
        << " tokens " << expected.tokens << "\n"
        << bytes;
    ASSERT_EQ(row.events.size(), static_cast<size_t>(expected.tokens)) << bytes;
    ASSERT_EQ(row.status == record::Status::kOk, row.error.empty());
    ASSERT_LE(row.merged_events, std::max(expected.tokens - 1, 0));
    for (size_t i = 1; i < row.events.size(); ++i) {
      ASSERT_LE(row.events[i - 1].t_kernel_ns, row.events[i].t_kernel_ns);
    }
    ++(expected.success() ? successes : failures);
  }
  // Both kinds must be there in numbers, or the test proves nothing.
  EXPECT_GT(successes, rounds / 4);
  EXPECT_GT(failures, rounds / 4);
  EXPECT_LT(ambiguous, rounds / 100);
}

}  // namespace
}  // namespace prony::load
