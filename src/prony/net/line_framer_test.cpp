// LineFramer: JSON lines at every cut, with every line end.
#include "prony/net/line_framer.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "prony/core/file.hpp"
#include "prony/core/rng.hpp"
#include "prony/net/line_framer_check.hpp"

namespace prony::net {
namespace {

class Recorder final : public SseFramer::Sink {
 public:
  bool on_event(const SseEvent& event) override {
    lines.emplace_back(event.data);
    cut = !event.terminated;
    return lines.size() < stop_after;
  }
  std::vector<std::string> lines;
  size_t stop_after = 1000;
  bool cut = false;
};

using Lines = std::vector<std::string>;

Lines read(std::string_view bytes, size_t piece) {
  LineFramer framer;
  Recorder sink;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    const std::string part(bytes.substr(0, piece));  // a block of its own: no view may outlive it
    EXPECT_TRUE(framer.feed(part, sink));
  }
  EXPECT_TRUE(framer.finish(sink));
  return sink.lines;
}

TEST(LineFramer, EveryEndAtEveryCut) {
  using namespace std::string_literals;
  const std::string bytes =
      "\xEF\xBB\xBF{\"a\":1}\n\n{\"b\":\"\u2028\"}\r\n{\"c\":3}\0{\"d\":4}\r{}"s;
  const Lines expected = {"{\"a\":1}", "{\"b\":\"\u2028\"}", "{\"c\":3}", "{\"d\":4}", "{}"};
  for (size_t piece = 1; piece <= bytes.size(); ++piece) EXPECT_EQ(read(bytes, piece), expected);
}

TEST(LineFramer, RandomLinesComeBack) {
  core::Rng rng(7);
  for (int round = 0; round < 200; ++round) {
    Lines expected;
    std::string bytes;
    const char end = "\n\r\0"[rng.below(3)];
    for (uint64_t i = 0; i < 1 + rng.below(20); ++i) {
      expected.emplace_back(1 + rng.below(50), static_cast<char>('a' + rng.below(26)));
      bytes += expected.back() + end;
    }
    for (const size_t piece : {size_t{1}, size_t{3}, size_t{17}, bytes.size()}) {
      ASSERT_EQ(read(bytes, piece), expected) << "round " << round;
    }
  }
}

TEST(LineFramer, TheLastLineMayLackItsEnd) {
  LineFramer framer;
  Recorder sink;
  EXPECT_TRUE(framer.feed("{}\n{\"a\"", sink));
  EXPECT_FALSE(sink.cut);
  EXPECT_EQ(sink.lines, Lines{"{}"});
  EXPECT_TRUE(framer.finish(sink));
  EXPECT_TRUE(sink.cut);
  EXPECT_EQ(sink.lines.back(), "{\"a\"");
}

TEST(LineFramer, StopsWhenTheSinkDoes) {
  LineFramer framer;
  Recorder sink;
  sink.stop_after = 2;
  EXPECT_FALSE(framer.feed("1\n2\n3\n", sink));
  EXPECT_EQ(sink.lines, (Lines{"1", "2"}));
  EXPECT_FALSE(framer.feed("4\n", sink));
  EXPECT_FALSE(framer.finish(sink));
  framer.reset();
  sink.stop_after = 1000;
  EXPECT_TRUE(framer.feed("5\n", sink));
  EXPECT_EQ(sink.lines.back(), "5");
}

TEST(LineFramer, ALimitEndsIt) {
  for (const size_t piece : {size_t{1}, size_t{100}}) {
    LineFramer framer(10);
    Recorder sink;
    std::string_view bytes = "0123456789\n0123456789a\nb\n";
    bool going_on = true;
    for (; !bytes.empty() && going_on; bytes.remove_prefix(std::min(piece, bytes.size()))) {
      going_on = framer.feed(bytes.substr(0, piece), sink);
    }
    EXPECT_FALSE(going_on);
    EXPECT_TRUE(framer.overflowed());
    EXPECT_EQ(sink.lines, Lines{"0123456789"});
  }
}

TEST(LineFramer, FuzzCorpus) {
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(std::string(PRONY_SOURCE_DIR) +
                                                              "/tests/fuzz/line_framer")) {
    ++files;
    auto input = core::read_file(file.path().string()).value();
    for (int size = 0; size < 64; ++size) {
      input[0] = static_cast<char>(size);
      check_any_lines(input);
    }
  }
  EXPECT_GE(files, 5);
}

}  // namespace
}  // namespace prony::net
