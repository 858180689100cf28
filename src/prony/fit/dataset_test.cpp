#include "prony/fit/dataset.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "prony/core/file.hpp"
#include "prony/fit/calibration.hpp"
#include "prony/fit/decay.hpp"
#include "prony/fit/render.hpp"
#include "prony/fit/roofline_columns.hpp"
#include "prony/record/sample_record.hpp"

namespace prony::fit {
namespace {

TEST(Dataset, ReadsCsv) {
  const auto data =
      Dataset::from_csv("\xEF\xBB\xBF model , x\r\n\"a, \"\"b\"\"\", 1.5 \n\nc,-2e3\n", "d.csv");
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ(data->columns(), (std::vector<std::string>{"model", "x"}));
  EXPECT_EQ(data->words("model").value(), (std::vector<std::string>{"a, \"b\"", "c"}));
  EXPECT_EQ(data->numbers("x").value(), (std::vector<double>{1.5, -2000}));
}

TEST(Dataset, RefusesByLineAndColumn) {
  const struct {
    const char *text, *message;
  } kCases[] = {
      {"", "d.csv: no rows"},
      {"a,b\n", "d.csv: no rows"},
      {"a,a\n1,2\n", "d.csv:1: column 'a' is there twice"},
      {"a,b\n1\n", "d.csv:2: found 1 fields, expected 2"},
      {"a,b\n1,\"2\n", "d.csv:2: a quote is left open"},
  };
  for (const auto& bad : kCases) {
    const auto data = Dataset::from_csv(bad.text, "d.csv");
    ASSERT_FALSE(data.ok());
    EXPECT_NE(data.error().message.find(bad.message), std::string::npos) << data.error().message;
  }
  const auto data = Dataset::from_csv("a,b\n1,x\n2,nan\n3,inf\n", "d.csv").value();
  EXPECT_EQ(data.numbers("b").error().message, "d.csv:2: column b: found 'x', expected a number");
  EXPECT_NE(data.numbers("c").error().message.find("found a, b"), std::string::npos);
  for (const char* text : {"nan", "inf", "1 2", ""}) {
    EXPECT_FALSE(Dataset::from_csv(std::string("a,b\n1,") + text + "\n", "d")->numbers("b").ok());
  }
}

TEST(Dataset, AliasAndKeep) {
  auto data = Dataset::from_csv("m,Batch Size\na,1\nb,2\na,3\n", "d.csv").value();
  ASSERT_TRUE(data.alias("Batch Size", "batch").ok());
  ASSERT_TRUE(data.keep("m", "a").ok());
  EXPECT_EQ(data.numbers("batch").value(), (std::vector<double>{1, 3}));
  EXPECT_FALSE(data.alias("nothing", "x").ok());
  EXPECT_FALSE(data.keep("m", "z").ok());
}

TEST(Dataset, ReadsRecordsAndJoinsFiles) {
  const std::string folder = testing::TempDir();
  std::vector<std::string> paths;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    paths.push_back(folder + "/prony_fit_" + std::to_string(seed) + ".json");
    ASSERT_TRUE(record::write_record(paths.back(), record::sample_record(seed)).ok());
  }
  const auto data = Dataset::read(paths);
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ(data->rows(), 3u);
  EXPECT_EQ(data->numbers("tp").value(), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(data->numbers("ttft_ms").value()[1], *record::sample_record(2).metrics.ttft_ms.mean);
  EXPECT_FALSE(Dataset::read({folder + "/prony_no_such_file"}).ok());
}

TEST(Decay, BandsByHand) {
  const std::vector<std::string> loads = {"disk", "rdma", "disk", "rdma", "cpu"};
  const std::vector<double> base(5, 100), observed = {79, 92, 79, 92, 40};
  const auto bands = decay_bands(loads, base, observed).value();
  ASSERT_EQ(bands.size(), 3u);
  EXPECT_EQ(bands[0].band, "medium");
  EXPECT_NEAR(bands[0].mean, 0.21, 1e-12);
  EXPECT_TRUE(bands[0].certain);
  EXPECT_EQ(bands[1].band, "light");
  EXPECT_EQ(bands[2].band, "heavy");
  EXPECT_FALSE(bands[2].sd);
  EXPECT_FALSE(bands[2].certain);
  const auto spread = decay_bands(std::vector<std::string>(4, "disk"), std::vector<double>(4, 100),
                                  std::vector<double>{90, 80, 90, 80})
                          .value();
  EXPECT_NEAR(*spread[0].sd, std::sqrt(1.0 / 300), 1e-12);
  EXPECT_FALSE(spread[0].certain);  // 0.15 is inside the interval
  EXPECT_FALSE(decay_bands(loads, std::vector<double>(5, 0), observed).ok());
}

TEST(Decay, KneeByRule) {
  const std::vector<double> rate = {10, 20, 30, 24, 12}, use = {0.5, 0.8, 0.91, 0.93, 0.95};
  EXPECT_EQ(knee_by_rule(rate, use), 2u);
  EXPECT_FALSE(knee_by_rule(rate, std::vector<double>(5, 0.9)));
  EXPECT_FALSE(knee_by_rule(std::vector<double>{10, 20, 30, 27, 24}, use));
}

TEST(Decay, RuleSortsTheSweep) {
  Sample sample;
  sample.x = Matrix(4, 1);
  const double x[] = {32, 8, 64, 16}, y[] = {30, 10, 20, 20}, used[] = {0.9, 0.5, 0.95, 0.8};
  for (size_t i = 0; i < 4; ++i) {
    sample.x.at(i, 0) = x[i];
    sample.y.push_back(y[i]);
  }
  EXPECT_EQ(rule_knee(sample, used).x, 32);
  sample.y[2] = 29;
  EXPECT_FALSE(rule_knee(sample, used).x);
}

TEST(Calibration, ReadsBackWhatItWrote) {
  Calibration out{"alpha-beta", "h100-sxm", "vllm", "sweep \"one\".csv", 24, 0.0731, {}};
  out.parameters = {{"alpha", "us", 15.2000000000001, 0.3}, {"bandwidth", "B/us", 25000, {}}};
  const auto back = parse_calibration(calibration_text(out), "c.yaml");
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(calibration_text(*back), calibration_text(out));
  EXPECT_EQ(back->parameters[0].value, 15.2000000000001);
  EXPECT_EQ(back->ref, out.ref);
  EXPECT_FALSE(back->parameters[1].standard_error);
}

TEST(Calibration, RefusesByLine) {
  Calibration out{"power", "", "", "d", 9, {}, {}};
  out.parameters = {{"a", "ms", 1, {}}, {"b", "1", 1, {}}, {"c", "ms", 1, {}}};
  const std::string text = calibration_text(out);
  const auto with = [&text](std::string from, const std::string& to) {
    std::string copy = text;
    return copy.replace(copy.find(from), from.size(), to);
  };
  for (const auto& bad : {with("model: power", "model: cubic"), with("  b:", "  beta:"),
                          with("unit: \"1\"", "unit: s"), with("rows: 9", "rows: 9\ncolour: red"),
                          with("prony.calibration/1", "prony.calibration/2"),
                          with("value: 1", "value: .nan"), with("ref: data", "ref: other")}) {
    const auto read = parse_calibration(bad, "c.yaml");
    ASSERT_FALSE(read.ok()) << bad;
    EXPECT_EQ(read.error().message.find("c.yaml:"), 0u) << read.error().message;
  }
}

// Llama-3.1-8B at batch 1: 16 GB of weights over 3.35 TB/s is 4.8 ms; half on two devices.
TEST(Roofline, DecodeOfASmallBatchIsItsWeights) {
  RooflineOptions options;
  options.hardware = "h100-sxm";
  const auto one = roofline_step("llama-3.1-8b", options, 1, 128, 1);
  if (!one.ok()) GTEST_SKIP() << one.error().message;
  EXPECT_NEAR(one->roof_ms, 4.5, 0.3);  // the embedding is gathered, not read
  EXPECT_EQ(one->layers, 32);
  const auto two = roofline_step("llama-3.1-8b", options, 1, 128, 2);
  EXPECT_NEAR(two->roof_ms, one->roof_ms / 2, 1e-9);
  options.weight_bytes = 1;
  EXPECT_LT(roofline_step("llama-3.1-8b", options, 1, 128, 1)->roof_ms, 0.6 * one->roof_ms);
  EXPECT_FALSE(roofline_step("no-such-model", options, 1, 1, 1).ok());
}

}  // namespace
}  // namespace prony::fit
