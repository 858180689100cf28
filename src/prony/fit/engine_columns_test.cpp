// The model `engine`: factors that a measured table hides are found again as far as its rows tell.
#include "prony/fit/engine_columns.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "prony/catalog/catalog.hpp"
#include "prony/catalog/engine_profile.hpp"
#include "prony/catalog/hardware_file.hpp"
#include "prony/fit/fit.hpp"
#include "prony/fit/roofline_columns.hpp"
#include "prony/perfmodel/serving.hpp"

namespace prony::fit {
namespace {

using testing::HasSubstr;

struct ServedRun {
  const char* model;
  int tp, input, output, clients;
};

perfmodel::ServingPrediction predicted(const ServedRun& run,
                                       const perfmodel::Calibration& factors) {
  perfmodel::Deployment d;
  d.model = catalog::load_model(run.model).value();
  d.hardware = catalog::resolve_hardware("h100-sxm").value();
  d.engine = catalog::resolve_engine("vllm").value();
  d.parallel.tp = run.tp;
  d.calibration = factors;
  return perfmodel::predict_serving(
             d,
             {.input_tokens = run.input, .output_tokens = run.output, .concurrency = run.clients})
      .value();
}

std::vector<ServedRun> runs(const char* model, bool one_rank) {
  std::vector<ServedRun> out;
  for (const int tp : {1, 2, 4}) {
    if (one_rank && tp > 1) continue;
    for (const int clients : {1, 8, 64}) out.push_back({model, tp, 512, 256, clients});
  }
  return out;
}

// A table of what `factors` would have been measured as.
std::string table(const std::vector<ServedRun>& rows, const perfmodel::Calibration& factors,
                  bool throughput = false) {
  std::string text = fmt::format("model_id,tp,input_len,output_len,concurrency,{}\n",
                                 throughput ? "output_throughput" : "tpot_ms");
  for (const ServedRun& run : rows) {
    const auto p = predicted(run, factors);
    text += fmt::format("{},{},{},{},{},{:.17g}\n", run.model, run.tp, run.input, run.output,
                        run.clients, throughput ? p.output_throughput : p.tpot_s * 1e3);
  }
  return text;
}

const EngineOptions kOptions{"h100-sxm", "vllm"};

Result<Fit> fitted(const std::string& text) {
  const auto data = Dataset::from_csv(text, "t.csv");
  if (!data) return data.error();
  const Model& model = **find_model("engine");
  RooflineOptions options;
  options.hardware = kOptions.hardware;
  options.engine = kOptions.engine;
  const auto sample = make_sample(model, *data, "", options);
  if (!sample) return sample.error();
  return fit(model, *sample, Residuals::kRelative);
}

TEST(EngineColumns, PartsAddUpToThePrediction) {
  const auto rows = runs("llama-3.1-8b", false);
  const auto data = Dataset::from_csv(table(rows, {}), "t.csv");
  const auto parts = engine_columns(*data, kOptions);
  ASSERT_TRUE(parts.ok()) << parts.error().message;
  for (size_t i = 0; i < rows.size(); ++i) {
    const double sum =
        parts->device_ms[i] + parts->link_ms[i] + parts->engine_ms[i] + parts->rest_ms[i];
    EXPECT_NEAR(sum, parts->time_ms[i], 1e-9 * sum) << "the table holds the prediction itself";
    EXPECT_GT(parts->device_ms[i], 0.2 * sum);
    EXPECT_GT(parts->engine_ms[i], 0);
    EXPECT_NEAR(parts->rest_ms[i], 0, 0.05 * sum);
    EXPECT_EQ(parts->link_ms[i] > 1e-6, rows[i].tp > 1);
  }
}

TEST(EngineModel, FindsWhatTheRowsHideAndPredictsAnotherModel) {
  const perfmodel::Calibration truth{.device = 1.25, .link = 1.1, .engine = 0.8};
  for (const bool throughput : {false, true}) {
    const auto found = fitted(table(runs("llama-3.1-8b", false), truth, throughput));
    ASSERT_TRUE(found.ok()) << found.error().message;
    const perfmodel::Calibration factors{found->parameters[0].value, found->parameters[1].value,
                                         found->parameters[2].value};
    EXPECT_NEAR(factors.device, truth.device, 0.06);
    EXPECT_LT(factors.engine, 1);
    // The model held out: the calibration leaves less than a third of the error.
    double before = 0, after = 0;
    for (const ServedRun& run : runs("qwen3-32b", false)) {
      const double measured = predicted(run, truth).tpot_s;
      before += std::abs(predicted(run, {}).tpot_s / measured - 1);
      after += std::abs(predicted(run, factors).tpot_s / measured - 1);
    }
    EXPECT_LT(after, before / 3) << "throughput " << throughput;
  }
}

TEST(EngineModel, APartThatNoRowHasKeepsItsFactor) {
  const auto found = fitted(table(runs("llama-3.1-8b", true), {.device = 1.2, .link = 3}));
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_NEAR(found->parameters[1].value, 1, 1e-6);
  EXPECT_FALSE(found->parameters[1].identified);
}

TEST(EngineModel, RowsThatAgreeWithThePredictionChangeNothing) {
  const auto found = fitted(table(runs("llama-3.1-8b", false), {}));
  for (const Estimate& each : found->parameters) EXPECT_NEAR(each.value, 1, 1e-6);
}

TEST(EngineColumns, RefusesTablesThatCannotBe) {
  const auto refusal = [](const std::string& text, EngineOptions options = kOptions) {
    const auto data = Dataset::from_csv(text, "t.csv");
    const auto parts = engine_columns(data.value(), options);
    EXPECT_FALSE(parts.ok());
    return parts.ok() ? std::string() : parts.error().message;
  };
  const std::string head = "model_id,tp,input_len,output_len,concurrency,tpot_ms\n";
  EXPECT_THAT(refusal(head + "llama-3.1-8b,1,512,256,8,7\n", {"", "vllm"}),
              HasSubstr("--hardware"));
  EXPECT_THAT(refusal(head + "llama-3.1-8b,1,512,256,8,7\n", {"h100-sxm", ""}),
              HasSubstr("--engine"));
  EXPECT_THAT(refusal(head + "llama-9,1,512,256,8,7\n"), HasSubstr("llama-9"));
  EXPECT_THAT(refusal(head + "llama-3.1-8b,0,512,256,8,7\n"), HasSubstr("column tp: found 0"));
  EXPECT_THAT(refusal(head + "llama-3.1-8b,1,512,1,8,7\n"), HasSubstr("output_len: found 1"));
  EXPECT_THAT(refusal(head + "llama-3.1-8b,3,512,256,8,7\n"), HasSubstr("row 1: --tp: found 3"));
  EXPECT_THAT(refusal(head + "llama-3.1-70b,1,512,256,8,7\n"), HasSubstr("row 1: llama-3.1-70b"));
  EXPECT_THAT(refusal("model_id,input_len,output_len,concurrency,x\nllama-3.1-8b,1,2,1,1\n"),
              HasSubstr("output_throughput"));
}

}  // namespace
}  // namespace prony::fit
