// Every transcript of data/wire, cut at every position, against the expectations of its index and
// against the transcript in one piece.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <vector>

#include "prony/core/file.hpp"
#include "prony/core/rng.hpp"
#include "prony/load/timeline_test_util.hpp"
#include "prony/net/line_framer.hpp"
#include "prony/net/sse.hpp"

namespace prony::load {
namespace {

using core::Json;

const std::string kWire = std::string(PRONY_SOURCE_DIR) + "/data/wire/";

struct Transcript {
  std::string file, bytes, content_type, prompt;
  int http_status = 0;
  const Dialect* dialect = nullptr;
  Json expect;
};

const std::vector<Transcript>& transcripts() {
  static const std::vector<Transcript> all = [] {
    std::vector<Transcript> out;
    const auto index = core::parse_json(core::read_file(kWire + "index.json").value(), "index");
    for (const auto& entry : index.value()) {
      Transcript t;
      t.file = entry["file"];
      t.http_status = entry["http_status"];
      t.content_type = entry["content_type"];
      t.prompt = entry.value("prompt", "");
      if (t.http_status != 200) {
        t.dialect = &openai_chat();  // error bodies are alike everywhere
      } else if (entry.contains("dialect")) {
        t.dialect = find_dialect(entry["dialect"].get<std::string>(), "dialect").value();
      } else {
        t.dialect = dialects_of_path(entry["endpoint"].get<std::string>()).at(0);
      }
      t.expect = entry["expect"];
      t.bytes = core::read_file(kWire + t.file).value();
      out.push_back(std::move(t));
    }
    return out;
  }();
  return all;
}

void begin(TimelineRig& rig, const Transcript& t, bool until_close = false) {
  if (rig.parser->form().echoes_prompt) {
    const auto body = t.dialect->body({.text = t.prompt, .ids = {}, .output_tokens = 5}, {});
    rig.timeline.on_request("POST /x HTTP/1.1\r\nHost: h\r\n\r\n" + body);
  }
  auto head = sse_head(t.http_status, t.content_type);
  head.chunked = false;
  head.until_close = until_close;
  rig.timeline.on_head(head, stamp_at(2000));
}

record::RequestRow in_one_piece(const Transcript& t) {
  TimelineRig rig(*t.dialect);
  begin(rig, t);
  rig.body(t.bytes, 3000);
  return rig.finish(4000);
}

TEST(Wire, IndexIsThere) {
  EXPECT_GE(transcripts().size(), 55u);
  // Each dialect has one that succeeds.
  for (const auto* dialect : dialects()) {
    int good = 0;
    for (const auto& t : transcripts()) {
      good += t.dialect == dialect && !t.expect.value("failed", false) ? 1 : 0;
    }
    EXPECT_GE(good, 1) << dialect->info().name;
  }
}

TEST(Wire, MeetsTheExpectations) {
  for (const auto& t : transcripts()) {
    SCOPED_TRACE(t.file);
    const auto row = in_one_piece(t);
    const auto& expect = t.expect;
    const bool failed = expect.value("failed", false);
    EXPECT_EQ(row.status != record::Status::kOk, failed) << status_name(row.status);
    EXPECT_EQ(row.error.empty(), !failed);
    if (expect.contains("text")) {
      EXPECT_EQ(row.text, expect["text"].get<std::string>());
    }
    if (expect.contains("text_if_concatenated")) {
      EXPECT_EQ(row.text, expect["text_if_concatenated"].get<std::string>());
    }
    EXPECT_EQ(row.reasoning, expect.value("reasoning", ""));
    EXPECT_EQ(row.tool_calls, expect.value("tool_calls", row.tool_calls));
    if (expect.contains("completion_tokens") && !expect["completion_tokens"].is_null()) {
      EXPECT_EQ(row.output_tokens, expect["completion_tokens"].get<int>());
      EXPECT_EQ(row.token_source, record::TokenSource::kUsage);
    } else if (expect.contains("completion_tokens")) {
      EXPECT_EQ(row.token_source, record::TokenSource::kEventCount);
    }
    if (expect.contains("output_tokens")) {
      EXPECT_EQ(row.output_tokens, expect["output_tokens"].get<int>());
      EXPECT_EQ(token_source_name(row.token_source), expect["source"].get<std::string>());
    }
    if (expect.contains("prompt_tokens")) {
      EXPECT_EQ(row.prompt_tokens, expect["prompt_tokens"].get<int>());
    }
    if (expect.contains("finish_reason")) {
      const auto& reason = expect["finish_reason"];
      EXPECT_EQ(row.finish_reason, reason.is_null() ? "" : reason.get<std::string>());
    }
    if (expect.contains("text_chunks")) {
      EXPECT_EQ(row.events.size(), expect["text_chunks"].get<size_t>());
    }
    if (expect.contains("tokens_per_chunk")) {
      std::vector<int> tokens;
      for (const auto& event : row.events) tokens.push_back(event.tokens);
      EXPECT_EQ(tokens, expect["tokens_per_chunk"].get<std::vector<int>>());
      EXPECT_TRUE(row.tokens_per_event_exact);
    }
    if (expect.contains("error_code")) {
      const auto code = std::to_string(expect["error_code"].get<int>());
      EXPECT_NE(row.error.find(code), std::string::npos) << row.error;
    }
  }
}

// Each data event in a read of its own, stamped with its number.
class EventBounds final : public net::SseFramer::Sink {
 public:
  bool on_event(const net::SseEvent&) override { return ++events, true; }
  int64_t events = 0;
};

TEST(Wire, FirstTokenIsTheRightEvent) {
  for (const auto& t : transcripts()) {
    if (!t.expect.contains("first_token_event")) continue;
    SCOPED_TRACE(t.file);
    TimelineRig rig(*t.dialect);
    begin(rig, t);
    const bool by_lines = t.dialect->info().form.framing == StreamForm::Framing::kLines;
    net::SseFramer framer;
    net::LineFramer lines;
    EventBounds bounds;
    for (const char& byte : t.bytes) {  // the byte that ends event k arrives at 10000 + k
      const int64_t before = bounds.events;
      by_lines ? lines.feed({&byte, 1}, bounds) : framer.feed({&byte, 1}, bounds);
      if (!rig.timeline.wants_close()) rig.body({&byte, 1}, 10'000 + before);
    }
    const auto row = rig.finish(20'000);
    EXPECT_EQ(row.t_first_token_ns, 10'000 + t.expect["first_token_event"].get<int64_t>());
    if (t.expect.contains("first_content_event")) {
      EXPECT_EQ(row.t_first_output_ns, 10'000 + t.expect["first_content_event"].get<int64_t>());
    }
  }
}

// What must not depend on how the bytes were cut.
void expect_same_content(const record::RequestRow& a, const record::RequestRow& b) {
  EXPECT_EQ(a.status, b.status);
  EXPECT_EQ(a.error, b.error);
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.reasoning, b.reasoning);
  EXPECT_EQ(a.tool_calls, b.tool_calls);
  EXPECT_EQ(a.finish_reason, b.finish_reason);
  EXPECT_EQ(a.output_tokens, b.output_tokens);
  EXPECT_EQ(a.prompt_tokens, b.prompt_tokens);
  EXPECT_EQ(a.token_source, b.token_source);
  EXPECT_EQ(a.tokens_per_event_exact, b.tokens_per_event_exact);
  ASSERT_EQ(a.events.size(), b.events.size());
  for (size_t i = 0; i < a.events.size(); ++i) EXPECT_EQ(a.events[i].tokens, b.events[i].tokens);
}

TEST(Wire, EverySplitPosition) {
  for (const auto& t : transcripts()) {
    SCOPED_TRACE(t.file);
    const auto whole = in_one_piece(t);
    for (size_t cut = 0; cut <= t.bytes.size(); ++cut) {
      TimelineRig rig(*t.dialect);
      begin(rig, t);
      const std::string_view bytes = t.bytes;
      rig.body(bytes.substr(0, cut), 3000);
      if (!rig.timeline.wants_close()) rig.body(bytes.substr(cut), 3500);
      const auto row = rig.finish(4000);
      expect_same_content(row, whole);
      if (::testing::Test::HasFailure()) FAIL() << "cut at " << cut;
    }
  }
}

TEST(Wire, PiecesOfEverySmallSize) {
  for (const auto& t : transcripts()) {
    SCOPED_TRACE(t.file);
    const auto whole = in_one_piece(t);
    for (size_t size = 1; size <= 7; ++size) {
      TimelineRig rig(*t.dialect);
      begin(rig, t);
      const std::string_view bytes = t.bytes;
      for (size_t at = 0; at < bytes.size() && !rig.timeline.wants_close(); at += size) {
        rig.body(bytes.substr(at, size), 3000 + static_cast<core::Nanos>(at));
      }
      expect_same_content(rig.finish(90'000), whole);
    }
  }
}

TEST(Wire, PiecesOfRandomSizes) {
  core::Rng rng(20240613);
  for (const auto& t : transcripts()) {
    SCOPED_TRACE(t.file);
    const auto whole = in_one_piece(t);
    for (int round = 0; round < 20; ++round) {
      TimelineRig rig(*t.dialect);
      begin(rig, t);
      std::string_view bytes = t.bytes;
      core::Nanos now = 3000;
      while (!bytes.empty() && !rig.timeline.wants_close()) {
        const auto piece = bytes.substr(0, 1 + rng.below(1 + rng.below(200)));
        rig.body(piece, ++now);
        bytes.remove_prefix(piece.size());
      }
      expect_same_content(rig.finish(90'000), whole);
    }
  }
}

// Whether the bytes hold what proves the end of a stream of the dialect.
bool holds_end(const Dialect& dialect, std::string_view bytes) {
  static const std::map<const Dialect*, std::vector<std::string_view>> kMarkers = {
      {&openai_responses(), {R"("type":"response.completed")", R"("type":"response.incomplete")"}},
      {&sglang(), {R"("finish_reason":{)"}},
      {&llamacpp(), {R"("stop":true)"}},
      {&tgi(), {R"("generated_text":")"}},
      {&ollama(), {R"("done":true)"}},
      {&vllm_generate(), {}},
      {&triton(), {}},
      {&lightllm(), {R"("finished":true)"}},
  };
  const auto found = kMarkers.find(&dialect);
  std::vector<std::string_view> markers = {R"("finish_reason":")"};
  if (found != kMarkers.end()) markers = found->second;
  markers.push_back("[DONE]");
  for (const auto marker : markers) {
    if (bytes.find(marker) != std::string_view::npos) return true;
  }
  return false;
}

TEST(Wire, EveryPrefixIsNoSuccessUnlessItHoldsTheEndMarker) {
  for (const auto& t : transcripts()) {
    SCOPED_TRACE(t.file);
    for (size_t length = 0; length < t.bytes.size(); ++length) {
      TimelineRig rig(*t.dialect);
      begin(rig, t, /*until_close=*/true);
      const auto prefix = std::string_view(t.bytes).substr(0, length);
      rig.body(prefix, 3000);
      const auto row = rig.finish(4000);
      if (!holds_end(*t.dialect, prefix)) {
        EXPECT_NE(row.status, record::Status::kOk) << length;
      }
    }
  }
}

// Where the end of the body is the only end, it must come as HTTP says.
TEST(Wire, ABodyThatIsCutIsNoEnd) {
  int seen = 0;
  for (const auto& t : transcripts()) {
    if (!t.dialect->info().form.ends_with_body || t.expect.value("failed", false)) continue;
    SCOPED_TRACE(t.file);
    ++seen;
    for (size_t length = 1; length <= t.bytes.size(); ++length) {
      TimelineRig rig(*t.dialect);
      begin(rig, t);
      rig.body(std::string_view(t.bytes).substr(0, length), 3000);
      rig.timeline.on_error({net::NetErrorKind::kClosed, "closed", true}, stamp_at(4000));
      EXPECT_EQ(rig.timeline.take_row().status, record::Status::kTruncated) << length;
    }
    // Whole as HTTP sees it, but in the middle of an event.
    TimelineRig rig(*t.dialect);
    begin(rig, t);
    rig.body(std::string_view(t.bytes).substr(0, t.bytes.size() - 9), 3000);
    EXPECT_EQ(rig.finish(4000).status, record::Status::kTruncated);
  }
  EXPECT_GE(seen, 4);
}

TEST(FuzzCorpus, PropertiesHoldAtEveryLengthAndPieceSize) {
  int files = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(PRONY_SOURCE_DIR) + "/tests/fuzz/dialect")) {
    ++files;
    auto input = core::read_file(file.path().string()).value();
    for (size_t length = 0; length <= input.size(); length += 7) {
      check_any_stream(std::string_view(input).substr(0, length));
    }
    for (int size = 0; size < 40; ++size) {
      input[1] = static_cast<char>(size);
      check_any_stream(input);
    }
  }
  EXPECT_GE(files, 16);
}

}  // namespace
}  // namespace prony::load
