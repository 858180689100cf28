#include "prony/cost/rates.hpp"

#include <gtest/gtest.h>

#include "prony/record/sample_record.hpp"

namespace prony::cost {
namespace {

std::string written(const record::Record& record) {
  const std::string path = testing::TempDir() + "/prony_cost_record.json";
  EXPECT_TRUE(record::write_record(path, record).ok());
  return path;
}

TEST(Rates, ComeFromARecord) {
  auto record = record::sample_record();
  std::string source;
  const auto rates = rates_from({}, written(record), source);
  ASSERT_TRUE(rates.ok()) << rates.error().message;
  EXPECT_EQ(rates->gpus, 1);  // details say tp 1
  EXPECT_EQ(rates->output, record.metrics.output_throughput);
  EXPECT_NE(source.find("measured"), std::string::npos);
}

TEST(Rates, AGivenNumberWins) {
  GivenRates given;
  given.gpus = 4;
  given.output = 123;
  std::string source;
  const auto rates = rates_from(given, written(record::sample_record()), source);
  EXPECT_EQ(rates->gpus, 4);
  EXPECT_EQ(rates->output, 123);
}

TEST(Rates, APredictionWithoutGpusIsRefused) {
  std::string source;
  const auto path = written(record::sample_prediction());
  const auto rates = rates_from({}, path, source);
  ASSERT_FALSE(rates.ok());
  EXPECT_NE(rates.error().message.find("expected --gpus"), std::string::npos);
  EXPECT_TRUE(rates_from({.gpus = 2}, path, source).ok());
}

TEST(Rates, GpusAreTheProductOfParallelSizes) {
  EXPECT_EQ(gpus_of(core::Json::parse(R"({"tp": 4, "pp": 2})")), 8);
  EXPECT_EQ(gpus_of(core::Json::parse(R"({"tp": 4, "replicas": 3})")), 12);
  EXPECT_EQ(gpus_of(core::Json::parse(R"({"tp": 4, "gpus": 5})")), 5);
  EXPECT_FALSE(gpus_of(core::Json::parse(R"({"dtype": "fp8", "tp": "4"})")));
}

TEST(Rates, FlagsAloneNeedNoRecord) {
  std::string source;
  GivenRates given;
  given.input = 30;
  given.output = 10;
  EXPECT_EQ(rates_from(given, "", source)->total, 40);
  EXPECT_EQ(source, "given by flags");
  EXPECT_TRUE(rates_from({}, "", source).ok());
  EXPECT_EQ(source, "");
  given.output = 0;
  EXPECT_EQ(rates_from(given, "", source).error().message,
            "--output-throughput: found 0, expected more than 0");
}

}  // namespace
}  // namespace prony::cost
