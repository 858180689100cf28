// Tests of trace reading: timestamps as integers, header and line-end variations, and that every
// bad row is refused with its file, line and column.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "prony/workload/csv.hpp"
#include "prony/workload/timestamp.hpp"
#include "prony/workload/trace.hpp"

namespace prony::workload {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kDay = 86'400 * kSecond;

std::string error_of(std::string_view content) {
  const auto trace = parse_azure_trace(content, "t.csv");
  return trace ? "no error" : trace.error().message;
}

TEST(Timestamp, KnownInstants) {
  EXPECT_EQ(parse_timestamp_ns("1970-01-01 00:00:00"), 0);
  EXPECT_EQ(parse_timestamp_ns("2023-11-16 18:15:46.6805900"), 1'700'158'546'680'590'000);
  EXPECT_EQ(parse_timestamp_ns("2000-02-29T12:00:00"), 951'825'600 * kSecond);
  EXPECT_EQ(parse_timestamp_ns("2261-12-31 23:59:59.999999999"), 9'214'646'399'999'999'999);
}

TEST(Timestamp, DecimalsAreExact) {
  const int64_t base = *parse_timestamp_ns("2023-11-16 18:15:46");
  EXPECT_EQ(*parse_timestamp_ns("2023-11-16 18:15:46.1") - base, 100'000'000);
  EXPECT_EQ(*parse_timestamp_ns("2023-11-16 18:15:46.0000001") - base, 100);  // one tick
  EXPECT_EQ(*parse_timestamp_ns("2023-11-16 18:15:46.9999999") - base, 999'999'900);
  EXPECT_EQ(*parse_timestamp_ns("2023-11-16 18:15:46.000000001") - base, 1);
}

TEST(Timestamp, ZonesAreTakenOff) {
  const int64_t utc = *parse_timestamp_ns("2024-05-10 00:00:00.009930");
  for (const char* same : {"2024-05-10 00:00:00.009930+00:00", "2024-05-10 00:00:00.009930Z",
                           "2024-05-10 02:00:00.009930+02:00", "2024-05-09 18:30:00.009930-0530",
                           "2024-05-10T01:00:00.00993+01"}) {
    EXPECT_EQ(parse_timestamp_ns(same), utc) << same;
  }
}

TEST(Timestamp, EveryDayFollowsTheOneBefore) {
  // From 1970 to 2261, with month lengths counted here.
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  int64_t expected = 0;
  for (int year = 1970; year <= 2261; ++year) {
    const bool leap = year % 400 == 0 || (year % 4 == 0 && year % 100 != 0);
    for (int month = 1; month <= 12; ++month) {
      const int days = kDays[month - 1] + (leap && month == 2 ? 1 : 0);
      for (int day = 1; day <= 31; ++day) {
        const auto text = fmt::format("{:04}-{:02}-{:02} 00:00:00", year, month, day);
        if (day > days) {
          ASSERT_EQ(parse_timestamp_ns(text), std::nullopt) << text;
        } else {
          ASSERT_EQ(parse_timestamp_ns(text), expected) << text;
          expected += kDay;
        }
      }
    }
  }
}

TEST(Timestamp, AnythingElseIsRefused) {
  for (const char* bad : {"",
                          "2023",
                          "2023-11-16",
                          "2023-11-16 ",
                          "2023-11-16 18:15",
                          "2023-11-16 18:15:46.",
                          "2023-11-16 18:15:46.1234567890",
                          "2023-11-16 24:00:00",
                          "2023-11-16 18:60:00",
                          "2023-11-16 18:15:60",
                          "2023-13-01 00:00:00",
                          "2023-00-01 00:00:00",
                          "2023-01-00 00:00:00",
                          "1969-12-31 00:00:00",
                          "2262-01-01 00:00:00",
                          "23-11-16 18:15:46",
                          "2023/11/16 18:15:46",
                          "2023-11-16  18:15:46",
                          " 2023-11-16 18:15:46",
                          "2023-11-16 18:15:46 ",
                          "2023-11-16 18:15:46x",
                          "2023-11-16 18:15:46+",
                          "2023-11-16 18:15:46+1",
                          "2023-11-16 18:15:46+01:",
                          "2023-11-16 18:15:46+01:0",
                          "2023-11-16 18:15:46+24:00",
                          "2023-11-16 18:15:46+01:60",
                          "2023-11-16 18:15:46Zz",
                          "2023-11-16 -8:15:46",
                          "2023-11-16 +8:15:46",
                          "1700158546"}) {
    EXPECT_EQ(parse_timestamp_ns(bad), std::nullopt) << bad;
  }
}

TEST(AzureTrace, RowsCountFromTheFirst) {
  const auto trace = parse_azure_trace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "2023-11-16 18:15:46.6805900,374,44\n"
      "2023-11-16 18:15:46.6805901,396,109\n"
      "2023-11-16 18:15:51.2224670,879,55\n",
      "folder.d/azure.conv.csv");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->name, "azure.conv");
  EXPECT_EQ(trace->moved_rows, 0);
  EXPECT_THAT(trace->rows, ElementsAre(TraceRow{0, 374, 44}, TraceRow{100, 396, 109},
                                       TraceRow{4'541'877'000, 879, 55}));
}

TEST(AzureTrace, HeaderVariationsGiveTheSameRows) {
  const std::string row = "2023-11-16 18:15:46.6805900";
  const TraceRow expected{0, 374, 44};
  const std::string variants[] = {
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n" + row + ",374,44\r\n",
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n" + row + ",374,44",
      "\xEF\xBB\xBFTIMESTAMP,ContextTokens,GeneratedTokens\n" + row + ",374,44\n",
      "timestamp,contexttokens,generatedtokens\n" + row + ",374,44\n",
      " Timestamp , ContextTokens ,\tGeneratedTokens \n " + row + " , 374 , 44 \n",
      "\"TIMESTAMP\",\"ContextTokens\",\"GeneratedTokens\"\n\"" + row + "\",\"374\",44\n",
      "GeneratedTokens,Model,TIMESTAMP,ContextTokens\n44,\"a, \"\"b\"\"\"," + row + ",374\n",
      "\n\nTIMESTAMP,ContextTokens,GeneratedTokens\n\n" + row + ",374,44\n\r\n \n",
  };
  for (const auto& content : variants) {
    const auto trace = parse_azure_trace(content, "t.csv");
    ASSERT_TRUE(trace.ok()) << trace.error().message << "\n" << content;
    EXPECT_THAT(trace->rows, ElementsAre(expected)) << content;
  }
}

TEST(AzureTrace, BadRowsAreNamed) {
  const std::string head =
      "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n";
  EXPECT_EQ(error_of(head + "2023-11-16 18:15:50,396,x\n"),
            "t.csv:3: column GeneratedTokens: found 'x', expected a positive integer");
  EXPECT_EQ(error_of(head + "\n2023-11-16 18:15:50,0,5\n"),
            "t.csv:4: column ContextTokens: found '0', expected a positive integer");
  for (const char* bad : {"-1", "1.5", "1e3", "", "+5", "0x10", "5 5", "99999999999999999999"}) {
    EXPECT_EQ(error_of(head + "2023-11-16 18:15:50," + bad + ",5\n"),
              "t.csv:3: column ContextTokens: found '" + std::string(bad) +
                  "', expected a positive integer");
  }
  EXPECT_EQ(error_of(head + "2023-11-16 18:15:50,100000001,5\n"),
            "t.csv:3: column ContextTokens: found '100000001', expected at most 100000000");
  EXPECT_EQ(error_of(head + "yesterday,396,5\n"),
            "t.csv:3: column TIMESTAMP: found 'yesterday', expected a time like 2023-11-16 "
            "18:15:46.6805900");
  EXPECT_EQ(error_of(head + "2023-11-16 18:15:50,396\n"),
            "t.csv:3: found 2 fields, expected 3 as in the header");
  EXPECT_EQ(error_of(head + "2023-11-16 18:15:50,396,5,\n"),
            "t.csv:3: found 4 fields, expected 3 as in the header");
  EXPECT_EQ(error_of(head + "\"2023-11-16 18:15:50,396,5\n"),
            "t.csv:3: found a quote that is not closed on its line");
  EXPECT_EQ(error_of(head + "\"2023\"-11,396,5\n"),
            "t.csv:3: found '-11' after a closing quote, expected a comma");
}

TEST(AzureTrace, BadFilesAreNamed) {
  EXPECT_EQ(error_of(""), "t.csv: found an empty file, expected a header line");
  EXPECT_EQ(error_of("\r\n \n"), "t.csv: found an empty file, expected a header line");
  EXPECT_EQ(error_of("TIMESTAMP,ContextTokens,GeneratedTokens\r\n"), "t.csv: found no rows");
  EXPECT_EQ(error_of("a,b\n1,2\n"),
            "t.csv: found the columns 'a,b', expected one called TIMESTAMP");
  EXPECT_EQ(error_of("TIMESTAMP,ContextTokens,contexttokens,GeneratedTokens\n"),
            "t.csv: column ContextTokens is there twice");
  const auto missing = read_azure_trace("/nonexistent/t.csv");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kEnvironment);
  EXPECT_THAT(missing.error().message, HasSubstr("/nonexistent/t.csv"));
}

TEST(AzureTrace, HostileBytesStayOnOneLineOfTheMessage) {
  const std::string message = error_of("\x1b[2J\x01\xFF" + std::string(1000, 'A') + ",b\n");
  EXPECT_LT(message.size(), 200u);
  for (const char c : message) EXPECT_GE(c, ' ');
}

TEST(AzureTrace, UnsortedRowsArePutInOrderAndCounted) {
  const auto trace = parse_azure_trace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "2023-11-16 18:15:02,1,1\n"
      "2023-11-16 18:15:05,2,2\n"
      "2023-11-16 18:15:01,3,3\n"
      "2023-11-16 18:15:05,4,4\n"
      "2023-11-16 18:15:04,5,5\n",
      "t.csv");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->moved_rows, 2);
  EXPECT_THAT(trace->rows,
              ElementsAre(TraceRow{0, 3, 3}, TraceRow{kSecond, 1, 1}, TraceRow{3 * kSecond, 5, 5},
                          TraceRow{4 * kSecond, 2, 2}, TraceRow{4 * kSecond, 4, 4}));
}

