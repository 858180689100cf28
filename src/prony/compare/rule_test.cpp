#include "prony/compare/rule.hpp"

#include <gtest/gtest.h>

namespace prony::compare {
namespace {

using core::SloComparison;
using core::SloMetric;
using core::SloStatistic;

TEST(Rule, Reads) {
  const auto rules = parse_rules(
      " ttft_p99 > +5% , output_throughput<-3%,tpot_mean>=+0.5ms,error_rate>+1pp,"
      "e2el_median>+1s,goodput_fraction<=-2pp");
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  ASSERT_EQ(rules->size(), 6u);
  const Rule first{{SloMetric::kTtft, SloStatistic::kP99, SloComparison::kGreater, 5},
                   RuleUnit::kPercent};
  EXPECT_EQ((*rules)[0], first);
  EXPECT_EQ((*rules)[1].term.bound, -3);
  EXPECT_EQ((*rules)[2].unit, RuleUnit::kMilliseconds);
  EXPECT_EQ((*rules)[3].unit, RuleUnit::kPoints);
  EXPECT_EQ((*rules)[4].term.bound, 1000);
  EXPECT_EQ((*rules)[4].term.statistic, SloStatistic::kP50);
  for (const auto& rule : *rules) {
    const auto again = parse_rules(rule_text(rule));
    ASSERT_TRUE(again.ok()) << rule_text(rule);
    EXPECT_EQ((*again)[0], rule);
  }
}

TEST(Rule, RefusesInOneLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "empty term, expected one like ttft_p99>+5%"},
      {"ttft_p99>+5%,", "empty term"},
      {"ttft_p99", "no comparison found"},
      {"ttft_p99=5", "no comparison found"},
      {"ttft>+5%", "ttft needs a statistic"},
      {"ttft_p42>+5%", "unknown statistic 'p42'"},
      {"latency_p99>+5%", "unknown metric 'latency_p99'"},
      {"ttft_max>+5%", "a minimum or maximum has no interval"},
      {"ttft_p99>5%", "found '5%', expected a sign"},
      {"ttft_p99>+%", "expected a number behind the sign"},
      {"ttft_p99>+-5%", "expected a number behind the sign"},
      {"ttft_p99>+nan%", "expected a number behind the sign"},
      {"ttft_p99>+5", "unit: found '', expected %, ms, s or us"},
      {"ttft_p99>+5pp", "unit: found 'pp', expected %, ms, s or us"},
      {"error_rate>+1%", "unit: found '%', expected pp"},
      {"output_throughput<-3ms", "unit: found 'ms', expected %"},
      {"ttft_p99>+5\n!", "unit: found '!', expected %, ms, s or us"},
  };
  for (const auto& [text, message] : cases) {
    const auto rules = parse_rules(text);
    ASSERT_FALSE(rules.ok()) << text;
    EXPECT_EQ(rules.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(rules.error().message.find(message), std::string::npos)
        << text << ": " << rules.error().message;
    EXPECT_EQ(rules.error().message.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace prony::compare
