#include "prony/certify/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace prony::certify {

std::string_view outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPass:
      return "pass";
    case Outcome::kFail:
      return "fail";
    case Outcome::kSkipped:
      return "skipped";
  }
  return "fail";
}

Verdict figure(std::string name, std::string condition, double error, double limit,
               std::string unit) {
  Verdict verdict{.name = std::move(name),
                  .group = "timing",
                  .condition = std::move(condition),
                  .error = error,
                  .limit = limit,
                  .unit = std::move(unit)};
  // Not "greater than": a figure that is no number does not pass.
  if (!(std::abs(error) <= limit)) {
    verdict.fail(fmt::format("found {:.4g} {}, expected at most {:g} {}", error, verdict.unit,
                             limit, verdict.unit));
  }
  return verdict;
}

int Report::count(Outcome outcome) const {
  return static_cast<int>(
      std::count_if(verdicts.begin(), verdicts.end(),
                    [outcome](const Verdict& verdict) { return verdict.outcome == outcome; }));
}

core::Json to_json(const Report& report) {
  core::Json json;
  json["schema"] = "prony.certify/1";
  json["passed"] = report.passed();
  json["wall_s"] = report.wall_s;
  json["counts"] = {{"pass", report.count(Outcome::kPass)},
                    {"fail", report.count(Outcome::kFail)},
                    {"skipped", report.count(Outcome::kSkipped)}};
  const auto& where = report.environment;
  json["environment"] = {
      {"commit", where.commit},     {"version", where.version},           {"cpu", where.cpu},
      {"cores", where.cores},       {"memory_bytes", where.memory_bytes}, {"kernel", where.kernel},
      {"compiler", where.compiler}, {"load_average", where.load_average}};
  json["cases"] = core::Json::array();
  const auto number = [](const std::optional<double>& value) {
    return value && std::isfinite(*value) ? core::Json(*value) : core::Json();
  };
  for (const Verdict& verdict : report.verdicts) {
    json["cases"].push_back({{"name", verdict.name},
                             {"group", verdict.group},
                             {"condition", verdict.condition},
                             {"complaint", verdict.complaint},
                             {"served", verdict.served},
                             {"measured", verdict.measured},
                             {"error", number(verdict.error)},
                             {"limit", number(verdict.limit)},
                             {"unit", verdict.unit},
                             {"verdict", outcome_name(verdict.outcome)},
                             {"why", verdict.why}});
  }
  return json;
}

std::string to_table(const Report& report) {
  std::string out;
  std::string_view group;
  for (const Verdict& verdict : report.verdicts) {
    if (verdict.group != group) {
      group = verdict.group;
      out += fmt::format("{:<30} {:<26} {:<34} {:>10} {:>8} {:<9}\n", group, "served", "measured",
                         "error", "limit", "");
    }
    const auto number = [](const std::optional<double>& value) {
      if (!value) return std::string("-");
      return std::abs(*value) >= 1000 ? fmt::format("{:.0f}", *value)
                                      : fmt::format("{:.3f}", *value);
    };
    out +=
        fmt::format("{:<30} {:<26} {:<34} {:>10} {:>8} {:<9} {}\n", verdict.name, verdict.served,
                    verdict.measured, number(verdict.error), number(verdict.limit), verdict.unit,
                    verdict.outcome == Outcome::kPass   ? "pass"
                    : verdict.outcome == Outcome::kFail ? fmt::format("FAIL  {}", verdict.why)
                                                        : fmt::format("skipped  {}", verdict.why));
  }
  out += fmt::format("{}: {} passed, {} failed, {} skipped in {:.1f} s\n",
                     report.passed() ? "certified" : "not certified", report.count(Outcome::kPass),
                     report.count(Outcome::kFail), report.count(Outcome::kSkipped), report.wall_s);
  return out;
}

}  // namespace prony::certify
