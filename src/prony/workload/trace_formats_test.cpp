// Parsers of foreign traces: what they keep, what they skip and count, and that every refusal names
// file and line. Tiny files written for the test; the formats are described in docs/workloads.md.
#include "prony/workload/trace_formats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "prony/core/file.hpp"
#include "prony/stats/gamma_law.hpp"
#include "prony/stats/kolmogorov.hpp"
#include "prony/workload/servegen.hpp"
#include "prony/workload/sharegpt.hpp"
#include "prony/workload/trace_table.hpp"

namespace prony::workload {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::vector<int64_t>> rows_of(const Trace& trace) {
  std::vector<std::vector<int64_t>> out;
  for (const auto& row : trace.rows) out.push_back({row.t_ns, row.input_tokens, row.output_tokens});
  return out;
}
template <class T>
std::string error_of(const Result<T>& result) {
  return result.ok() ? "no error" : result.error().message;
}

TEST(Mooncake, KeepsTimesLengthsAndBlocks) {
  const auto trace = parse_mooncake_trace(
      "{\"timestamp\": 3000, \"input_length\": 1000, \"output_length\": 5, \"hash_ids\": [0, "
      "7]}\r\n"
      "\n"
      "{\"timestamp\": 1000.5, \"input_length\": 513, \"output_length\": 2, \"hash_ids\": [0, 9],"
      " \"more\": 1}\n"
      "{\"timestamp\": 4000, \"input_length\": 10, \"output_length\": 0, \"hash_ids\": [3]}\n"
      "{\"timestamp\": 5000, \"input_length\": 10, \"output_length\": 1}",
      "dir/moon.jsonl");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace->name, "moon");
  EXPECT_THAT(rows_of(*trace),
              ElementsAre(ElementsAre(0, 513, 2), ElementsAre(1'999'500'000, 1000, 5),
                          ElementsAre(3'999'500'000, 10, 1)));
  EXPECT_EQ(trace->block_tokens, 512);
  EXPECT_THAT(trace->blocks_of(trace->rows[0]), ElementsAre(0, 9));
  EXPECT_THAT(trace->blocks_of(trace->rows[1]), ElementsAre(0, 7));
  EXPECT_TRUE(trace->blocks_of(trace->rows[2]).empty());
  EXPECT_EQ(trace->skipped_rows, 1);
  EXPECT_EQ(trace->moved_rows, 1);
}

TEST(Mooncake, RefusalsNameTheLine) {
  const std::string good = "{\"timestamp\":0,\"input_length\":1,\"output_length\":1}\n";
  const auto error = [&](const std::string& line) {
    return error_of(parse_mooncake_trace(good + line, "m"));
  };
  EXPECT_THAT(error("{"), HasSubstr("m:2: not JSON"));
  EXPECT_EQ(error("[1]"), "m:2: found '[1]', expected an object");
  EXPECT_EQ(error("{}"), "m:2: timestamp: found none, expected a number >= 0");
  EXPECT_THAT(error("{\"timestamp\":-1}"), HasSubstr("m:2: timestamp: found '-1'"));
  EXPECT_THAT(error("{\"timestamp\":1e15}"), HasSubstr("m:2: timestamp: found '1e+15'"));
  EXPECT_THAT(error("{\"timestamp\":1,\"input_length\":1.5}"),
              HasSubstr("m:2: input_length: found '1.5', expected a whole number"));
  const std::string head =
      "{\"timestamp\":1,\"input_length\":512,\"output_length\":1,\"hash_ids\":";
  EXPECT_EQ(error(head + "[1,2]}"),
            "m:2: hash_ids: found '[1,2]', expected a list of at most 1 ids (512 tokens each)");
  EXPECT_THAT(error(head + "[-1]}"), HasSubstr("expected integers >= 0"));
  EXPECT_THAT(error(head + "[18446744073709551615]}"), HasSubstr("expected integers >= 0"));
  EXPECT_EQ(error_of(parse_mooncake_trace("", "m")), "m: found no rows");
}

// The published property of the file: how many prompt blocks an unlimited cache has seen before.
TEST(Mooncake, TheSampleIsWhatItsSourceSays) {
  const auto path =
      std::string(PRONY_SOURCE_DIR) + "/data/traces/mooncake-conversation-sample.jsonl";
  const auto content = core::read_file(path);
  ASSERT_TRUE(content.ok()) << content.error().message;
  const auto trace = parse_mooncake_trace(*content, path);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace->rows.size(), 1000u);
  EXPECT_EQ(trace->skipped_rows + trace->moved_rows, 0);
  for (const auto& row : trace->rows) EXPECT_EQ(row.block_count, (row.input_tokens + 511) / 512);
}

TEST(BurstGpt, SkipsFailuresAndReadsDecimalSeconds) {
  const auto trace = parse_burstgpt_trace(
      "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "5,ChatGPT,472,18,490,Conversation log\n"
      "45.25,ChatGPT,1087,230,1317,Conversation log\n"
      "118,GPT-4,417,0,417,Conversation log\n"
      "208.0000000015,GPT-4,276,7,283,API log\n",
      "burst.csv");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_THAT(rows_of(*trace),
              ElementsAre(ElementsAre(0, 472, 18), ElementsAre(40'250'000'000, 1087, 230),
                          ElementsAre(203'000'000'001, 276, 7)));
  EXPECT_EQ(trace->skipped_rows, 1);
  // Release 3 puts Session ID and Elapsed time between.
  EXPECT_TRUE(parse_burstgpt_trace("Timestamp,Session ID,Elapsed time,Model,Request tokens,"
                                   "Response tokens,Total tokens,Log Type\n1,2,3,m,4,5,9,x\n",
                                   "b")
                  .ok());
  const std::string head = "Timestamp,Request tokens,Response tokens\n";
  EXPECT_THAT(error_of(parse_burstgpt_trace(head + "-1,2,3\n", "b")),
              HasSubstr("b:2: column Timestamp: found '-1', expected seconds >= 0"));
  EXPECT_THAT(error_of(parse_burstgpt_trace(head + "1,2.5,3\n", "b")),
              HasSubstr("b:2: column Request tokens: found '2.5'"));
  EXPECT_EQ(error_of(parse_burstgpt_trace(head + "1,2,0\n", "b")),
            "b: none of 1 rows has both a prompt and an answer");
  EXPECT_THAT(error_of(parse_burstgpt_trace("a,b\n", "b")),
              HasSubstr("expected one called Timestamp"));
}

TEST(ParseDecimal, ExactOrRefused) {
  EXPECT_EQ(parse_decimal_ns("1.000000001", 1'000'000'000), 1'000'000'001);
  EXPECT_EQ(parse_decimal_ns("1.5", 1), 1);
  EXPECT_EQ(parse_decimal_ns("12.345678", 1'000'000), 12'345'678);
  EXPECT_EQ(parse_decimal_ns("0", 1), 0);
  for (const char* bad : {"", ".", "1.", ".5", "-1", "+1", "1e3", "1.5x", "x", " 1",
                          "99999999999999999999", "9223372036854775807"}) {
    EXPECT_FALSE(parse_decimal_ns(bad, 1'000'000'000).has_value()) << bad;
  }
}

TEST(OwnTable, ColumnsAreMappedByName) {
  const auto map = parse_column_map("input=in tokens,output=out,time=at:ms").value();
  const auto trace =
      parse_csv_trace("at,x,out,in tokens\n1500,a,3,40\n1000.5,b,4,50\n2000,c,0,9\n", "t.csv", map);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_THAT(rows_of(*trace), ElementsAre(ElementsAre(0, 50, 4), ElementsAre(499'500'000, 40, 3)));
  EXPECT_EQ(trace->skipped_rows, 1);
  const auto lines = parse_jsonl_trace(
      "{\"at\":1500,\"in tokens\":40,\"out\":3}\n{\"at\":1000.5,\"in tokens\":50,\"out\":4}", "t",
      map);
  EXPECT_THAT(rows_of(*lines), ElementsAre(ElementsAre(0, 50, 4), ElementsAre(499'500'000, 40, 3)));
  const auto dates = parse_column_map("time=ts:date").value();
  const auto dated = parse_csv_trace(
      "ts,input_tokens,output_tokens\n2024-05-10 00:00:01.5,1,2\n"
      "2024-05-10 00:00:03,3,4\n",
      "t", dates);
  EXPECT_THAT(rows_of(*dated), ElementsAre(ElementsAre(0, 1, 2), ElementsAre(1'500'000'000, 3, 4)));
  EXPECT_FALSE(parse_csv_trace("input_tokens,output_tokens\n1,2\n", "t", {})->has_times);
}

TEST(OwnTable, SessionsBecomeConversations) {
  const auto map = parse_column_map("input=i,output=o,session=who").value();
  const auto trace = parse_csv_trace("who,i,o\nb,10,1\na,20,2\nb,30,3\n", "t", map);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  std::vector<std::vector<int64_t>> seen;
  for (const auto& r : trace->rows) seen.push_back({r.session, r.turn, r.input_tokens});
  EXPECT_THAT(seen,
              ElementsAre(ElementsAre(0, 0, 10), ElementsAre(0, 1, 30), ElementsAre(1, 0, 20)));
  const auto lines = parse_jsonl_trace(
      "{\"who\":\"b\",\"i\":10,\"o\":1}\n{\"who\":4,\"i\":20,\"o\":2}\n{\"who\":\"b\",\"i\":30,"
      "\"o\":3}",
      "t", map);
  EXPECT_EQ(lines->rows, trace->rows);
  EXPECT_THAT(error_of(parse_jsonl_trace("{\"i\":1,\"o\":1}", "t", map)),
              HasSubstr("t:1: who: found none"));
}

TEST(OwnTable, BadMapsAreRefused) {
  for (const char* bad : {"input", "=x", "input=", "in=x", "input=a,input=b", "time=t:h", "time=:s",
                          ",", "input=a,,output=b"}) {
    EXPECT_THAT(error_of(parse_column_map(bad)), HasSubstr("--column: found")) << bad;
  }
  EXPECT_THAT(error_of(parse_column_map("time=t,session=s")), HasSubstr("found time and session"));
  EXPECT_THAT(error_of(parse_csv_trace("a,b\n1,2\n", "t", {})),
              HasSubstr("expected one called input_tokens"));
}

TEST(ShareGpt, EveryTurnNotTheFirstTwo) {
  const auto trace = parse_sharegpt(
      R"([
{"id": "a", "conversations": [
  {"from": "system", "value": "ss"}, {"from": "human", "value": "1234"},
  {"from": "gpt", "value": "12"}, {"from": "human", "value": "1"}, {"from": "human", "value": "23"},
  {"from": "gpt", "value": "1\"}]{["}, {"from": "gpt", "value": "4"},
  {"from": "human", "value": "never answered"}]},
{"id": "b", "conversations": []},
{"id": "c", "conversations": [{"from": "gpt", "value": "x"}, {"from": "user", "value": "yyy"},
  {"from": "assistant", "value": "z"}]}
] )",
      "s.json", [](std::string_view text) { return static_cast<int64_t>(text.size()); });
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  std::vector<std::vector<int64_t>> seen;
  for (const auto& r : trace->rows) {
    seen.push_back({r.session, r.turn, r.input_tokens, r.output_tokens});
  }
  EXPECT_THAT(
      seen, ElementsAre(ElementsAre(0, 0, 6, 2), ElementsAre(0, 1, 3, 7), ElementsAre(1, 0, 3, 1)));
  EXPECT_EQ(trace->skipped_rows, 1);
  EXPECT_FALSE(trace->has_times);
  EXPECT_TRUE(trace->has_sessions());
  EXPECT_EQ(trace->note, "");
  // Without a counter: a token for four bytes begun.
  const auto rough = parse_sharegpt(
      R"([{"conversations":[{"from":"human","value":"12345"},{"from":"gpt","value":"1"}]}])", "s",
      nullptr);
  EXPECT_EQ(rough->rows.front().input_tokens, 2);
  EXPECT_THAT(rough->note, HasSubstr("estimated"));
}

TEST(ShareGpt, RefusalsNameTheLineOfTheConversation) {
  const auto error = [](const std::string& text) {
    return error_of(parse_sharegpt(text, "s", nullptr));
  };
  EXPECT_EQ(error(""), "s:1: expected a list of conversations: [");
  EXPECT_EQ(error("{}"), "s:1: expected a list of conversations: [");
  EXPECT_EQ(error("[]"), "s: found no rows");
  EXPECT_THAT(error("[\n\n{\"conversations\": ["), HasSubstr("found the end of the file inside"));
  EXPECT_THAT(error("[\n{\"a\":1}]"), HasSubstr("s:2: found '{\"a\":1}', expected an object with"));
  EXPECT_THAT(error("[\n5]"), HasSubstr("s:2: found '5'"));
  EXPECT_THAT(error("[{\"conversations\":[]}\n\n{}]"),
              HasSubstr("s:3: expected a comma or ] after a conversation"));
  EXPECT_THAT(error("[{\"conversations\":[{\"from\":\"dog\",\"value\":\"x\"}]}]"),
              HasSubstr("s:1: conversations[0]: expected \"from\" human or gpt"));
  EXPECT_THAT(error("[{\"conversations\":[]}] x"), HasSubstr("expected nothing after the list"));
}

constexpr const char* kArrivals =
    "client_id,window_start_s,rate_req_per_s,interarrival_cv,fit_family,fit_shape,fit_scale_s\n"
    "1,0,20,1,Gamma,0.5,0.1\n1,600,5,1,Weibull,0.8,0.2\n2,600,10,1,Gamma,2,0.05\n"
    "3,0,1,1,Gamma,1,1\n";
constexpr const char* kLengths =
    "client_id,window_start_s,quantity,mean,p5,p25,p50,p75,p90,p95,p99\n"
    "1,0,input_tokens,0,10,20,30,40,50,60,70\n1,0,output_tokens,0,1,2,3,4,5,6,7\n"
    "1,0,reason_ratio,0,0,0,0,0,0,0,0\n"
    "2,0,input_tokens,0,1000,1000,1000,1000,1000,1000,1000\n"
    "2,0,output_tokens,0,9,9,9,9,9,9,9\n";

TEST(ServeGen, EachClientKeepsItsRateAndItsLengths) {
  const auto mix = parse_servegen(kArrivals, "x_arrivals.csv", kLengths, "x_lengths.csv");
  ASSERT_TRUE(mix.ok()) << mix.error().message;
  ASSERT_EQ(mix->clients.size(), 3u);
  EXPECT_EQ(mix->window_s, 600);
  const auto trace = draw_servegen(*mix, 5, 0, 1200);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_THAT(trace->note, HasSubstr("drawn from 2 clients"));
  EXPECT_THAT(trace->note, HasSubstr("1 clients without lengths left out"));
  int early_one = 0, late_one = 0, early_two = 0, late_two = 0;
  std::vector<double> lengths;
  int64_t before = 0;
  for (const auto& row : trace->rows) {
    ASSERT_GE(row.t_ns, before);
    before = row.t_ns;
    const bool late = row.t_ns > 600'000'000'000, two = row.input_tokens == 1000;
    ++(two ? late ? late_two : early_two : late ? late_one : early_one);
    if (!two) lengths.push_back(row.input_tokens);
  }
  EXPECT_NEAR(early_one, 12'000, 5 * std::sqrt(24'000));  // variance n / shape
  EXPECT_NEAR(late_one, 3000, 5 * std::sqrt(3000 * 1.6));
  EXPECT_EQ(early_two, 0);
  EXPECT_NEAR(late_two, 6000, 5 * std::sqrt(3000));
  std::sort(lengths.begin(), lengths.end());
  EXPECT_EQ(lengths.front(), 10);
  EXPECT_EQ(lengths.back(), 70);
  EXPECT_NEAR(lengths[lengths.size() / 2], 30, 1);
  EXPECT_NEAR(lengths[lengths.size() * 9 / 10], 50, 1);
  // A later window begins at its own zero; equal seeds give equal traces.
  EXPECT_EQ(draw_servegen(*mix, 5, 0, 1200)->rows, trace->rows);
  EXPECT_NE(draw_servegen(*mix, 6, 0, 1200)->rows, trace->rows);
  EXPECT_LT(draw_servegen(*mix, 5, 600, 100)->rows.back().t_ns, 100'000'000'001);
  EXPECT_THAT(error_of(draw_servegen(*mix, 5, 5000, 100)), HasSubstr("no request of x_arrivals"));
  EXPECT_THAT(error_of(draw_servegen(*mix, 5, 0, 0)), HasSubstr("ServeGen window"));
}

// One client in its first window: gaps times the rate must be gamma of the fitted shape.
TEST(ServeGen, GapsFollowTheFit) {
  const auto mix = parse_servegen(kArrivals, "x", kLengths, "y").value();
  const auto trace = draw_servegen(mix, 9, 0, 600).value();
  std::vector<double> gaps;
  int64_t before = 0;
  for (const auto& row : trace.rows) {
    gaps.push_back(static_cast<double>(row.t_ns - before) / 1e9 * 20);
    before = row.t_ns;
  }
  std::sort(gaps.begin(), gaps.end());
  const auto ks =
      stats::ks_one_sample(gaps, [](double x) { return stats::gamma_cdf(x * 0.5, 0.5); });
  EXPECT_GT(ks.p_value, 1e-3);
}

TEST(ServeGen, RefusalsNameTheLine) {
  const std::string head = "client_id,window_start_s,rate_req_per_s,fit_family,fit_shape\n";
  const auto error = [&](const std::string& rows) {
    return error_of(parse_servegen(head + rows, "a", kLengths, "l"));
  };
  EXPECT_THAT(error("1,0,-1,Gamma,1\n"), HasSubstr("a:2: column rate_req_per_s: found '-1'"));
  EXPECT_THAT(error("1,0,1,Pareto,1\n"), HasSubstr("a:2: column fit_family: found 'Pareto'"));
  EXPECT_THAT(error("1,0,1,Gamma,nan\n"), HasSubstr("a:2: column fit_shape"));
  EXPECT_THAT(error("1,600,1,Gamma,1\n1,0,1,Gamma,1\n"), HasSubstr("a:3: column window_start_s"));
  EXPECT_THAT(error(""), HasSubstr("a: found no clients"));
  EXPECT_THAT(error_of(parse_servegen(kArrivals, "a",
                                      "client_id,window_start_s,quantity,p5,p25,p50,p75,p90,p95,"
                                      "p99\n1,0,input_tokens,5,4,3,2,1,1,1\n",
                                      "l")),
              HasSubstr("l:2: column p25: found '4', expected a number, 5 to"));
}

}  // namespace
}  // namespace prony::workload
