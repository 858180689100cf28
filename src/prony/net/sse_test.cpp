// SseFramer: every transcript of data/wire and of the fuzz corpus at every split position, the
// rules of WHATWG 9.2.6 one by one, and random streams whose events are known because they were
// made from them.
#include "prony/net/sse.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "prony/core/file.hpp"
#include "prony/core/json.hpp"
#include "prony/core/rng.hpp"

namespace prony::net {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Seen {
  std::string kind, name, data;
  bool operator==(const Seen&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Seen& seen) {
  return out << seen.kind << "(" << seen.name << ", " << ::testing::PrintToString(seen.data) << ")";
}
Seen event(std::string data, std::string type = "") {
  return {"event", type, data};
}
Seen cut(std::string data) {
  return {"cut", "", data};
}
Seen comment() {
  return {"comment", "", ""};
}
Seen other(std::string name, std::string value) {
  return {"other", name, value};
}

class Recorder final : public SseFramer::Sink {
 public:
  bool on_event(const SseEvent& event) override {
    seen.push_back(
        {event.terminated ? "event" : "cut", std::string(event.event), std::string(event.data)});
    return --events_left != 0;
  }
  void on_comment() override { seen.push_back(comment()); }
  void on_other_field(std::string_view name, std::string_view value) override {
    seen.push_back(other(std::string(name), std::string(value)));
  }
  std::vector<Seen> seen;
  int events_left = -1;  // stops after so many
};

/// Each piece goes through a buffer of its own that is overwritten at once: a view into an earlier
/// input would show.
void feed_copy(SseFramer& framer, std::string_view piece, Recorder& sink) {
  std::string copy(piece);
  EXPECT_TRUE(framer.feed(copy, sink));
  std::fill(copy.begin(), copy.end(), '#');
}

std::vector<Seen> parse(const std::vector<std::string_view>& pieces) {
  SseFramer framer;
  Recorder sink;
  for (const auto piece : pieces) feed_copy(framer, piece, sink);
  EXPECT_TRUE(framer.finish(sink));
  return sink.seen;
}

std::vector<Seen> parse(std::string_view text) {
  return parse(std::vector{text});
}

std::vector<std::string_view> pieces_of(std::string_view text, size_t size) {
  std::vector<std::string_view> pieces;
  for (size_t at = 0; at < text.size(); at += size) pieces.push_back(text.substr(at, size));
  return pieces;
}

std::string source_path(const std::string& path) {
  return std::string(PRONY_SOURCE_DIR) + path;
}

std::vector<std::filesystem::path> files_of(const std::string& folder, const std::string& suffix) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(source_path(folder))) {
    if (suffix.empty() || entry.path().extension() == suffix) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void expect_equal_at_every_split(const std::string& text) {
  const auto whole = parse(text);
  for (size_t i = 0; i <= text.size(); ++i) {
    const std::string_view view = text;
    ASSERT_EQ(parse({view.substr(0, i), view.substr(i)}), whole) << "split at " << i;
  }
  for (const size_t size : {1U, 2U, 3U, 5U, 7U}) {
    ASSERT_EQ(parse(pieces_of(text, size)), whole) << "pieces of " << size;
  }
}

std::string with_line_ends(std::string text, std::string_view end) {
  std::string out;
  for (const char c : text) c == '\n' ? out += end : out += c;
  return out;
}

TEST(SseWire, EveryTranscriptAtEverySplit) {
  const auto files = files_of("/data/wire", ".sse");
  ASSERT_GE(files.size(), 27U);
  for (const auto& file : files) {
    SCOPED_TRACE(file.filename().string());
    expect_equal_at_every_split(core::read_file(file.string()).value());
  }
}

TEST(SseWire, EveryTranscriptHasTheSameEventsUnderEveryLineEnd) {
  for (const auto& file : files_of("/data/wire", ".sse")) {
    SCOPED_TRACE(file.filename().string());
    const std::string text = core::read_file(file.string()).value();
    if (text.find('\r') != text.npos) continue;
    const auto expected = parse(text);
    EXPECT_EQ(parse(with_line_ends(text, "\r\n")), expected);
    EXPECT_EQ(parse(with_line_ends(text, "\r")), expected);
    expect_equal_at_every_split(with_line_ends(text, "\r\n"));
  }
}

// The index of the transcripts says what a reader must find; text and end marker are a matter of
// framing alone where every event is a chat chunk.
TEST(SseWire, ChatTextAndEndMarkerAsTheIndexSays) {
  const auto index =
      core::parse_json(core::read_file(source_path("/data/wire/index.json")).value(), "index.json");
  int checked = 0;
  for (const auto& entry : index.value()) {
    const auto& expect = entry["expect"];
    const auto file = entry["file"].get<std::string>();
    if (!file.ends_with(".sse") || entry["endpoint"] != "/v1/chat/completions") continue;
    SCOPED_TRACE(file);
    std::string text;
    bool done = false, clean_done = false;
    int comments = 0;
    for (const Seen& seen : parse(core::read_file(source_path("/data/wire/" + file)).value())) {
      if (seen.kind == "comment") ++comments;
      if (seen.data == "[DONE]") {
        done = true;
        clean_done = seen.kind == "event";
      }
      if (seen.kind != "event" || seen.data == "[DONE]") continue;
      const auto json = core::parse_json(seen.data, file);
      ASSERT_TRUE(json.ok()) << seen.data;
      if (!json->contains("choices") || (*json)["choices"].empty()) continue;
      const auto& delta = (*json)["choices"][0]["delta"];
      if (delta.contains("content") && delta["content"].is_string()) text += delta["content"];
    }
    if (expect.contains("text")) {
      EXPECT_EQ(text, expect["text"].get<std::string>());
    }
    if (expect["done"].is_boolean()) {
      EXPECT_EQ(done, expect["done"].get<bool>());
    } else {
      EXPECT_TRUE(done && !clean_done);  // "lenient": there, without its empty line
    }
    if (expect.contains("comments")) {
      EXPECT_EQ(comments, expect["comments"].get<int>());
    }
    ++checked;
  }
  EXPECT_GE(checked, 15);
}

TEST(SseFuzzCorpus, EveryInputAtEverySplit) {
  const auto files = files_of("/tests/fuzz/sse", "");
  ASSERT_GE(files.size(), 10U);
  for (const auto& file : files) {
    SCOPED_TRACE(file.filename().string());
    expect_equal_at_every_split(core::read_file(file.string()).value());
  }
}

TEST(Sse, LineEndsAndEmptyEvents) {
  EXPECT_THAT(parse("data: a\n\ndata: b\r\n\r\ndata: c\r\r"),
              ElementsAre(event("a"), event("b"), event("c")));
  EXPECT_THAT(parse("data: a\r\n\ndata: b\n\r\n"), ElementsAre(event("a"), event("b")));
  EXPECT_THAT(parse("\n\n\r\n\r"), IsEmpty());
  EXPECT_THAT(parse("event: x\n\ndata: y\n\n"), ElementsAre(event("y")));  // x went with its event
}

TEST(Sse, OnlyCrAndLfEndALine) {
  const std::string text = "a\xE2\x80\xA8 b\xE2\x80\xA9 c\xC2\x85 d\v e\f f";
  EXPECT_THAT(parse("data: " + text + "\n\n"), ElementsAre(event(text)));
}

TEST(Sse, NulIsData) {
  const std::string text("a\0b", 3);
  EXPECT_THAT(parse("data: " + text + "\n\n"), ElementsAre(event(text)));
}

TEST(Sse, OneSpaceAfterTheColonIsDropped) {
  EXPECT_THAT(parse("data:a\n\ndata: a\n\ndata:  a\n\ndata:\ta\n\n"),
              ElementsAre(event("a"), event("a"), event(" a"), event("\ta")));
}

TEST(Sse, DataLinesJoinWithLf) {
  EXPECT_THAT(parse("data: a\ndata: b\ndata\ndata:\n\n"), ElementsAre(event("a\nb\n\n")));
  EXPECT_THAT(parse("data\n\n"), ElementsAre(event("")));
  EXPECT_THAT(parse("data\n\ndata:\ndata: x\n\n"), ElementsAre(event(""), event("\nx")));
}

TEST(Sse, FieldsCommentsAndWhatIsNeither) {
  EXPECT_THAT(parse(": ping\n:\nid: 7\nretry: 10\nevent: message\ndata: a\n\ndata: b\n\n"),
              ElementsAre(comment(), comment(), event("a", "message"), event("b")));
  EXPECT_THAT(parse("error: {\"code\":500}\n\nfoo\nDATA: x\n data: y\n\n"),
              ElementsAre(other("error", "{\"code\":500}"), other("foo", ""), other("DATA", "x"),
                          other(" data", "y")));
}

TEST(Sse, ByteOrderMarkOnlyAtTheStart) {
  EXPECT_THAT(parse("\xEF\xBB\xBF"
                    "data: a\n\n\xEF\xBB\xBF"
                    "data: b\n\n"),
              ElementsAre(event("a"), other("\xEF\xBB\xBF"
                                            "data",
                                            "b")));
  expect_equal_at_every_split(
      "\xEF\xBB\xBF"
      "data: a\n\n");
  EXPECT_THAT(parse("\xEF\xBB\xBF"), IsEmpty());
}

TEST(Sse, LastEventMayLackItsEmptyLine) {
  EXPECT_THAT(parse("data: a\n\ndata: [DONE]"), ElementsAre(event("a"), cut("[DONE]")));
  EXPECT_THAT(parse("data: [DONE]\n"), ElementsAre(cut("[DONE]")));
  EXPECT_THAT(parse("data: a\r"), ElementsAre(cut("a")));
  EXPECT_THAT(parse("data: a\n\n"), ElementsAre(event("a")));
}

TEST(Sse, SinkCanStop) {
  SseFramer framer;
  Recorder sink;
  sink.events_left = 1;
  EXPECT_FALSE(framer.feed("data: a\n\ndata: b\n\n", sink));
  EXPECT_FALSE(framer.feed("data: c\n\n", sink));
  EXPECT_FALSE(framer.finish(sink));
  EXPECT_THAT(sink.seen, ElementsAre(event("a")));
  EXPECT_FALSE(framer.overflowed());
  framer.reset();
  EXPECT_TRUE(framer.feed("data: d\n\n", sink));
}

TEST(Sse, LimitHoldsAcrossReadsAndLines) {
  const std::string line = "data: " + std::string(600, 'x') + "\n";
  for (const std::string& text :
       {line + line + "\n", "data: " + std::string(1100, 'x'), ": " + std::string(1100, 'x')}) {
    for (const size_t size : {size_t{1}, size_t{100}, size_t{5000}}) {
      SseFramer framer(1000);
      Recorder sink;
      bool good = true;
      for (const auto piece : pieces_of(text, size)) good = good && framer.feed(piece, sink);
      EXPECT_FALSE(good) << size;
      EXPECT_TRUE(framer.overflowed());
      EXPECT_FALSE(framer.feed("\n\ndata: y\n\n", sink));
    }
  }
  SseFramer framer(1000);
  Recorder sink;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(framer.feed(line + "\n", sink));
  EXPECT_EQ(sink.seen.size(), 10U);
}

TEST(Sse, HugeEventInSmallPieces) {
  const std::string data(3 << 20, 'z');
  const std::string text = "data: " + data + "\n\ndata: y\n\n";
  EXPECT_THAT(parse(pieces_of(text, 1460)), ElementsAre(event(data), event("y")));
}

// ---- random streams

struct Stream {
  std::string text;
  std::vector<Seen> expected;
};

std::string random_text(core::Rng& rng) {
  static const std::vector<std::string> kBits = {
      "a",    " ",      ":",    "data:", "{\"x\":1}",   "\t", "é", "\xE2\x80\xA8",
      "🙂", "[DONE]", "\xFF", "\v",    "\xEF\xBB\xBF"};
  std::string text;
  for (uint64_t i = rng.below(12); i > 0; --i) text += kBits[rng.below(kBits.size())];
  return text;
}

/// A stream made from its events. Line ends are drawn for each line; LF never follows a CR of the
/// line before as a line of its own, for that pair is one line end.
Stream random_stream(core::Rng& rng) {
  Stream stream;
  bool after_cr = false;
  const auto line = [&](const std::string& text) {
    std::string_view end = "\n";
    const uint64_t kind = rng.below(4);
    if (kind == 0) end = "\r";
    if (kind == 1) end = "\r\n";
    if (text.empty() && after_cr && end == "\n") end = "\r\n";
    stream.text += text;
    stream.text += end;
    after_cr = end == "\r";
  };
  if (rng.below(4) == 0) stream.text += "\xEF\xBB\xBF";
  const uint64_t events = rng.below(6);
  for (uint64_t i = 0; i < events; ++i) {
    std::string data, type;
    bool has_data = false;
    for (uint64_t lines = rng.below(5); lines > 0; --lines) {
      std::string text = random_text(rng);
      switch (rng.below(6)) {
        case 0:
          line(":" + text);
          stream.expected.push_back(comment());
          break;
        case 1:
          line("id: " + text);
          break;
        case 2:
          type = text;
          line("event: " + text);
          break;
        default:
          if (has_data) data += '\n';
          has_data = true;
          if (rng.below(2) == 0 && !text.starts_with(' ')) {
            line("data:" + text);
          } else {
            line("data: " + text);
          }
          data += text;
      }
    }
    line("");
    if (has_data) stream.expected.push_back(event(data, type));
  }
  return stream;
}

TEST(SseProperty, RandomStreamsInRandomPieces) {
  core::Rng rng(20260101);
  for (int round = 0; round < 20000; ++round) {
    const Stream stream = random_stream(rng);
    std::vector<std::string_view> pieces;
    std::string_view rest = stream.text;
    const uint64_t longest = 1 + rng.below(40);
    while (!rest.empty()) {
      const size_t size = std::min<size_t>(rest.size(), rng.below(longest + 1));
      pieces.push_back(rest.substr(0, size));
      rest.remove_prefix(size);
    }
    ASSERT_EQ(parse(pieces), stream.expected) << ::testing::PrintToString(stream.text);
  }
}

// Any bytes at all: the framer gives the same at every way of cutting them.
TEST(SseProperty, AnyBytesInRandomPieces) {
  core::Rng rng(7);
  constexpr std::string_view kAlphabet("d:a\r\n t\xEF\xBB\xBF\0x", 12);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (uint64_t i = rng.below(40); i > 0; --i) text += kAlphabet[rng.below(kAlphabet.size())];
    if (rng.below(2) == 0) text.insert(text.size() / 2, "data:");
    const auto whole = parse(text);
    ASSERT_EQ(parse(pieces_of(text, 1)), whole) << ::testing::PrintToString(text);
    const size_t at = rng.below(text.size() + 1);
    const std::string_view view = text;
    ASSERT_EQ(parse({view.substr(0, at), view.substr(at)}), whole)
        << ::testing::PrintToString(text) << " at " << at;
  }
}

}  // namespace
}  // namespace prony::net
