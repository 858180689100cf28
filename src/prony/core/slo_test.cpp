// Tests of the SLO grammar: meaning, canonical text, and what each kind of mistake is told.
#include "prony/core/slo.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prony/core/rng.hpp"
#include "prony/core/slo_presets.hpp"

namespace prony::core {
namespace {

std::string slo_error(std::string_view text) {
  const auto slo = parse_slo(text);
  return slo ? "no error" : slo.error().message;
}
std::string goodput_error(std::string_view text) {
  const auto slo = parse_goodput(text);
  return slo ? "no error" : slo.error().message;
}

TEST(Slo, ReadsTermsAndUnits) {
  const auto slo = parse_slo("ttft_p99<=500ms, tpot_p99 < 0.05s ,itl_mean<=800us").value();
  ASSERT_EQ(slo.terms.size(), 3U);
  EXPECT_EQ(slo.terms[0],
            (SloTerm{SloMetric::kTtft, SloStatistic::kP99, SloComparison::kLessEqual, 500}));
  EXPECT_EQ(slo.terms[1],
            (SloTerm{SloMetric::kTpot, SloStatistic::kP99, SloComparison::kLess, 50}));
  EXPECT_DOUBLE_EQ(slo.terms[2].bound, 0.8);
}

TEST(Slo, ReadsEveryMetricAndAlias) {
  for (const char* text :
       {"ttft_p50<1ms", "tpot_p75<1ms", "itl_p90<1ms", "icl_p95<1ms", "e2e_p999<1ms",
        "ttft_intended_max<1ms", "e2e_intended_min<1ms", "goodput_fraction>=0.95",
        "error_rate<=0.01", "request_throughput>10", "output_throughput>=1000"}) {
    const auto slo = parse_slo(text);
    ASSERT_TRUE(slo.ok()) << slo.error().message;
    EXPECT_EQ(slo_text(*slo), text);
  }
  EXPECT_EQ(parse_slo("e2el_p99.9<=2s").value(), parse_slo("e2e_p999<=2000ms").value());
  EXPECT_EQ(parse_slo("ttft_median<=2s").value(), parse_slo("ttft_p50<=2s").value());
  EXPECT_EQ(parse_slo("goodput_fraction>=95%").value(),
            parse_slo("goodput_fraction>=0.95").value());
}

TEST(Slo, SaysWhatIsWrong) {
  EXPECT_EQ(slo_error("ttft_p42<=1ms"),
            "--slo: 'ttft_p42<=1ms': unknown statistic 'p42', expected mean, min, max, p50, p75, "
            "p90, p95, p99, p999 or p9999");
  EXPECT_EQ(
      slo_error("latency_p99<=1ms"),
      "--slo: 'latency_p99<=1ms': unknown metric 'latency_p99', expected ttft, tpot, itl, icl, "
      "e2e, ttft_intended, e2e_intended, goodput_fraction, error_rate, request_throughput or "
      "output_throughput");
  EXPECT_EQ(slo_error("ttft<=500ms"),
            "--slo: 'ttft<=500ms': ttft needs a statistic, expected ttft_p99 or one of mean, min, "
            "max, p50, p75, p90, p95, p99, p999 or p9999");
  EXPECT_EQ(slo_error("ttft_p99<=500"),
            "--slo: 'ttft_p99<=500': unit: found '', expected ms, s or us");
  EXPECT_EQ(slo_error("ttft_p99<=500min"),
            "--slo: 'ttft_p99<=500min': unit: found 'min', expected ms, s or us");
  EXPECT_EQ(slo_error("ttft_p99<=fast"),
            "--slo: 'ttft_p99<=fast': bound: found 'fast', expected a number");
  EXPECT_EQ(slo_error("ttft_p99<=-5ms"),
            "--slo: 'ttft_p99<=-5ms': bound: found -5, expected at least 0");
  EXPECT_EQ(slo_error("ttft_p99<=nanms"),
            "--slo: 'ttft_p99<=nanms': bound: found 'nanms', expected a number");
  EXPECT_EQ(slo_error("ttft_p99=500ms"),
            "--slo: 'ttft_p99=500ms': found '=', expected <, <=, > or >=");
  EXPECT_EQ(
      slo_error("ttft_p99"),
      "--slo: 'ttft_p99': no comparison found, expected <, <=, > or >= as in ttft_p99<=500ms");
  EXPECT_EQ(slo_error("ttft_p99<=1ms,,tpot_p99<=1ms"),
            "--slo: 'ttft_p99<=1ms,,tpot_p99<=1ms': empty term, expected one like ttft_p99<=500ms");
  EXPECT_EQ(slo_error(""), "--slo: '': empty term, expected one like ttft_p99<=500ms");
  EXPECT_EQ(slo_error("error_rate<=5"),
            "--slo: 'error_rate<=5': bound: found 5, expected a fraction from 0 to 1");
  EXPECT_EQ(slo_error("error_rate_p99<=0.5"),
            "--slo: 'error_rate_p99<=0.5': error_rate has no statistics, found 'p99'");
  EXPECT_EQ(
      slo_error("request_throughput>=5rps"),
      "--slo: 'request_throughput>=5rps': unit: found 'rps', expected none (it is per second)");
  EXPECT_EQ(parse_slo("x", "study.yaml:4").error().message.substr(0, 13), "study.yaml:4:");
}

TEST(Slo, TextAndParseAreInverse) {
  Rng rng(1);
  for (int i = 0; i < 5'000; ++i) {
    Slo slo;
    for (uint64_t n = 1 + rng.below(3); n > 0; --n) {
      SloTerm term;
      term.metric = static_cast<SloMetric>(rng.below(11));
      term.comparison = static_cast<SloComparison>(rng.below(4));
      term.bound = rng.uniform();
      if (slo_is_latency(term.metric)) {
        term.statistic = static_cast<SloStatistic>(1 + rng.below(9));
        term.bound *= 1e4;
      }
      slo.terms.push_back(term);
    }
    const auto read = parse_slo(slo_text(slo));
    ASSERT_TRUE(read.ok()) << read.error().message;
    ASSERT_EQ(*read, slo) << slo_text(slo);
  }
}

TEST(Slo, HoldsAtTheBoundOnlyIfEqualIsAllowed) {
  const auto holds = [](std::string_view text, double value) {
    return parse_slo(text).value().terms[0].holds(value);
  };
  EXPECT_TRUE(holds("ttft_p99<=500ms", 500));
  EXPECT_FALSE(holds("ttft_p99<500ms", 500));
  EXPECT_TRUE(holds("output_throughput>=10", 10));
  EXPECT_FALSE(holds("output_throughput>10", 10));
  EXPECT_FALSE(holds("ttft_p99<=500ms", 500.001));
}

TEST(Slo, NeverCrashesOnGarbage) {
  Rng rng(2);
  constexpr std::string_view kAlphabet = "tfpoie2_9<>=,.ms%u-+ \t\n:0\xff";
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (uint64_t n = rng.below(24); n > 0; --n) text += kAlphabet[rng.below(kAlphabet.size())];
    if (const auto slo = parse_slo(text); slo.ok()) {
      ASSERT_EQ(parse_slo(slo_text(*slo)).value(), *slo) << text;
    } else {
      for (const char c : slo.error().message) ASSERT_GE(static_cast<unsigned char>(c), 0x20);
    }
    if (const auto slo = parse_goodput(text); slo.ok()) {
      ASSERT_EQ(parse_goodput(goodput_text(*slo)).value(), *slo) << text;
    }
  }
}

TEST(Goodput, KnowsMlperfsConstraintsByName) {
  EXPECT_EQ(parse_goodput("mlperf:llama2-70b-interactive").value(),
            parse_goodput("ttft:450 tpot:40").value());
  EXPECT_EQ(parse_goodput("mlperf:llama2-70b-server e2e:60000").value(),
            parse_goodput("ttft:2000 tpot:200 e2e:60000").value());
  EXPECT_THAT(goodput_error("mlperf:llama9"), ::testing::HasSubstr("expected one of llama3.1-8b"));
  EXPECT_THAT(goodput_error("ttft:1 mlperf:llama2-70b-server"),
              ::testing::HasSubstr("given already"));
  for (const auto& preset : mlperf_slo_presets()) {
    EXPECT_LT(preset.tpot_ms, preset.ttft_ms) << preset.name;
    EXPECT_EQ(find_mlperf_slo(preset.name), &preset);
  }
}

TEST(Goodput, ReadsPiecesInEveryForm) {
  const auto slo = parse_goodput("ttft:200 tpot:50 e2el:5000").value();
  EXPECT_EQ(slo.ttft_ms, 200);
  EXPECT_EQ(slo.tpot_ms, 50);
  EXPECT_EQ(slo.e2e_ms, 5000);
  EXPECT_FALSE(slo.ttft_intended_ms.has_value());
  EXPECT_EQ(goodput_text(slo), "ttft:200 tpot:50 e2e:5000");
  const std::vector<std::string> pieces = {"ttft:200", "tpot:50,e2e:5000ms"};
  EXPECT_EQ(parse_goodput(pieces).value(), slo);
  EXPECT_EQ(parse_goodput("e2e_intended:7.5").value().e2e_intended_ms, 7.5);
}

TEST(Goodput, SaysWhatIsWrong) {
  EXPECT_EQ(goodput_error("ttft=200"),
            "--goodput: 'ttft=200': no colon found, expected METRIC:MILLISECONDS as in ttft:200");
  EXPECT_EQ(goodput_error("itl:20"),
            "--goodput: 'itl:20': unknown metric 'itl', expected ttft, tpot, e2el (or e2e), "
            "ttft_intended or e2e_intended");
  EXPECT_EQ(goodput_error("ttft:200 ttft:300"), "--goodput: 'ttft:300': ttft is given twice");
  EXPECT_EQ(goodput_error("ttft:2s"),
            "--goodput: 'ttft:2s': bound: found '2s', expected a number of milliseconds");
  EXPECT_EQ(goodput_error("ttft:0"), "--goodput: 'ttft:0': bound: found 0, expected more than 0");
  EXPECT_EQ(goodput_error("  "),
            "--goodput: '  ': nothing found, expected bounds like ttft:200 tpot:50");
}

}  // namespace
}  // namespace prony::core
