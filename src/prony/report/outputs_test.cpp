// The files beside the record: HdrHistogram log, CSV, Chrome trace. Golden texts for small runs
// worked out by hand; every count of a large run comes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "prony/core/file.hpp"
#include "prony/core/rng.hpp"
#include "prony/record/random_rows.hpp"
#include "prony/record/rows_file.hpp"
#include "prony/record/summary.hpp"
#include "prony/report/base64.hpp"
#include "prony/report/chrome_trace.hpp"
#include "prony/report/hdr_log.hpp"
#include "prony/report/rows_csv.hpp"

namespace prony::report {
namespace {

using record::RequestRow;
using record::RowSpan;
using record::Status;
using ::testing::HasSubstr;

class Outputs : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::path(::testing::TempDir()) /
             ("prony-" + std::to_string(::getpid()) + "-output"))
                .string();
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string text() const { return core::read_file(path_).value(); }
  std::string path_;
};

constexpr core::Nanos kMs = core::kNanosPerMilli;

RequestRow plain_row() {
  RequestRow row;
  row.index = 7;
  row.id = "r-7";
  row.status = Status::kOk;
  row.http_status = 200;
  row.t_intended_ns = 1000 * kMs;
  row.t_send_ns = 1001 * kMs;
  row.t_sent_ns = 1001 * kMs + 50'500;
  row.t_first_token_ns = 1051 * kMs;
  row.t_last_token_ns = row.t_done_ns = 1071 * kMs;
  row.events = {
      {1051 * kMs, 1051 * kMs, 1}, {1061 * kMs, 1061 * kMs, 1}, {1071 * kMs, 1071 * kMs, 1}};
  row.input_tokens_asked = 12;
  row.output_tokens = row.output_tokens_asked = 3;
  row.finish_reason = "length";
  return row;
}

TEST(Base64, KnownTexts) {  // RFC 4648, section 10
  for (const auto& [bytes, text] : {std::pair{"", ""},
                                    {"f", "Zg=="},
                                    {"fo", "Zm8="},
                                    {"foo", "Zm9v"},
                                    {"foob", "Zm9vYg=="},
                                    {"fooba", "Zm9vYmE="},
                                    {"foobar", "Zm9vYmFy"}}) {
    EXPECT_EQ(base64(bytes), text);
  }
}