TEST(AzureTrace, DaysMonthsAndYearsRollOver) {
  const auto trace = parse_azure_trace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "2023-12-31 23:59:59.9999999,1,1\n"
      "2024-01-01 00:00:00.0000000,2,2\n"
      "2024-02-28 23:59:59.9999999,3,3\n"
      "2024-02-29 00:00:00.0000000,4,4\n"
      "2024-03-01 00:00:00.0000000,5,5\n",
      "t.csv");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->moved_rows, 0);
  EXPECT_EQ(trace->rows[1].t_ns, 100);
  EXPECT_EQ(trace->rows[3].t_ns - trace->rows[2].t_ns, 100);
  EXPECT_EQ(trace->rows[4].t_ns - trace->rows[3].t_ns, kDay);
  EXPECT_EQ(trace->rows[3].t_ns - trace->rows[1].t_ns, (31 + 28) * kDay);
}

TEST(AzureTrace, TheShippedSampleIsWhatItsSourceSays) {
  const auto trace = read_azure_trace(std::string(PRONY_SOURCE_DIR) +
                                      "/data/traces/azure-llm-2023-conv-sample.csv");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace->rows.size(), 2000u);
  EXPECT_EQ(trace->name, "azure-llm-2023-conv-sample");
  EXPECT_EQ(trace->moved_rows, 0);
  EXPECT_EQ(trace->rows.front(), (TraceRow{0, 2739, 97}));
  // 18:29:21.7598180 - 18:22:51.2853360
  EXPECT_EQ(trace->rows.back(), (TraceRow{390'474'482'000, 1186, 421}));
}

TEST(TokenColumn, ReadsOneColumnByName) {
  const std::string content = "a,num_prefill_tokens\n1,3772\n2,2015\n";
  const auto values = parse_token_column(content, "c.csv", "NUM_PREFILL_TOKENS");
  ASSERT_TRUE(values.ok());
  EXPECT_THAT(*values, ElementsAre(3772, 2015));
  EXPECT_EQ(parse_token_column(content, "c.csv", "b").error().message,
            "c.csv: found the columns 'a,num_prefill_tokens', expected one called b");
  EXPECT_EQ(parse_token_column("a\nx\n", "c.csv", "a").error().message,
            "c.csv:2: column a: found 'x', expected a positive integer");
  EXPECT_EQ(parse_token_column("a\n", "c.csv", "a").error().message, "c.csv: found no rows");
}

}  // namespace
}  // namespace prony::workload
