// The stamps file and the timing that it proves: deadlines are absolute, stamps lie between
// deadline and arrival, and a client's kernel stamps agree with them.
#include "prony/mock/stamps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "prony/core/file.hpp"
#include "prony/mock/mock_testing.hpp"

namespace prony::mock {
namespace {

using core::kNanosPerMilli;
using core::Nanos;

std::string temporary_path(const std::string& name) {
  return ::testing::TempDir() + "prony_" + std::to_string(::getpid()) + "_" + name;
}

std::vector<core::Json> read_lines(const std::string& path) {
  std::vector<core::Json> lines;
  const std::string text = core::read_file(path).value();
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    lines.push_back(core::parse_json(text.substr(at, end - at), path).value());
    at = end + 1;
  }
  std::filesystem::remove(path);
  return lines;
}

TEST(StampsLine, Format) {
  EXPECT_EQ(
      stamps_line(
          {.id = "a\"b", .t_received_ns = 5, .writes = {{7, 0}, {9, 2}}, .fault = "crlf+stall"}),
      R"({"id":"a\"b","t_received_ns":5,"writes":[[7,0],[9,2]],"fault":"crlf+stall"})"
      "\n");
  EXPECT_EQ(stamps_line({.id = "x", .fault = "none"}),
            "{\"id\":\"x\",\"t_received_ns\":0,\"writes\":[],\"fault\":\"none\"}\n");
}

TEST(StampsFile, AppearsWholeAtTheEndAndOnlyThen) {
  const std::string path = temporary_path("whole");
  {
    auto file = std::move(StampsFile::create(path)).value();
    for (int i = 0; i < 1000; ++i) file->add({.id = std::to_string(i)});
    EXPECT_FALSE(std::filesystem::exists(path));
    ASSERT_TRUE(file->finish().ok());
  }
  const auto lines = read_lines(path);
  ASSERT_EQ(lines.size(), 1000U);
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i]["id"], std::to_string(i));
  { auto abandoned = std::move(StampsFile::create(path)).value(); }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Stamps, DeadlinesAreAbsoluteAndTheClientSeesThem) {
  const std::string path = temporary_path("timing");
  constexpr int kTokens = 50;
  constexpr Nanos kTtft = 10 * kNanosPerMilli, kItl = 2 * kNanosPerMilli;
  net::EventLoop loop({.spin_ns = 100 * core::kNanosPerMicro});
  Options options;
  options.ttft_ns = kTtft;
  options.itl_ns = kItl;
  options.stamps_path = path;
  auto server = std::move(MockServer::create(loop, options)).value();
  Outcome seen;
  {
    TestRequest request(loop, server->port());
    seen = request.stream(kTokens);
  }
  ASSERT_TRUE(server->finish().ok());
  const auto lines = read_lines(path);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["id"], "test-1");
  EXPECT_EQ(lines[0]["fault"], "none");
  const auto received = lines[0]["t_received_ns"].get<Nanos>();
  std::vector<Nanos> token_ns;
  int64_t tokens = 0;
  for (const auto& write : lines[0]["writes"]) {
    tokens += write[1].get<int64_t>();
    if (write[1].get<int64_t>() > 0) token_ns.push_back(write[0].get<Nanos>());
  }
  EXPECT_EQ(tokens, kTokens);
  ASSERT_EQ(token_ns.size(), static_cast<size_t>(kTokens));
  ASSERT_EQ(seen.token_ns.size(), static_cast<size_t>(kTokens));
  EXPECT_GE(received, seen.t_send_ns);
  std::vector<double> late_us, travel_us;
  for (size_t i = 0; i < token_ns.size(); ++i) {
    const Nanos due = received + kTtft + static_cast<Nanos>(i) * kItl;
    EXPECT_GE(token_ns[i], due);                     // never early
    EXPECT_GE(seen.token_ns[i], token_ns[i] - 300);  // and never seen before it was written
    late_us.push_back(static_cast<double>(token_ns[i] - due) / 1e3);
    travel_us.push_back(static_cast<double>(seen.token_ns[i] - token_ns[i]) / 1e3);
  }
  std::sort(late_us.begin(), late_us.end());
  std::sort(travel_us.begin(), travel_us.end());
  printf(
      "mock late by p50 %.1f us, max %.1f us; write to client's kernel stamp p50 %.1f us, max "
      "%.1f us (%d tokens, one process)\n",
      late_us[kTokens / 2], late_us.back(), travel_us[kTokens / 2], travel_us.back(), kTokens);
  // No drift: the median is late by no more than one wake-up on this shared machine.
  EXPECT_LT(late_us[kTokens / 2], 1500);
  EXPECT_LT(travel_us[kTokens / 2], 1500);
}

TEST(Stamps, BrokenOffAnswersAreThereToo) {
  const std::string path = temporary_path("broken");
  net::EventLoop loop;
  Options options;
  options.ttft_ns = kNanosPerMilli;
  options.itl_ns = kNanosPerMilli;
  options.faults = {"stall", "crlf"};
  options.stamps_path = path;
  auto server = std::move(MockServer::create(loop, options)).value();
  TestRequest gone(loop, server->port());
  EXPECT_TRUE(gone.stream(8).silent);
  TestRequest held(loop, server->port());
  net::Timer stop(loop, [&] { loop.stop(); });
  stop.arm(core::monotonic_ns() + 30 * kNanosPerMilli);
  held.run(R"({"messages":[],"stream":true,"max_tokens":4})", "/v1/chat/completions", "held");
  ASSERT_TRUE(server->finish().ok());
  const auto lines = read_lines(path);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0]["writes"].size(), 1U + 4U);
  EXPECT_EQ(lines[0]["fault"], "stall+crlf");
  EXPECT_EQ(lines[1]["id"], "held");
  EXPECT_EQ(lines[1]["writes"].size(), 1U + 2U);
}

TEST(Stamps, ReadBackWhatWasWritten) {
  const std::string path = temporary_path("read");
  const AnswerStamps first{"a\"b", 5, {{10, 0}, {20, 3}}, "crlf"}, second{"c", 7, {}, "none"};
  ASSERT_TRUE(core::write_file_atomic(path, stamps_line(first) + stamps_line(second)).ok());
  const auto read = read_stamps(path);
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read.value().size(), 2U);
  EXPECT_EQ(stamps_line(read.value()[0]), stamps_line(first));
  EXPECT_EQ(stamps_line(read.value()[1]), stamps_line(second));
}

TEST(Stamps, AForeignLineIsAnErrorThatNamesIt) {
  const std::string path = temporary_path("foreign");
  const auto good = stamps_line({"a", 5, {{10, 1}}, "none"});
  for (const std::string bad :
       {"{", "[]", R"({"id":1})", R"({"id":"x"})", R"({"id":"x","t_received_ns":1.5,"writes":[]})",
        R"({"id":"x","t_received_ns":1,"writes":{}})",
        R"({"id":"x","t_received_ns":1,"writes":[[1]]})",
        R"({"id":"x","t_received_ns":1,"writes":[["1",2]]})"}) {
    ASSERT_TRUE(core::write_file_atomic(path, good + bad).ok());  // no line end behind it
    const auto read = read_stamps(path);
    ASSERT_FALSE(read.ok()) << bad;
    EXPECT_THAT(read.error().message, ::testing::HasSubstr(path + ":2:")) << bad;
  }
  EXPECT_FALSE(read_stamps(path + ".not").ok());
}

}  // namespace
}  // namespace prony::mock
