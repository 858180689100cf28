#include "prony/report/format.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "prony/report/table.hpp"

namespace prony::report {
namespace {

TEST(Format, NumbersHaveAboutThreeDigits) {
  // The same cases as web/test/units.test.mjs: table and figure must not differ.
  EXPECT_EQ(format_number(0.0), "0");
  EXPECT_EQ(format_number(0.4123), "0.412");
  EXPECT_EQ(format_number(4.1234), "4.12");
  EXPECT_EQ(format_number(41.234), "41.2");
  EXPECT_EQ(format_number(412.3), "412");
  EXPECT_EQ(format_number(4123.4), "4,123");
  EXPECT_EQ(format_number(1234567.0), "1,234,567");
  EXPECT_EQ(format_number(99.96), "100");
  EXPECT_EQ(format_number(9.996), "10.0");
  EXPECT_EQ(format_number(0.99961), "1.00");
  EXPECT_EQ(format_number(-1234.6), "-1,235");
  EXPECT_EQ(format_number(-0.0001), "0.000");
  EXPECT_EQ(format_number(std::optional<double>()), kNone);
  EXPECT_EQ(format_number(std::numeric_limits<double>::infinity()), kNone);
}

TEST(Format, SettingsStayAsChosen) {
  EXPECT_EQ(format_setting(40), "40");
  EXPECT_EQ(format_setting(2.5), "2.5");
  EXPECT_EQ(format_setting(0.125), "0.125");
  EXPECT_EQ(format_setting(12000), "12,000");
  EXPECT_EQ(format_setting(1e-9), "1e-09");
}

TEST(Format, CountsSharesAndSizes) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(-1000), "-1,000");
  EXPECT_EQ(format_count(std::numeric_limits<int64_t>::min()), "-9,223,372,036,854,775,808");
  EXPECT_EQ(format_percent(0), "0 %");
  EXPECT_EQ(format_percent(1), "100 %");
  EXPECT_EQ(format_percent(0.125), "12.5 %");
  EXPECT_EQ(format_percent(0.9998), "99.98 %");
  EXPECT_EQ(format_percent(0.0002), "0.02 %");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(8331169792.0), "7.76 GiB");
}

TEST(Format, DurationsPickTheirUnit) {
  EXPECT_EQ(format_seconds(0.05), "50.0 ms");
  EXPECT_EQ(format_seconds(12.34), "12.3 s");
  EXPECT_EQ(format_seconds(245), "4 min 05 s");
  EXPECT_EQ(format_seconds(7300), "2 h 01 min");
}

TEST(Format, IntervalsHaveTheDigitsOfTheirValue) {
  EXPECT_EQ(interval_text({63.234, 70.26}, 66.3), "63.2 \xE2\x80\x93 70.3");
  EXPECT_EQ(interval_text({986.2, 1085.4}, 1037), "986 \xE2\x80\x93 1,085");
}

TEST(FactTable, FlattensJsonAndReadsUnits) {
  Html html;
  {
    FactTable table(html);
    table.add_json({{"stall_timeout_s", 30},
                    {"loop_busy_fraction", 0.125},
                    {"kv_cache_bytes", 2048},
                    {"tokens_per_s", 12.5},
                    {"limits", {{"max_num_seqs", 256}}},
                    {"sizes", {1, 2, 4}},
                    {"seed", 18446744073709551615ULL},
                    {"on", true},
                    {"loop_busy", {0.25, 0.5}},
                    {"issue_lag_ms", {{"n", 9}, {"p99", 0.25}}},
                    {"gpus", {{{"name", "A"}, {"memory_bytes", 1024}}, {{"name", "B"}}}},
                    {"nothing", nullptr},
                    {"text", ""}});
  }
  const std::string& out = html.str();
  const auto has = [&](const std::string& label, const std::string& value) {
    return out.find("<th scope=\"row\">" + label + "</th><td>" + value + "</td>") !=
           std::string::npos;
  };
  EXPECT_TRUE(has("stall timeout", "30 s")) << out;
  EXPECT_TRUE(has("loop busy", "12.5 %")) << out;
  EXPECT_TRUE(has("kv cache", "2.00 KiB")) << out;
  EXPECT_TRUE(has("tokens", "12.5 /s")) << out;
  EXPECT_TRUE(has("limits: max num seqs", "256")) << out;
  EXPECT_TRUE(has("sizes", "1, 2, 4")) << out;
  EXPECT_TRUE(has("seed", "18446744073709551615")) << out;
  EXPECT_TRUE(has("loop busy", "25 %, 50 %")) << out;
  EXPECT_TRUE(has("issue lag: n", "9")) << out;
  EXPECT_TRUE(has("issue lag: p99", "0.25 ms")) << out;
  EXPECT_TRUE(has("gpus 1: name", "A")) << out;
  EXPECT_TRUE(has("gpus 1: memory", "1.00 KiB")) << out;
  EXPECT_TRUE(has("gpus 2: name", "B")) << out;
  EXPECT_TRUE(has("on", "yes")) << out;
  EXPECT_EQ(out.find("nothing"), std::string::npos);  // what is not known is not shown
}

TEST(FactTable, BoundsWhatAForeignDocumentCanAdd) {
  core::Json wide = core::Json::object();
  for (int i = 0; i < 5000; ++i) wide["key" + std::to_string(i)] = i;
  core::Json deep = "end";
  for (int i = 0; i < 2000; ++i) deep = core::Json{{"k", deep}};
  Html html;
  {
    FactTable table(html);
    table.add_json(wide);
    table.add_json(deep);
  }
  EXPECT_LT(html.str().size(), 30'000U);
  EXPECT_NE(html.str().find("see record.json"), std::string::npos);
}

}  // namespace
}  // namespace prony::report
