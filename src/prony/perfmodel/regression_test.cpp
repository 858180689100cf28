// Gate: a sample of public measurements, with the errors that the model had when it was accepted.
// validation/README.md says where the rows are from; the whole tables are compared by
// validation/validate.py. A change that makes a class worse than its gate must be argued there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "prony/catalog/catalog.hpp"
#include "prony/catalog/hardware_file.hpp"
#include "prony/core/clock.hpp"
#include "prony/core/file.hpp"
#include "prony/perfmodel/error_band.hpp"
#include "prony/perfmodel/serving.hpp"

namespace prony::perfmodel {
namespace {

struct SampleRow {
  std::string name, kind;  // class and "dense" or "moe"
  Deployment deployment;
  ServingLoad load;
  std::string metric;
  double measured = 0;
};

double number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  EXPECT_TRUE(error == std::errc() && end == text.data() + text.size()) << text;
  return value;
}

std::vector<SampleRow> sample() {
  const auto text = core::read_file(std::string(PRONY_SOURCE_DIR) + "/validation/sample.csv");
  std::istringstream lines(text.value());
  std::string line;
  std::getline(lines, line);
  std::vector<SampleRow> rows;
  while (std::getline(lines, line)) {
    std::vector<std::string> cells;
    std::istringstream cut(line);
    for (std::string cell; std::getline(cut, cell, ',');) cells.push_back(cell);
    EXPECT_EQ(cells.size(), 13U) << line;
    SampleRow row;
    row.name = cells[0];
    row.kind = cells[1];
    row.deployment.engine = catalog::resolve_engine(cells[2]).value();
    row.deployment.hardware = catalog::resolve_hardware(cells[3]).value();
    row.deployment.model = catalog::load_model(cells[4]).value();
    row.deployment.parallel.tp = static_cast<int32_t>(number(cells[5]));
    row.deployment.parallel.pp = static_cast<int32_t>(number(cells[6]));
    row.deployment.weights = parse_weight_dtype(cells[7]).value();
    row.deployment.kv =
        automatic_kv(row.deployment.engine, row.deployment.model, row.deployment.weights);
    row.load.input_tokens = static_cast<int32_t>(number(cells[8]));
    row.load.output_tokens = static_cast<int32_t>(number(cells[9]));
    row.load.concurrency = number(cells[10]);
    row.load.static_batch = row.name == "static";
    if (row.name == "throughput") row.load.requests = 3000;
    if (row.name == "mlperf") row.load.requests = 24576;
    row.metric = cells[11];
    row.measured = number(cells[12]);
    rows.push_back(std::move(row));
  }
  return rows;
}

TEST(Regression, ErrorsOnThePublicSampleStayWithinTheirGates) {
  // Mean absolute relative error, with a little room for later changes of constants.
  const std::map<std::string, double> gates = {{"serving dense", 0.12},  {"throughput dense", 0.22},
                                               {"throughput moe", 0.26}, {"mlperf dense", 0.12},
                                               {"mlperf moe", 0.20},     {"static dense", 0.20}};
  std::map<std::string, std::vector<double>> errors;
  for (const SampleRow& row : sample()) {
    const auto p = predict_serving(row.deployment, row.load);
    ASSERT_TRUE(p.ok()) << p.error().message;
    const double predicted = row.metric == "tpot_ms" ? p->tpot_s * 1e3 : p->output_throughput;
    errors[row.name + " " + row.kind].push_back(std::abs(predicted / row.measured - 1));
  }
  for (const auto& [name, gate] : gates) {
    ASSERT_GE(errors[name].size(), 4U) << name;
    double sum = 0;
    for (const double error : errors[name]) sum += error;
    const double mape = sum / static_cast<double>(errors[name].size());
    EXPECT_LE(mape, gate) << name;
    EXPECT_GT(mape, gate / 10) << name << ": too good to be true, is the sample still read?";
  }
}

TEST(Regression, EveryAnswerHasAnErrorBand) {
  for (const SampleRow& row : sample()) {
    const ErrorBand band = error_band(row.deployment, row.load);
    EXPECT_GT(band.rows, 0) << row.name;
    EXPECT_TRUE(band.tpot.known() || band.throughput.known()) << row.name;
  }
}

// Not a benchmark: an upper bound that holds on a crowded machine too (targets: 20 us, 10 ms).
TEST(Regression, AStepAndAPredictionAreCheap) {
  const SampleRow row = sample().front();
  StepCoster coster(row.deployment);
  StepShape shape;
  shape.add({.context = 0, .new_tokens = 512});
  shape.add({.context = 1000, .new_tokens = 1}, 64);
  coster.seconds(shape);
  const core::Nanos begin = core::monotonic_ns();
  for (int i = 0; i < 100; ++i) coster.seconds(shape);
  EXPECT_LT((core::monotonic_ns() - begin) / 100, 400'000);
  const core::Nanos start = core::monotonic_ns();
  ASSERT_TRUE(predict_serving(row.deployment, row.load).ok());
  EXPECT_LT(core::monotonic_ns() - start, 200'000'000);
}

}  // namespace
}  // namespace prony::perfmodel
