// Tests of verdicts: every metric of the grammar finds its number, and a number that is not there
// is neither kept nor broken.
#include "prony/record/slo_verdict.hpp"

#include <gtest/gtest.h>

namespace prony::record {
namespace {

Metrics metrics_with_distinct_values() {
  Metrics metrics;
  metrics.attempted = 10;
  metrics.completed = 8;
  metrics.failed = 2;
  metrics.goodput_fraction = 0.7;
  metrics.request_throughput = 5;
  metrics.output_throughput = 600;
  double next = 1;
  for (auto* stats : {&metrics.ttft_ms, &metrics.tpot_ms, &metrics.itl_ms, &metrics.icl_ms,
                      &metrics.e2e_ms, &metrics.ttft_intended_ms, &metrics.e2e_intended_ms}) {
    for (auto* value : {&stats->mean, &stats->min, &stats->max, &stats->p50, &stats->p75,
                        &stats->p90, &stats->p95, &stats->p99, &stats->p999, &stats->p9999}) {
      *value = next++;
    }
  }
  return metrics;
}

std::optional<double> value(std::string_view text, const Metrics& metrics) {
  return slo_value(core::parse_slo(text).value().terms[0], metrics);
}

TEST(SloVerdict, EveryTermFindsItsNumber) {
  const auto metrics = metrics_with_distinct_values();
  double next = 1;
  for (const char* metric :
       {"ttft", "tpot", "itl", "icl", "e2e", "ttft_intended", "e2e_intended"}) {
    for (const char* statistic :
         {"mean", "min", "max", "p50", "p75", "p90", "p95", "p99", "p999", "p9999"}) {
      EXPECT_EQ(value(std::string(metric) + "_" + statistic + "<=1ms", metrics), next++);
    }
  }
  EXPECT_EQ(value("goodput_fraction>=1", metrics), 0.7);
  EXPECT_EQ(value("error_rate<=1", metrics), 0.2);
  EXPECT_EQ(value("request_throughput>=1", metrics), 5);
  EXPECT_EQ(value("output_throughput>=1", metrics), 600);
}

TEST(SloVerdict, BrokenBeatsUndeterminedBeatsMet) {
  auto metrics = metrics_with_distinct_values();
  metrics.ttft_ms.p99.reset();
  const auto met = [&](std::string_view text) {
    return evaluate_slo(core::parse_slo(text).value(), metrics).met;
  };
  EXPECT_EQ(met("ttft_p50<=4ms,error_rate<=0.2"), true);
  EXPECT_EQ(met("ttft_p50<4ms,error_rate<=0.2"), false);
  EXPECT_EQ(met("ttft_p99<=4ms,error_rate<=0.2"), std::nullopt);
  EXPECT_EQ(met("ttft_p99<=4ms,error_rate<=0.1"), false);
  metrics.attempted = 0;
  EXPECT_EQ(met("error_rate<=0.5"), std::nullopt);
  EXPECT_EQ(evaluate_slo({}, metrics).met, true);
}

TEST(SloVerdict, SaysHowCertainItIsAndWhatIsMissing) {
  auto metrics = metrics_with_distinct_values();
  metrics.ttft_ms.n = 2000;
  metrics.ttft_ms.p999.reset();
  metrics.ttft_ms.ci95.p99 = {7, 9};
  metrics.ci95.error_rate = {0.1, 0.3};
  const auto term = [&](std::string_view text) {
    return evaluate_slo(core::parse_slo(text).value(), metrics).terms.at(0);
  };
  EXPECT_EQ(term("ttft_p999<=1s").samples_missing, 8000);  // E47: p99.9 needs 10,000
  EXPECT_EQ(term("ttft_p9999<=1s").samples_missing, 0);    // known here, whatever n
  EXPECT_EQ(term("ttft_p99<=1s").samples_missing, 0);
  EXPECT_EQ(term("ttft_p99<=10ms").certain, true);
  EXPECT_EQ(term("ttft_p99<=8.5ms").certain, false);  // met, but the interval reaches beyond
  EXPECT_EQ(term("ttft_p99<=8.5ms").met, true);
  EXPECT_EQ(term("ttft_p99<=5ms").certain, true);  // certainly broken
  EXPECT_EQ(term("ttft_p50<=5ms").certain, std::nullopt);
  EXPECT_EQ(term("error_rate<=0.25").certain, false);
  EXPECT_EQ(term("error_rate<=0.3").certain, true);
}

TEST(SloVerdict, Json) {
  auto metrics = metrics_with_distinct_values();
  metrics.tpot_ms.p99.reset();
  const auto verdict =
      evaluate_slo(core::parse_slo("ttft_p50<=500ms,tpot_p99<=50ms").value(), metrics);
  EXPECT_EQ(slo_verdict_to_json(verdict).dump(),
            R"({"text":"ttft_p50<=500ms,tpot_p99<=50ms","met":null,"terms":[)"
            R"({"text":"ttft_p50<=500ms","value":4.0,"met":true,"ci95":null,"certain":null,)"
            R"("samples_missing":0},)"
            R"({"text":"tpot_p99<=50ms","value":null,"met":null,"ci95":null,"certain":null,)"
            R"("samples_missing":1000}]})");
}

}  // namespace
}  // namespace prony::record
