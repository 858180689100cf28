#include "prony/fit/fit.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "prony/core/rng.hpp"
#include "prony/fit/render.hpp"

namespace prony::fit {
namespace {

const Model& model(std::string_view name) {
  return *find_model(name).value();
}

Sample sample_of(const Model& form, const std::vector<std::vector<double>>& x,
                 std::span<const double> p, double noise, uint64_t seed) {
  core::Rng rng(seed);
  Sample out;
  out.x = Matrix(x.size(), form.inputs.size());
  for (size_t row = 0; row < x.size(); ++row) {
    std::copy(x[row].begin(), x[row].end(), out.x.row(row).begin());
    const double value = form.value(out.x.row(row), p);
    const double factor = form.residuals == Residuals::kRelative ? value : 1;
    out.y.push_back(value + noise * factor * rng.normal());
  }
  return out;
}

std::vector<std::vector<double>> grid(std::string_view name) {
  std::vector<std::vector<double>> out;
  if (name == "surface") {
    for (const double b : {1., 2., 4., 8., 16., 32., 64.}) {
      for (const double l : {32., 128., 512., 2048.}) out.push_back({b, l});
    }
  } else if (name == "step") {
    for (const double roof : {2., 5., 10., 20.}) {
      for (const double layers : {16., 32., 80.}) out.push_back({roof, layers});
    }
  } else {
    for (int i = 0; i < 24; ++i) {
      out.push_back({name == "knee" ? 10.0 * i : 512 * std::pow(1.25, i)});
    }
  }
  return out;
}

std::vector<double> truth(std::string_view name) {
  if (name == "surface") return {0.001, 0.02, 0.015, 5};
  if (name == "power") return {8.2e-5, 1.42, 4.8};
  if (name == "alpha-beta") return {15.2, 25000};
  if (name == "knee") return {100, 4, -1, 130};
  return {0.65, 0.01, 2};
}

class EveryModel : public testing::TestWithParam<const char*> {};

TEST_P(EveryModel, GradientIsTheLimitOfDifferences) {
  const auto& form = model(GetParam());
  const auto p = truth(GetParam());
  for (const auto& x : grid(GetParam())) {
    std::vector<double> slope(p.size());
    form.gradient(x, p, slope);
    for (size_t i = 0; i < p.size(); ++i) {
      auto low = p, high = p;
      const double step = 1e-6 * std::abs(p[i]);
      low[i] -= step;
      high[i] += step;
      const double expected = (form.value(x, high) - form.value(x, low)) / (2 * step);
      if (form.name == "knee" && std::abs(x[0] - p[3]) < 1) continue;  // the corner
      EXPECT_NEAR(slope[i], expected, 1e-5 * std::abs(expected) + 1e-7) << i;
    }
  }
}

TEST_P(EveryModel, FindsTheTruthWithoutNoise) {
  const auto& form = model(GetParam());
  const auto p = truth(GetParam());
  const auto result = fit(form, sample_of(form, grid(GetParam()), p, 0, 1), form.residuals);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_TRUE(result->converged);
  for (size_t i = 0; i < p.size(); ++i) {
    EXPECT_NEAR(result->parameters[i].value, p[i], 1e-6 * std::abs(p[i]))
        << form.parameters[i].name;
  }
  EXPECT_LT(result->mape, 1e-8);
}

// The 95 % intervals hold the truth about 95 times in 100, and the standard error is the spread of
// the estimates.
TEST_P(EveryModel, IntervalsCoverTheTruth) {
  const auto& form = model(GetParam());
  const auto p = truth(GetParam());
  const double noise = form.residuals == Residuals::kRelative ? 0.01 : 3;
  constexpr int kRounds = 100;
  std::vector<int> covered(p.size());
  for (int round = 0; round < kRounds; ++round) {
    const auto sample =
        sample_of(form, grid(GetParam()), p, noise, 100 + static_cast<uint64_t>(round));
    const auto result = fit(form, sample, form.residuals);
    ASSERT_TRUE(result.ok()) << result.error().message;
    for (size_t i = 0; i < p.size(); ++i) {
      covered[i] += *result->parameters[i].low95 <= p[i] && p[i] <= *result->parameters[i].high95;
    }
  }
  // Binomial sd is 2.2 %; five of them. More than 99 is possible by chance, less than 84 is not.
  for (size_t i = 0; i < p.size(); ++i) {
    EXPECT_GE(covered[i], 84) << form.parameters[i].name;
    EXPECT_LE(covered[i], 100) << form.parameters[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryModel,
                         testing::Values("surface", "power", "alpha-beta", "knee", "step"));

// A straight line by hand: t = 10 + x / 2 with residuals +1, -1, -1, +1.
TEST(Fit, StandardErrorsOfALineByHand) {
  const auto& form = model("alpha-beta");
  Sample sample;
  sample.x = Matrix(4, 1);
  const double x[] = {0, 2, 4, 6}, noise[] = {1, -1, -1, 1};
  for (size_t i = 0; i < 4; ++i) {
    sample.x.at(i, 0) = x[i];
    sample.y.push_back(10 + x[i] / 2 + noise[i]);
  }
  const auto result = fit(form, sample, Residuals::kAbsolute).value();
  EXPECT_NEAR(result.parameters[0].value, 10, 1e-9);
  EXPECT_NEAR(result.parameters[1].value, 2, 1e-9);
  // s^2 = 4/2; var(alpha) = s^2 (1/4 + 9/20); var(slope) = s^2/20, bandwidth = 1/slope.
  EXPECT_NEAR(*result.parameters[0].standard_error, std::sqrt(2 * 0.7), 1e-9);
  EXPECT_NEAR(*result.parameters[1].standard_error, 4 * std::sqrt(2.0 / 20), 1e-9);
  const auto middle = predict(result, std::vector<double>{3}, Residuals::kAbsolute);
  EXPECT_NEAR(*middle.confidence95, 4.30265273 * std::sqrt(2.0 / 4), 1e-6);
  EXPECT_NEAR(*middle.prediction95, 4.30265273 * std::sqrt(2.0 / 4 + 2), 1e-6);
}

// Four points of a published surface (tokens/ms) and four parameters: the exact solution has a
// negative gamma, so the published parameters (0.001, 0.02, 0.015, 5) cannot have given the table.
TEST(Fit, PublishedSurfaceDoesNotFollowFromItsTable) {
  const auto& form = model("surface");
  Sample sample;
  const double rows[4][3] = {{16, 256, 1.84}, {32, 512, 2.95}, {64, 1024, 2.71}, {128, 1024, 2.13}};
  sample.x = Matrix(4, 2);
  for (size_t i = 0; i < 4; ++i) {
    sample.x.at(i, 0) = rows[i][0];
    sample.x.at(i, 1) = rows[i][1];
    sample.y.push_back(rows[i][2]);
  }
  const auto result = fit(form, sample, Residuals::kRelative).value();
  EXPECT_LT(result.mape, 1e-9);
  EXPECT_NEAR(result.parameters[2].value, -15.7, 0.1);
  EXPECT_FALSE(result.parameters[0].standard_error);
  const auto statements = identifiability(result);
  ASSERT_FALSE(statements.empty());
  EXPECT_NE(statements[0].find("4 rows for 4 parameters"), std::string::npos);
  const std::vector<double> x = {16, 256}, p = {0.001, 0.02, 0.015, 5};
  EXPECT_NEAR(form.value(x, p), 309, 1);  // the table has 1.84
}

TEST(Fit, OneBatchCannotTellBetaFromDelta) {
  const auto& form = model("surface");
  std::vector<std::vector<double>> x;
  for (const double l : {32., 64., 128., 256., 512., 1024., 2048.}) x.push_back({8, l});
  const auto result = fit(form, sample_of(form, x, truth("surface"), 0.001, 5), form.residuals);
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->parameters[1].identified);
  EXPECT_FALSE(result->parameters[3].identified);
  EXPECT_FALSE(result->parameters[1].standard_error);
  bool said = false;
  for (const auto& statement : identifiability(*result)) {
    said = said || (statement.find("beta and delta") != std::string::npos &&
                    statement.find("cannot tell them apart") != std::string::npos);
  }
  EXPECT_TRUE(said) << fit_table(*result, form.residuals);
  EXPECT_TRUE(std::isfinite(result->mape));
}

TEST(Fit, LeavesWholeGroupsOut) {
  const auto& form = model("alpha-beta");
  Sample sample;
  sample.x = Matrix(9, 1);
  for (size_t i = 0; i < 9; ++i) {
    sample.x.at(i, 0) = static_cast<double>(i % 3 + 1);
    const double factor = i < 6 ? 1 : 2;  // the third system is twice as slow
    sample.y.push_back(factor * (1 + sample.x.at(i, 0)));
    sample.groups.push_back(i < 3 ? "a" : i < 6 ? "b" : "c");
  }
  const auto result = fit(form, sample, Residuals::kRelative).value();
  ASSERT_EQ(result.cross_validation.folds.size(), 3u);
  // Fitted on a and b alone, c is predicted at half.
  EXPECT_NEAR(result.cross_validation.folds[2].mape, 0.5, 1e-9);
  EXPECT_NEAR(result.cross_validation.folds[2].bias, -0.5, 1e-9);
  EXPECT_GT(*result.cross_validation.mape, result.mape);
}

TEST(Fit, SaysWhyThereIsNoCrossValidation) {
  const auto& form = model("alpha-beta");
  auto sample = sample_of(form, {{1}, {2}, {3}}, truth("alpha-beta"), 0.01, 1);
  EXPECT_NE(fit(form, sample, form.residuals)->cross_validation.reason.find("--group"),
            std::string::npos);
  sample.groups = {"a", "a", "a"};
  EXPECT_NE(fit(form, sample, form.residuals)->cross_validation.reason.find("one group"),
            std::string::npos);
  sample.groups = {"a", "a", "b"};
  EXPECT_NE(fit(form, sample, form.residuals)->cross_validation.reason.find("without group a"),
            std::string::npos);
}

TEST(Fit, AStraightLineHasNoKnee) {
  const auto& form = model("knee");
  int supported = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const std::vector<double> straight = {100, 4, 4, 130};
    const auto sample = sample_of(form, grid("knee"), straight, 3, seed);
    const auto result = fit(form, sample, form.residuals);
    ASSERT_TRUE(result.ok());
    supported += *result->knee_evidence > kKneeEvidence;
  }
  EXPECT_LE(supported, 4);
  const auto bent = fit(form, sample_of(form, grid("knee"), truth("knee"), 3, 1), form.residuals);
  EXPECT_GT(*bent->knee_evidence, 50);
}

TEST(Fit, RefusesWhatItCannotFit) {
  const auto& form = model("power");
  auto sample = sample_of(form, {{1}, {2}}, truth("power"), 0, 1);
  EXPECT_EQ(fit(form, sample, form.residuals).error().message,
            "2 rows, expected at least the 3 parameters of power");
  sample = sample_of(form, grid("power"), truth("power"), 0, 1);
  sample.y[4] = -1;
  EXPECT_NE(fit(form, sample, form.residuals).error().message.find("row 5: latency_ms is -1"),
            std::string::npos);
  sample.y[4] = std::nan("");
  EXPECT_FALSE(fit(form, sample, form.residuals).ok());
  EXPECT_FALSE(find_model("cubic").ok());
}

TEST(Render, JsonAndTableSayTheSame) {
  const auto& form = model("surface");
  auto sample = sample_of(form, grid("surface"), truth("surface"), 0.01, 2);
  for (size_t i = 0; i < sample.y.size(); ++i) sample.groups.push_back(i % 2 ? "m1" : "m2");
  const auto result = fit(form, sample, form.residuals).value();
  const auto json = fit_json(result, form.residuals);
  EXPECT_EQ(json["schema"], "prony.fit/1");
  EXPECT_EQ(json["parameters"].size(), 4u);
  EXPECT_EQ(json["points"].size(), sample.y.size());
  EXPECT_TRUE(core::write_json(json).ok());
  EXPECT_EQ(json["cross_validation"]["folds"].size(), 2u);
  EXPECT_NE(fit_table(result, form.residuals).find("error on groups left out"), std::string::npos);
  EXPECT_NE(residual_plot(result).find('*'), std::string::npos);
}

}  // namespace
}  // namespace prony::fit
