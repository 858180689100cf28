#include "prony/cost/model.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "prony/core/rng.hpp"
#include "prony/cost/render.hpp"

namespace prony::cost {
namespace {

Inputs owned() {
  Inputs out;
  out[Field::kCapexUsd] = 15000;
  out[Field::kLifeYears] = 3;
  out[Field::kInterestRate] = 0.08;
  out[Field::kTdpW] = 400;
  out[Field::kPue] = 1.42;
  out[Field::kTariffUsdPerKwh] = 0.12;
  out[Field::kOperationsUsdYear] = 1500;
  return out;
}

// Present value of the payments and of the residual must give back the price.
TEST(Annuity, RepaysThePriceExactly) {
  for (const double rate : {0.0, 1e-9, 1e-6, 9.9e-7, 0.03, 0.08, 0.5}) {
    for (const int years : {1, 3, 4, 10}) {
      const double payment = annuity(1000, 250, rate, years);
      double present = 250 / std::pow(1 + rate, years);
      for (int year = 1; year <= years; ++year) present += payment / std::pow(1 + rate, year);
      EXPECT_NEAR(present, 1000, 1e-8) << rate << " " << years;
    }
  }
}

TEST(Annuity, ZeroRateIsStraightLine) {
  EXPECT_DOUBLE_EQ(annuity(1000, 200, 0, 4), 200);
}

TEST(Hourly, SumsItsParts) {
  Inputs inputs = owned();
  inputs[Field::kHostUsd] = 3000;
  inputs[Field::kNetworkFraction] = 0.12;
  inputs[Field::kResidualFraction] = 0.3;
  inputs[Field::kIdleW] = 80;
  inputs[Field::kHostW] = 120;
  inputs[Field::kLoadFraction] = 0.5;
  inputs[Field::kColoUsdPerKwMonth] = 200;
  inputs[Field::kSpareFraction] = 0.05;
  inputs[Field::kUtilisation] = 0.6;
  ASSERT_TRUE(check(inputs).ok());
  const auto hour = hourly(inputs);
  const double price = 18000 * 1.12;
  EXPECT_NEAR(hour.capital, annuity(price, 0.3 * price, 0.08, 3) / 8760, 1e-12);
  EXPECT_NEAR(hour.it_w, 80 + 320 * 0.5 + 120, 1e-12);
  EXPECT_NEAR(hour.energy, 0.360 * 1.42 * 0.12, 1e-12);
  EXPECT_NEAR(hour.colocation, 0.52 * 200 * 12 / 8760, 1e-12);
  const double sum = hour.capital + hour.energy + hour.colocation + hour.operations;
  EXPECT_NEAR(hour.spares, 0.05 * sum, 1e-12);
  EXPECT_NEAR(hour.total, 1.05 * sum / 0.6, 1e-12);
  EXPECT_NEAR(hour.total, sum + hour.spares + hour.idle_hours, 1e-12);
}

TEST(Hourly, RentalPaysNeitherCapitalNorEnergy) {
  Inputs inputs = owned();
  inputs.basis = Basis::kRented;
  inputs[Field::kRentalUsdPerHour] = 2.5;
  const auto hour = hourly(inputs);
  EXPECT_NEAR(hour.total, 2.5 + 1500.0 / 8760, 1e-12);
  EXPECT_NEAR(hour.facility_w, 400 * 1.42, 1e-12);
}

// The exact derivative against central differences, at random points.
TEST(Tornado, DerivativeIsTheLimitOfDifferences) {
  core::Rng rng(7);
  for (int round = 0; round < 50; ++round) {
    Inputs inputs = owned();
    for (const auto field : {Field::kHostUsd, Field::kIdleW, Field::kHostW}) {
      inputs[field] = 10 + 200 * rng.uniform();
    }
    for (const auto field :
         {Field::kNetworkFraction, Field::kResidualFraction, Field::kInterestRate,
          Field::kLoadFraction, Field::kSpareFraction, Field::kUtilisation}) {
      inputs[field] = 0.05 + 0.8 * rng.uniform();
    }
    inputs[Field::kColoUsdPerKwMonth] = 150;
    const auto bars = tornado(inputs, 0.1);
    EXPECT_GE(bars.size(), 15u);
    for (const auto& bar : bars) {
      const double step = 1e-6 * bar.value;
      const auto at = [&](double value) {
        Inputs changed = inputs;
        changed[bar.field] = value;
        return hourly(changed).total / changed[Field::kThroughputFactor];
      };
      const double slope = (at(bar.value + step) - at(bar.value - step)) / (2 * step);
      EXPECT_NEAR(bar.derivative, slope, 1e-6 * std::abs(slope) + 1e-12) << info(bar.field).name;
    }
    for (size_t i = 1; i < bars.size(); ++i) {
      EXPECT_GE(std::max(std::abs(bars[i - 1].low_change), std::abs(bars[i - 1].high_change)),
                std::max(std::abs(bars[i].low_change), std::abs(bars[i].high_change)));
    }
  }
}

TEST(Tornado, DerivativeByTheRateHoldsAtZero) {
  Inputs inputs = owned();
  inputs[Field::kInterestRate] = 1e-9;  // a bar needs a value
  double slope = 0;
  for (const auto& bar : tornado(inputs, 0.1)) {
    if (bar.field == Field::kInterestRate) slope = bar.derivative;
  }
  // d(annuity)/d(rate) at 0 is P (n + 1) / (2 n).
  EXPECT_NEAR(slope, 15000.0 * 4 / 6 / 8760, 1e-6);
}

TEST(WhatIf, ThroughputIsOneOverX) {
  const auto less = what_if(owned(), parse_change("throughput_factor=*0.85").value());
  const auto more = what_if(owned(), parse_change("throughput_factor=*1.15").value());
  EXPECT_NEAR(less->relative, 0.17647, 1e-5);  // and not the +-22 % of a published table
  EXPECT_NEAR(more->relative, -0.13043, 1e-5);
  EXPECT_NEAR(less->linear, 0.15, 1e-12);
}

TEST(WhatIf, TariffMovesOnlyTheEnergyShare) {
  const Inputs inputs = owned();
  const auto effect = what_if(inputs, parse_change("tariff_usd_per_kwh=+0.01").value());
  const auto hour = hourly(inputs);
  EXPECT_NEAR(effect->relative, hour.energy / hour.total / 12, 1e-12);
  EXPECT_NEAR(effect->relative, 0.0063, 1e-4);  // the write-up prints 3.2 %
  EXPECT_NEAR(effect->relative, effect->linear, 1e-12);
}

TEST(WhatIf, LifeOfTwoYearsOnCapitalAlone) {
  Inputs inputs;
  inputs[Field::kCapexUsd] = 15000;
  inputs[Field::kLifeYears] = 3;
  inputs[Field::kInterestRate] = 0.08;
  const auto change = parse_change("life_years=2").value();
  EXPECT_NEAR(what_if(inputs, change)->relative, 0.445, 1e-3);
  inputs[Field::kInterestRate] = 0;
  EXPECT_NEAR(what_if(inputs, change)->relative, 0.5, 1e-12);
}

TEST(TokenCost, DividesByTheRightTokens) {
  Inputs inputs = owned();
  Rates rates;
  rates.gpus = 8;
  rates.output = 2000;
  rates.total = 10000;
  rates.goodput = 1000;
  const auto cost = token_cost(inputs, rates);
  const double hour = hourly(inputs).total * 8;
  EXPECT_NEAR(*cost.usd_per_1k_output, hour / 7200, 1e-12);
  EXPECT_NEAR(*cost.usd_per_1k_total, hour / 36000, 1e-12);
  EXPECT_NEAR(*cost.usd_per_1k_goodput, hour / 3600, 1e-12);
  EXPECT_FALSE(cost.usd_per_1k_input);
  EXPECT_NEAR(*cost.j_per_output, 8 * 400.0 / 2000, 1e-12);
  EXPECT_NEAR(*cost.facility_j_per_output, 8 * 568.0 / 2000, 1e-9);
}

TEST(TokenCost, RatesOfARecordKeepWhatIsUnknownUnknown) {
  record::Metrics metrics;
  metrics.output_throughput = 100;
  EXPECT_FALSE(rates_of(metrics, 1).input);
  EXPECT_FALSE(token_cost(owned(), rates_of(metrics, 1)).usd_per_1k_goodput);
  metrics.total_throughput = 350;
  EXPECT_DOUBLE_EQ(*rates_of(metrics, 1).input, 250);
}

TEST(Inputs, RefusesWhatNobodyPays) {
  Inputs inputs = owned();
  inputs[Field::kPue] = 0.9;
  EXPECT_EQ(check(inputs).error().message, "pue: found 0.9, expected 1 to 5 1");
  inputs = owned();
  inputs[Field::kTariffUsdPerKwh] = std::nan("");
  EXPECT_FALSE(check(inputs).ok());
  inputs = owned();
  inputs[Field::kIdleW] = 500;
  EXPECT_FALSE(check(inputs).ok());
  inputs = owned();
  inputs.basis = Basis::kRented;
  EXPECT_FALSE(check(inputs).ok());
}

TEST(Change, ParsesSetAddAndMultiply) {
  EXPECT_EQ(parse_change("life_years=2")->kind, Change::Kind::kSet);
  EXPECT_EQ(parse_change("life_years=-1")->kind, Change::Kind::kAdd);
  EXPECT_DOUBLE_EQ(apply(owned(), *parse_change("life_years=-1"))[Field::kLifeYears], 2);
  EXPECT_DOUBLE_EQ(apply(owned(), *parse_change("pue=*1.1"))[Field::kPue], 1.42 * 1.1);
  for (const char* bad : {"life_years", "lives=2", "pue=", "pue=1x", "pue=nan", "=3"}) {
    EXPECT_FALSE(parse_change(bad).ok()) << bad;
  }
  EXPECT_FALSE(what_if(owned(), *parse_change("utilisation=1.5")).ok());
}

TEST(Answer, JsonHasEveryPriceOrNull) {
  Answer answer;
  answer.entry.inputs = owned();
  answer.rates.output = 1000;
  answer.source = "flags";
  answer.changes = {*parse_change("life_years=2")};
  const auto json = answer_json(answer).value();
  EXPECT_EQ(json["schema"], "prony.cost/1");
  EXPECT_TRUE(json["usd_per_1k"]["goodput_tokens"].is_null());
  EXPECT_NEAR(json["usd_per_1k"]["output_tokens"].get<double>(),
              json["usd_per_gpu_hour"]["total"].get<double>() / 3600, 1e-12);
  EXPECT_EQ(json["what_if"].size(), 1u);
  EXPECT_NE(answer_table(answer).value().find("life_years=2: +"), std::string::npos);
}

}  // namespace
}  // namespace prony::cost
