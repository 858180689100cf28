// Each warning about a run appears where its figures ask for it and nowhere else.
#include "prony/load/run_warnings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace prony::load {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> warnings(const record::Metrics& metrics) {
  record::Validity validity;
  warn_about_run(metrics, validity);
  EXPECT_TRUE(validity.valid);
  return validity.warnings;
}

TEST(RunWarnings, NoneForAGoodRunNorForAnUnknownOne) {
  EXPECT_THAT(warnings({}), IsEmpty());
  record::Metrics metrics;
  metrics.steady = true;
  metrics.overloaded = false;
  metrics.warm_up = record::RunWarmUp{};
  metrics.little = record::LittlesLaw{10, 5, 2.05, 0.025};
  metrics.longest_failure_run = record::FailureRun{3, 0, 1, {{"connect", 3}}};
  EXPECT_THAT(warnings(metrics), IsEmpty());
}

TEST(RunWarnings, EachHasItsFigures) {
  record::Metrics metrics;
  metrics.steady = false;
  metrics.steady_change = 0.4;
  EXPECT_THAT(warnings(metrics), ElementsAre(HasSubstr("E2E changed by +40 %")));
  metrics.overloaded = false;
  EXPECT_THAT(warnings(metrics), ElementsAre(HasSubstr("the wait for the first token")));
  metrics.overloaded = true;
  metrics.queue_growth = 2.5;
  EXPECT_THAT(warnings(metrics), ElementsAre(HasSubstr("overloaded: requests in the system grew "
                                                       "by 2.5/s")));
  metrics = {};
  metrics.warm_up = record::RunWarmUp{"e2e_ms", 60, 3, 0.8, false};
  EXPECT_THAT(warnings(metrics), ElementsAre(HasSubstr("the first 60 requests (3 s)")));
  metrics.warm_up->trimmed = true;
  EXPECT_THAT(warnings(metrics), IsEmpty());
  metrics.little = record::LittlesLaw{10, 5, 3, 0.5};
  EXPECT_THAT(warnings(metrics), ElementsAre(HasSubstr("+50 %: 10 in flight, 5/s x 3 s = 15")));
  metrics = {};
  metrics.longest_failure_run = record::FailureRun{40, 2, 5, {{"connect", 1}, {"empty", 39}}};
  EXPECT_THAT(warnings(metrics), ElementsAre(HasSubstr("40 requests in a row failed, meant for 2 "
                                                       "to 5 s: 1 connect, 39 empty")));
}

TEST(RunWarnings, EarlyStops) {
  record::Validity validity;
  warn_about_early_stops({.requests = 10, .asked = 1280, .got = 1280, .equal = 10}, validity);
  EXPECT_THAT(validity.warnings, IsEmpty());
  warn_about_early_stops({.requests = 10, .asked = 1280, .got = 1200, .equal = 8, .fewer = 2},
                         validity);
  EXPECT_THAT(validity.warnings,
              ElementsAre(HasSubstr("2 of 10 answers stopped early (1200 of 1280 tokens")));
}

}  // namespace
}  // namespace prony::load
