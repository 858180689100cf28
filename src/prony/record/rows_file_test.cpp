// Tests of requests.jsonl: the contract's fields in their order, exact round trips, and what a
// broken line is told.
#include "prony/record/rows_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "prony/record/json_schema.hpp"
#include "prony/record/random_rows.hpp"
#include "prony/record/row_metrics.hpp"

namespace prony::record {
namespace {

using core::Json;

class Folder {
 public:
  Folder() : path_(::testing::TempDir() + "prony_rows_XXXXXX") {
    PRONY_CHECK(::mkdtemp(path_.data()) != nullptr);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

RequestRow sample() {
  RequestRow row;
  row.index = 3;
  row.id = "r-3";
  row.status = Status::kOk;
  row.http_status = 200;
  row.input_tokens_asked = 32;
  row.prompt_tokens = 33;
  row.output_tokens_asked = 5;
  row.output_tokens = 5;
  row.token_source = TokenSource::kContinuousUsage;
  row.finish_reason = "length";
  row.t_intended_ns = 1'000'000'000;
  row.t_send_ns = 1'000'050'000;
  row.t_sent_ns = 1'000'060'000;
  row.t_headers_ns = 1'040'000'000;
  row.t_first_event_ns = 1'050'050'000;
  row.t_first_token_ns = 1'050'050'000;
  row.t_first_output_ns = 1'050'050'000;
  row.t_last_token_ns = 1'070'050'000;
  row.t_done_ns = 1'070'050'000;
  row.t_close_ns = 1'071'000'000;
  row.events = {{1'050'050'000, 1'050'060'000, 1}, {1'070'050'000, 1'070'061'000, 4}};
  row.first_event_tokens = 1;
  row.tokens_per_event_exact = true;
  row.read_lag_max_ns = 11'000;
  row.text = "Hello";
  return row;
}

std::string line(const RequestRow& row, const RowFormat& format) {
  return core::write_json(row_to_json(row, format)).value();
}

TEST(RowsFile, GoldenLine) {
  EXPECT_EQ(
      line(sample(), {}),
      R"({"index":3,"id":"r-3","status":"ok","http_status":200,"error":null,"retries":0,)"
      R"("input_tokens_asked":32,"prompt_tokens":33,"output_tokens_asked":5,"output_tokens":5,)"
      R"("token_source":"continuous_usage","finish_reason":"length","t_intended_ns":1000000000,)"
      R"("t_connect_ns":null,"t_send_ns":1000050000,"t_sent_ns":1000060000,)"
      R"("t_headers_ns":1040000000,"t_first_event_ns":1050050000,"t_first_token_ns":1050050000,)"
      R"("t_last_token_ns":1070050000,"t_done_ns":1070050000,"t_close_ns":1071000000,)"
      R"("ttft_ms":50.0,"tpot_ms":5.0,"e2e_ms":70.0,"t_connect_begin_ns":null,)"
      R"("t_first_output_ns":1050050000,"first_event_tokens":1,"tokens_per_event_exact":true,)"
      R"("merged_events":0,"read_lag_max_ns":11000,"issue_lag_ns":null})");
}

TEST(RowsFile, DetailAndTextComeLast) {
  const auto text = line(sample(), {.detailed = true, .text = true});
  EXPECT_THAT(text,
              ::testing::EndsWith(R"("read_lag_max_ns":11000,"issue_lag_ns":null,)"
                                  R"("events":[[1050050000,1050060000,1],)"
                                  R"([1070050000,1070061000,4]],"text":"Hello","reasoning":"",)"
                                  R"("tool_calls":""})"));
}

TEST(RowsFile, WhatIsUnknownIsNull) {
  RequestRow row;
  row.status = Status::kConnect;
  row.error = "connection refused";
  const auto json = row_to_json(row, {});
  for (const char* key : {"http_status", "prompt_tokens", "output_tokens", "finish_reason",
                          "t_send_ns", "t_close_ns", "ttft_ms", "tpot_ms", "e2e_ms"}) {
    EXPECT_TRUE(json.at(key).is_null()) << key;
  }
  EXPECT_EQ(json.at("error"), "connection refused");
}

TEST(RowsFile, RoundTripOfRandomRows) {
  const Folder folder;
  core::Rng rng(41);
  auto rows = random_rows(rng, 2'000, 5'000'000'000);
  rows[0].t_intended_ns = INT64_MAX - 1;
  rows[0].status = Status::kUnfinished;
  rows[1].id = "odd \" \\ \n \u2028 \x7f id";
  ASSERT_TRUE(
      write_rows(folder.file("full"), RowSpan(rows), {.detailed = true, .text = true}).ok());
  const auto read = read_rows(folder.file("full"));
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(*read, rows);

  // Without events and text everything else comes back, and with it every per-request metric.
  ASSERT_TRUE(write_rows(folder.file("plain"), RowSpan(rows), {}).ok());
  const auto plain = read_rows(folder.file("plain"));
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  for (size_t i = 0; i < rows.size(); ++i) {
    auto expected = rows[i];
    expected.events.clear();
    expected.text = expected.reasoning = expected.tool_calls = "";
    ASSERT_EQ((*plain)[i], expected);
    ASSERT_EQ(tpot_ms((*plain)[i]), tpot_ms(rows[i]));
    ASSERT_EQ(ttft_ms((*plain)[i]), ttft_ms(rows[i]));
    ASSERT_EQ(e2e_ms((*plain)[i]), e2e_ms(rows[i]));
  }
}

TEST(RowsFile, AppearsOnlyWhenCommitted) {
  const Folder folder;
  {
    auto writer = RowsWriter::create(folder.file("rows"), {}).value();
    writer.append(sample());
  }
  EXPECT_FALSE(std::filesystem::exists(folder.file("rows")));
  EXPECT_FALSE(write_rows(folder.file("no/such/folder"), RowSpan({}), {}).ok());
  ASSERT_TRUE(write_rows(folder.file("empty"), RowSpan({}), {}).ok());
  EXPECT_TRUE(read_rows(folder.file("empty")).value().empty());
}

TEST(RowsFile, InvalidUtf8IsReplacedNotRefused) {
  auto row = sample();
  row.text = "half \xe2\x82";
  const Folder folder;
  ASSERT_TRUE(write_rows(folder.file("rows"), RowSpan({&row, 1}), {.text = true}).ok());
  EXPECT_THAT(read_rows(folder.file("rows")).value()[0].text,
              ::testing::StartsWith("half \xef\xbf\xbd"));
}

std::string error_of(const Json& json) {
  const auto row = row_from_json(json, "f.jsonl:7");
  return row.ok() ? "no error" : row.error().message;
}

TEST(RowsFile, SaysWhatIsWrong) {
  const auto good = row_to_json(sample(), {.detailed = true});
  ASSERT_TRUE(row_from_json(good, "x").ok());
  const auto with = [&](const char* key, const Json& value) {
    auto json = good;
    json[key] = value;
    return error_of(json);
  };
  EXPECT_EQ(with("status", "okay"),
            "f.jsonl:7: /status: found 'okay', expected one of ok, http_4xx, http_5xx, "
            "stream_error, truncated, empty, not_stream, parse, interrupted, connect, "
            "timeout_connect, timeout_ttft, timeout_stall, timeout_total, cancelled, unfinished");
  EXPECT_EQ(with("token_source", "guess"),
            "f.jsonl:7: /token_source: found 'guess', expected one of none, usage, token_ids, "
            "continuous_usage, tokenizer, event_count");
  EXPECT_EQ(with("retries", -1), "f.jsonl:7: /retries: found -1, expected at least 0");
  EXPECT_EQ(with("output_tokens", 2.5),
            "f.jsonl:7: /output_tokens: found 2.5, expected a whole number");
  EXPECT_EQ(
      with("output_tokens", 3'000'000'000),
      "f.jsonl:7: /output_tokens: found 3000000000, expected at least -2147483648 and at most "
      "2147483647");
  EXPECT_EQ(with("t_send_ns", UINT64_MAX),
            "f.jsonl:7: /t_send_ns: found 18446744073709551615, expected at least "
            "-9223372036854775808 and at most 9223372036854775807");
  EXPECT_EQ(with("id", 5), "f.jsonl:7: /id: found 5, expected a string");
  EXPECT_EQ(with("error", 5), "f.jsonl:7: /error: found 5, expected a string or null");
  EXPECT_EQ(with("ttft_ms", "fast"),
            "f.jsonl:7: /ttft_ms: found 'fast', expected a number or null");
  EXPECT_EQ(with("tokens_per_event_exact", 1),
            "f.jsonl:7: /tokens_per_event_exact: found 1, expected true or false");
  EXPECT_EQ(with("surprise", 1), "f.jsonl:7: /surprise: unknown key");
  EXPECT_EQ(
      with("t_first_token_ns", 1'080'000'000),
      "f.jsonl:7: /t_first_output_ns: found 1050050000, expected at or after t_first_token_ns "
      "= 1080000000");
  EXPECT_EQ(with("t_last_token_ns", nullptr),
            "f.jsonl:7: /t_last_token_ns: found null in an ok row");
  EXPECT_EQ(with("output_tokens", 0),
            "f.jsonl:7: /output_tokens: found 0 in an ok row, expected at least 1");
  EXPECT_EQ(with("events", Json::array({Json::array({1, 2})})),
            "f.jsonl:7: /events/0: found an array, expected [t_kernel_ns, t_user_ns, tokens]");
  EXPECT_EQ(with("events", Json::array({Json::array({5, 6, 1}), Json::array({4, 6, 1})})),
            "f.jsonl:7: /events/1/0: found 4, expected at or after the event before, 5");
  EXPECT_EQ(with("events", Json::array({Json::array({5, 6, -1})})),
            "f.jsonl:7: /events/0/2: found -1, expected at least 0");
  auto older = good;
  older.erase("issue_lag_ns");  // written before it was there
  EXPECT_TRUE(row_from_json(older, "f.jsonl:7").ok());
  auto missing = good;
  missing.erase("t_done_ns");
  EXPECT_EQ(error_of(missing), "f.jsonl:7: /t_done_ns: missing");
  EXPECT_EQ(error_of(Json::array()), "f.jsonl:7: found an array, expected an object");
}

// What the writer writes satisfies the published schema; a line that violates it is not read.
TEST(RowsFile, SchemaAndReaderAgree) {
  const auto schema = row_json_schema();
  core::Rng rng(42);
  for (int i = 0; i < 500; ++i) {
    const auto row = random_row(rng, i, 1'000'000'000);
    const auto json = row_to_json(row, {.detailed = i % 2 == 0, .text = i % 3 == 0});
    const auto checked = check_schema(json, schema, "row");
    ASSERT_TRUE(checked.ok()) << checked.error().message;
  }
  const auto good = row_to_json(sample(), {.detailed = true, .text = true});
  const Json values[] = {nullptr, true, -1, 0.5, "text", Json::array(), Json::object()};
  int refused = 0;
  for (const auto& [key, value] : good.items()) {
    for (const auto& replacement : values) {
      auto json = good;
      json[key] = replacement;
      if (check_schema(json, schema, "row").ok()) continue;
      ++refused;
      ASSERT_FALSE(row_from_json(json, "row").ok()) << key << " " << replacement.dump();
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(RowsFile, NamesTheLine) {
  const Folder folder;
  const auto path = folder.file("rows.jsonl");
  const auto good = line(sample(), {});
  ASSERT_TRUE(core::write_file_atomic(path, good + "\n" + good + "\n{\"index\":1}\n").ok());
  EXPECT_EQ(read_rows(path).error().message, path + ":3: /id: missing");
  ASSERT_TRUE(core::write_file_atomic(path, good + "\n" + good.substr(0, 50)).ok());
  EXPECT_THAT(read_rows(path).error().message,
              ::testing::StartsWith(path + ":2: not JSON at byte"));
  ASSERT_TRUE(core::write_file_atomic(path, "{\"index\": 1e999}\n").ok());
  EXPECT_EQ(read_rows(path).error().message, path + ":1: number overflow parsing '1e999'");
}

// Any single change of a valid line gives an error or a row that is written the same way again.
TEST(RowsFile, NeverCrashesOnChangedLines) {
  core::Rng rng(43);
  const auto good = line(sample(), {.detailed = true, .text = true});
  constexpr std::string_view kBytes = "{}[]\",:0123456789-.eEntrufalsn\\ \x80";
  for (int round = 0; round < 5'000; ++round) {
    auto text = good;
    text[rng.below(text.size())] = kBytes[rng.below(kBytes.size())];
    const auto json = core::parse_json(text, "x");
    if (!json.ok()) continue;
    const auto row = row_from_json(*json, "x");
    if (!row.ok()) continue;
    const auto again = row_from_json(row_to_json(*row, {.detailed = true, .text = true}), "x");
    ASSERT_TRUE(again.ok()) << again.error().message;
    ASSERT_EQ(*again, *row) << text;
  }
}

TEST(Names, StatusesAndSourcesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(Status::kUnfinished); ++i) {
    EXPECT_EQ(parse_status(status_name(static_cast<Status>(i))), static_cast<Status>(i));
  }
  for (int i = 0; i <= static_cast<int>(TokenSource::kEventCount); ++i) {
    const auto source = static_cast<TokenSource>(i);
    EXPECT_EQ(parse_token_source(token_source_name(source)), source);
  }
  EXPECT_STREQ(status_name(Status::kTimeoutTtft), "timeout_ttft");
  EXPECT_STREQ(status_name(Status::kNotStream), "not_stream");
  EXPECT_FALSE(parse_status("OK").has_value());
}

}  // namespace
}  // namespace prony::record
