// Every transcript of data/wire that an OpenAI dialect can read, cut at every position, against the
// expectations of its index and against the transcript in one piece.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <vector>

#include "prony/core/file.hpp"
#include "prony/load/timeline_test_util.hpp"
#include "prony/net/sse.hpp"

namespace prony::load {
namespace {

using core::Json;

const std::string kWire = std::string(PRONY_SOURCE_DIR) + "/data/wire/";

struct Transcript {
  std::string file, bytes, content_type;
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
      t.dialect = dialect_of_path(entry["endpoint"].get<std::string>());
      if (t.http_status != 200) t.dialect = &openai_chat();  // error bodies are alike everywhere
      if (t.dialect == nullptr || entry["endpoint"] == "/completion") continue;
      t.expect = entry["expect"];
      t.bytes = core::read_file(kWire + t.file).value();
      out.push_back(std::move(t));
    }
    return out;
  }();
  return all;
}

void begin(TimelineRig& rig, const Transcript& t) {
  auto head = sse_head(t.http_status, t.content_type);
  head.chunked = false;
  rig.timeline.on_head(head, stamp_at(2000));
}

record::RequestRow in_one_piece(const Transcript& t) {
  TimelineRig rig(*t.dialect);
  begin(rig, t);
  rig.body(t.bytes, 3000);
  return rig.finish(4000);
}

TEST(Wire, IndexIsThere) {
  EXPECT_GE(transcripts().size(), 24u);
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
    if (expect.contains("completion_tokens")) {
      EXPECT_EQ(row.output_tokens, expect["completion_tokens"].get<int>());
      EXPECT_EQ(row.token_source, record::TokenSource::kUsage);
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
    net::SseFramer framer;
    EventBounds bounds;
    for (const char& byte : t.bytes) {  // the byte that ends event k arrives at 10000 + k
      const int64_t before = bounds.events;
      framer.feed({&byte, 1}, bounds);
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

TEST(Wire, EveryPrefixIsNoSuccessUnlessItHoldsTheEndMarker) {
  for (const auto& t : transcripts()) {
    SCOPED_TRACE(t.file);
    for (size_t length = 0; length < t.bytes.size(); ++length) {
      TimelineRig rig(*t.dialect);
      begin(rig, t);
      const auto prefix = std::string_view(t.bytes).substr(0, length);
      rig.body(prefix, 3000);
      const auto row = rig.finish(4000);
      const bool marker = prefix.find("[DONE]") != std::string_view::npos ||
                          prefix.find(R"("finish_reason":")") != std::string_view::npos;
      if (!marker) {
        EXPECT_NE(row.status, record::Status::kOk) << length;
      }
    }
  }
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
