#include "prony/audit/render.hpp"

#include <fmt/format.h>

#include <map>

namespace prony::audit {
namespace {

using core::Json;

Json quantity_json(const std::optional<Quantity>& quantity) {
  if (!quantity) return nullptr;
  return {{"value", quantity->value}, {"unit", dimension_text(quantity->dimension)}};
}

std::string_view input_kind_name(InputKind kind) {
  constexpr std::string_view kNames[] = {"claimed",  "fact",  "assumed",
                                         "hardware", "model", "missing"};
  return kNames[static_cast<size_t>(kind)];
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json check_json(const CheckResult& result) {
  Json out = {{"name", result.check.name},
              {"kind", std::string(check_kind_name(result.check.kind))},
              {"outcome", std::string(outcome_name(result.outcome))},
              {"verdict", std::string(verdict_name(result.verdict))},
              {"arithmetic", result.arithmetic}};
  out["left"] = quantity_json(result.left);
  out["right"] = quantity_json(result.right);
  out["ratio"] = result.ratio ? Json(*result.ratio) : Json(nullptr);
  out["reading"] = text_or_null(result.check.reading);
  out["condition"] = text_or_null(result.check.condition);
  out["missing"] = text_or_null(result.missing);
  out["note"] = text_or_null(result.check.note);
  return out;
}

Json claim_json(const ClaimResult& result) {
  Json out = {{"id", result.claim.id}, {"verdict", std::string(verdict_name(result.verdict))}};
  out["conditions"] = result.conditions;
  out["readings"] = Json::array();
  for (const auto& reading : result.readings) {
    out["readings"].push_back(
        {{"reading", reading.reading}, {"verdict", std::string(verdict_name(reading.verdict))}});
  }
  out["where"] = result.claim.where;
  out["source"] = result.claim.source;
  out["statement"] = result.claim.statement;
  out["control"] = result.claim.control;
  out["inputs"] = Json::array();
  for (const auto& input : result.inputs) {
    out["inputs"].push_back({{"name", input.input.name},
                             {"kind", std::string(input_kind_name(input.input.kind))},
                             {"text", input.input.text},
                             {"quantity", quantity_json(input.quantity)},
                             {"ref", text_or_null(input.ref)}});
  }
  out["checks"] = Json::array();
  for (const auto& check : result.checks) out["checks"].push_back(check_json(check));
  return out;
}

std::map<Verdict, int> counts(std::span<const ClaimResult> results) {
  std::map<Verdict, int> out;
  for (const auto& result : results) ++out[result.verdict];
  return out;
}

}  // namespace

Json audit_json(std::span<const ClaimResult> results) {
  Json out = {{"schema", kAuditSchema}};
  out["summary"] = Json::object();
  for (const auto verdict : {Verdict::kImpossible, Verdict::kImplausible, Verdict::kConsistent,
                             Verdict::kCannotBeChecked}) {
    out["summary"][std::string(verdict_name(verdict))] = counts(results)[verdict];
  }
  out["refuted_controls"] = refuted_controls(results);
  out["claims"] = Json::array();
  for (const auto& result : results) out["claims"].push_back(claim_json(result));
  return out;
}

std::string audit_table(std::span<const ClaimResult> results, bool arithmetic) {
  std::string out;
  for (const auto& result : results) {
    std::string verdict(verdict_name(result.verdict));
    if (!result.conditions.empty()) {
      verdict += fmt::format(" ({})", fmt::join(result.conditions, ", "));
    }
    out += fmt::format("{:<6} {:<18} {}\n", result.claim.id, verdict, result.claim.statement);
    for (const auto& reading : result.readings) {
      out += fmt::format("       read as {}: {}\n", reading.reading, verdict_name(reading.verdict));
    }
    if (!arithmetic) continue;
    for (const auto& check : result.checks) {
      out += fmt::format(
          "       {:<10} {:<7} {}\n", check_kind_name(check.check.kind),
          check.outcome == Outcome::kBeyondBest ? "beyond" : outcome_name(check.outcome),
          check.arithmetic);
      if (!check.check.note.empty()) out += fmt::format("       {:<18} {}\n", "", check.check.note);
    }
  }
  const auto tally = counts(results);
  const auto count = [&tally](Verdict verdict) {
    const auto found = tally.find(verdict);
    return found == tally.end() ? 0 : found->second;
  };
  out +=
      fmt::format("{} claims: {} impossible, {} implausible, {} consistent, {} cannot be checked\n",
                  results.size(), count(Verdict::kImpossible), count(Verdict::kImplausible),
                  count(Verdict::kConsistent), count(Verdict::kCannotBeChecked));
  for (const auto& id : refuted_controls(results)) {
    out += fmt::format("control {} was called impossible: the audit itself is wrong\n", id);
  }
  return out;
}

}  // namespace prony::audit