TEST(Zlib, StoredBlocksAreWhatRfc1951Says) {
  // "Wikipedia" has the Adler-32 of 0x11e60398.
  EXPECT_EQ(zlib_stored("Wikipedia"),
            std::string("\x78\x01\x01\x09\x00\xf6\xffWikipedia\x11\xe6\x03\x98", 20));
  EXPECT_EQ(zlib_stored(""), std::string("\x78\x01\x01\x00\x00\xff\xff\x00\x00\x00\x01", 11));
  const auto two = zlib_stored(std::string(70'000, 'x'));
  EXPECT_EQ(two.size(), 70'000u + 2 + 2 * 5 + 4);
  EXPECT_EQ(two.substr(2, 5), std::string("\x00\xff\xff\x00\x00", 5));
}

// The counts of an encoded histogram, by value; the inverse of the format, written apart from it.
std::map<uint64_t, uint64_t> decode(const std::string& encoded) {
  std::string bytes;
  uint32_t word = 0;
  int bits = 0;
  for (const char c : encoded) {
    const auto digit =
        std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
            .find(c);
    if (digit == std::string_view::npos) break;
    word = word << 6 | static_cast<uint32_t>(digit);
    if ((bits += 6) >= 8) bytes.push_back(static_cast<char>(word >> (bits -= 8) & 0xff));
  }
  EXPECT_EQ(bytes.substr(0, 4), std::string("\x1c\x84\x93\x14", 4));
  std::string payload;
  for (size_t at = 8 + 2;;) {  // behind cookie, length, zlib's head
    const bool last = bytes[at] == 1;
    const size_t size = static_cast<unsigned char>(bytes[at + 1]) |
                        static_cast<size_t>(static_cast<unsigned char>(bytes[at + 2])) << 8;
    payload += bytes.substr(at + 5, size);
    at += 5 + size;
    if (last) break;
  }
  EXPECT_EQ(payload.substr(0, 4), std::string("\x1c\x84\x93\x13", 4));
  std::map<uint64_t, uint64_t> counts;
  uint64_t index = 0;
  for (size_t at = 40; at < payload.size();) {
    uint64_t zigzag = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(payload[at++]);
      zigzag |= static_cast<uint64_t>(shift == 56 ? byte : byte & 0x7f) << shift;
      if (byte < 0x80 || shift == 56) break;
    }
    const auto value = static_cast<int64_t>(zigzag >> 1) ^ -static_cast<int64_t>(zigzag & 1);
    if (value < 0) {
      index += static_cast<uint64_t>(-value);
      continue;
    }
    // Buckets of 2^0 up to 2048, then 1024 of each further power of two.
    const uint64_t shift = index < 2048 ? 0 : index / 1024 - 1;
    counts[(index - shift * 1024) << shift] += static_cast<uint64_t>(value);
    ++index;
  }
  return counts;
}

TEST(HdrCounts, EveryCountComesBackInABucketOfAThousandth) {
  core::Rng rng(1);
  for (int round = 0; round < 200; ++round) {
    HdrCounts counts;
    std::multiset<uint64_t> values;
    for (uint64_t i = rng.below(3'000); i > 0; --i) {
      const uint64_t value = rng.below(uint64_t{1} << (1 + rng.below(46)));
      counts.record(value);
      values.insert(value);
    }
    const auto found = decode(counts.encoded());
    uint64_t total = 0;
    auto next = values.begin();
    for (const auto& [low, n] : found) {
      for (uint64_t i = 0; i < n; ++i, ++next, ++total) {
        ASSERT_LE(low, *next);
        ASSERT_LT(static_cast<double>(*next - low), 1 + static_cast<double>(*next) / 1000);
      }
    }
    ASSERT_EQ(total, values.size());
  }
  HdrCounts beyond;
  beyond.record(UINT64_MAX);
  EXPECT_EQ(beyond.max_ns(), HdrCounts::kHighest);
}

TEST_F(Outputs, HdrLogIsGolden) {
  const auto row = plain_row();
  ASSERT_TRUE(write_hdr_log(path_, RowSpan({&row, 1}), {}, 1'700'000'000'000'000'000).ok());
  std::istringstream lines(text());
  std::string line;
  std::vector<std::string> all;
  while (std::getline(lines, line)) all.push_back(line);
  ASSERT_EQ(all.size(), 5u + 6);
  EXPECT_EQ(all[1], "#[Histogram log format version 1.3]");
  EXPECT_EQ(all[2], "#[StartTime: 1700000001.000 (seconds since epoch), 2023-11-14T22:13:21Z]");
  EXPECT_EQ(all[3], "#[BaseTime: 1700000001.000 (seconds since epoch)]");
  EXPECT_THAT(all[5], ::testing::StartsWith("Tag=ttft,0.000,0.071,50.000000,HISTFAAAA"));
  EXPECT_THAT(all[7], ::testing::StartsWith("Tag=itl,0.000,0.071,10.000000,HISTFAAAA"));
  const auto gaps = decode(all[7].substr(all[7].rfind(',') + 1));
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_EQ(gaps.begin()->second, 2u);
  EXPECT_NEAR(static_cast<double>(gaps.begin()->first), 10e6, 10e3);
}

TEST_F(Outputs, HdrLogHoldsThePopulationAndNothingElse) {
  core::Rng rng(2);
  auto rows = record::random_rows(rng, 500, 20'000'000'000);
  Population half;
  half.window = record::Window{0, 10'000'000'000, "given"};
  ASSERT_TRUE(write_hdr_log(path_, RowSpan(rows), half, 0).ok());
  const auto metrics =
      record::summarize(rows, {.window_begin_ns = 0, .window_end_ns = 10'000'000'000});
  std::map<std::string, uint64_t> counts;
  std::istringstream lines(text());
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("Tag=")) continue;
    auto& count = counts[line.substr(4, line.find(',') - 4)];
    for (const auto& [value, n] : decode(line.substr(line.rfind(',') + 1))) count += n;
  }
  EXPECT_EQ(static_cast<int64_t>(counts["ttft"]), *metrics.ttft_ms.n);
  EXPECT_EQ(static_cast<int64_t>(counts["itl"]), *metrics.itl_ms.n);
  EXPECT_EQ(static_cast<int64_t>(counts["tpot"]), *metrics.tpot_ms.n);
  EXPECT_EQ(static_cast<int64_t>(counts["e2e_intended"]), *metrics.e2e_intended_ms.n);
  rows.clear();
  ASSERT_TRUE(write_hdr_log(path_, RowSpan(rows), {}, 0).ok());
  EXPECT_THAT(text(), ::testing::Not(HasSubstr("Tag=")));
}

TEST_F(Outputs, CsvIsGolden) {
  auto row = plain_row();
  row.error = "=cmd|' \"x\"\n, y";
  ASSERT_TRUE(write_rows_csv(path_, RowSpan({&row, 1})).ok());
  EXPECT_THAT(text(), ::testing::StartsWith("index,id,status,http_status,error,retries,"));
  EXPECT_THAT(text(),
              HasSubstr("\n7,\"r-7\",\"ok\",200,\"'=cmd|' \"\"x\"\"\n, y\",0,12,,3,3,\"none\","
                        "\"length\",1000000000,,1001000000,1001050500,,,1051000000,1071000000,"
                        "1071000000,,50.0,10.0,70.0,"));
  const auto header = csv_header();
  EXPECT_EQ(std::count(header.begin(), header.end(), ','),
            static_cast<int64_t>(record::row_to_json(row, {}).size()) - 1);
}

TEST_F(Outputs, TraceIsGolden) {
  auto row = plain_row();
  ASSERT_TRUE(write_chrome_trace(path_, RowSpan({&row, 1})).ok());
  const auto json = core::parse_json(text(), "trace");
  ASSERT_TRUE(json.ok()) << json.error().message;
  std::string shown;
  for (const auto& event : json->at("traceEvents")) {
    if (event.at("ph") == "C" || event.at("ph") == "M") continue;
    shown += event.at("ph").get<std::string>() + " " + event.at("name").get<std::string>() + " " +
             event.at("ts").dump() + "\n";
  }
  EXPECT_EQ(shown,
            "b request 0.0\n"
            "b queue 0.0\ne queue 1000.0\n"
            "b send 1000.0\ne send 1050.5\n"
            "b prefill 1050.5\ne prefill 51000.0\n"
            "b decode 51000.0\ne decode 71000.0\n"
            "e request 71000.0\n");
  EXPECT_EQ(json->at("traceEvents")[1].at("args").dump(),
            R"({"id":"r-7","status":"ok","input_tokens":12,"output_tokens":3})");
  EXPECT_EQ(json->at("otherData").dump(), R"({"requests":1,"requests_drawn":1})");
}

TEST_F(Outputs, TraceOfManyRequestsIsThinnedAndSaysSo) {
  core::Rng rng(3);
  const auto rows = record::random_rows(rng, 1'000, 20'000'000'000);
  ASSERT_TRUE(write_chrome_trace(path_, RowSpan(rows), 300).ok());
  const auto json = core::parse_json(text(), "trace");
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_EQ(json->at("otherData").dump(), R"({"requests":1000,"requests_drawn":250})");
  // Every slice that begins ends, and never before.
  std::map<std::pair<int64_t, std::string>, double> open;
  int64_t counters = 0;
  for (const auto& event : json->at("traceEvents")) {
    const auto phase = event.at("ph").get<std::string>();
    counters += phase == "C";
    if (phase != "b" && phase != "e") continue;
    const auto key = std::pair{event.at("id").get<int64_t>(), event.at("name").get<std::string>()};
    const auto t = event.at("ts").get<double>();
    if (phase == "b") {
      EXPECT_TRUE(open.emplace(key, t).second);
    } else {
      ASSERT_TRUE(open.contains(key));
      EXPECT_GE(t, open[key]);
      open.erase(key);
    }
  }
  EXPECT_TRUE(open.empty());
  EXPECT_GT(counters, 100);
}

TEST_F(Outputs, AFolderThatIsNotThereIsAnError) {
  for (const auto& done : {write_rows_csv("/no/such/folder/x", RowSpan({})),
                           write_chrome_trace("/no/such/folder/x", RowSpan({})),
                           write_hdr_log("/no/such/folder/x", RowSpan({}), {}, 0)}) {
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code, ErrorCode::kEnvironment);
  }
}

}  // namespace
}  // namespace prony::report
