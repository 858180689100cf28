#include "prony/audit/audit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "prony/audit/catalogue_value.hpp"
#include "prony/audit/expression.hpp"

namespace prony::audit {
namespace {

// Bytes of a parameter or an element by its name.
std::optional<Value> constant(std::string_view name) {
  constexpr std::pair<std::string_view, double> kWidths[] = {
      {"fp32", 4}, {"fp16", 2}, {"bf16", 2}, {"fp8", 1}, {"int8", 1}, {"int4", 0.5}};
  for (const auto& [word, bytes] : kWidths) {
    if (word == name) {
      Quantity out = parse_unit("B/param").value();
      out.value = bytes;
      return Value{out, {}};
    }
  }
  return std::nullopt;
}

Result<InputValue> resolve(const Input& input) {
  InputValue out{input, {}, input.ref};
  switch (input.kind) {
    case InputKind::kClaimed:
    case InputKind::kFact:
    case InputKind::kAssumed: {
      const auto quantity = parse_quantity(input.text);
      if (!quantity) return quantity.error();
      out.quantity = *quantity;
      break;
    }
    case InputKind::kHardware:
    case InputKind::kModel: {
      const bool hardware = input.kind == InputKind::kHardware;
      const auto quantity =
          hardware ? hardware_value(input.text, input.field) : model_value(input.text, input.field);
      if (!quantity) return quantity.error();
      out.quantity = *quantity;
      out.ref = fmt::format("catalogue, {} {}, {}", hardware ? "hardware" : "model", input.text,
                            input.field);
      break;
    }
    case InputKind::kMissing:
      break;
  }
  return out;
}

// What a ratio near a known factor suggests.
std::string slip(double ratio) {
  constexpr std::pair<double, const char*> kSlips[] = {{2, "a sparse figure or both directions?"},
                                                       {4, "sparse and of another precision?"},
                                                       {8, "bits taken for bytes?"},
                                                       {10, "a factor of ten"},
                                                       {1000, "a decimal prefix"},
                                                       {3600, "seconds taken for hours?"}};
  for (const auto& [factor, words] : kSlips) {
    if (std::abs(ratio / factor - 1) < 0.02 || std::abs(ratio * factor - 1) < 0.02) {
      return fmt::format(" ({})", words);
    }
  }
  return {};
}

Verdict verdict_of_failure(CheckKind kind) {
  switch (kind) {
    case CheckKind::kPlausible:
    case CheckKind::kSimilar:
      return Verdict::kImplausible;
    case CheckKind::kSample:
      return Verdict::kCannotBeChecked;
    default:
      return Verdict::kImpossible;
  }
}

bool is_bound(CheckKind kind) {
  return kind == CheckKind::kCapacity || kind == CheckKind::kRoofline ||
         kind == CheckKind::kBandwidth || kind == CheckKind::kLink || kind == CheckKind::kLittle ||
         kind == CheckKind::kOrder || kind == CheckKind::kPlausible || kind == CheckKind::kSample;
}

void compare_bound(CheckResult& out) {
  const double left = out.left->value, right = out.right->value;
  const bool holds = left <= right;
  out.outcome = holds ? Outcome::kHolds : Outcome::kFails;
  out.arithmetic = fmt::format("{} = {} {} {} = {}", out.check.left, quantity_text(*out.left),
                               holds ? "<=" : ">", out.check.right, quantity_text(*out.right));
  if (out.ratio) out.arithmetic += fmt::format(", {:.4g} of it", *out.ratio);
  if (holds && out.check.best && out.ratio && *out.ratio > *out.check.best) {
    out.outcome = Outcome::kBeyondBest;
    out.arithmetic += fmt::format(", the best published is {:.3g}", *out.check.best);
  }
}

void compare_equal(CheckResult& out) {
  const double left = out.left->value, right = out.right->value;
  const double difference = right == 0 ? (left == 0 ? 0 : 1) : left / right - 1;
  // Printed numbers are rounded: the edge of the tolerance belongs to it.
  const bool holds = std::abs(difference) <= out.check.tolerance * (1 + 1e-9);
  out.outcome = holds ? Outcome::kHolds : Outcome::kFails;
  out.arithmetic = fmt::format("printed {}, {} = {}, {:+.3g} %", quantity_text(*out.left),
                               out.check.right, quantity_text(*out.right), 100 * difference);
  if (!holds && right != 0) out.arithmetic += slip(left / right);
}

Result<CheckResult> run(const Claim& claim, const Check& check, const Lookup& lookup) {
  CheckResult out;
  out.check = check;
  const auto where = [&] { return fmt::format("claim {}, check {}: ", claim.id, check.name); };
  if (check.kind == CheckKind::kFact) {
    const bool holds = check.left == check.right;
    out.outcome = holds ? Outcome::kHolds : Outcome::kFails;
    out.arithmetic = fmt::format("claimed \"{}\", documented \"{}\"", check.left, check.right);
    out.verdict = holds ? Verdict::kConsistent : Verdict::kImpossible;
    return out;
  }
  for (const bool first : {true, false}) {
    const auto value = evaluate(first ? check.left : check.right, lookup);
    if (!value) return invalid_argument(where() + value.error().message);
    if (!value->quantity) {
      out.missing = value->missing;
      out.arithmetic = fmt::format("{} against {}: {}", check.left, check.right, out.missing);
      return out;
    }
    (first ? out.left : out.right) = value->quantity;
  }
  if (out.left->dimension != out.right->dimension) {
    if (check.kind != CheckKind::kFormula) {
      return invalid_argument(fmt::format("{}{} is in {} and {} in {}", where(), check.left,
                                          dimension_text(out.left->dimension), check.right,
                                          dimension_text(out.right->dimension)));
    }
    out.outcome = Outcome::kFails;
    out.verdict = Verdict::kImpossible;
    out.arithmetic = fmt::format("printed {}, but {} = {}: a slip of units",
                                 quantity_text(*out.left), check.right, quantity_text(*out.right));
    return out;
  }
  if (out.right->value != 0) out.ratio = out.left->value / out.right->value;
  is_bound(check.kind) ? compare_bound(out) : compare_equal(out);
  switch (out.outcome) {
    case Outcome::kHolds:
      out.verdict = Verdict::kConsistent;
      break;
    case Outcome::kFails:
      out.verdict = verdict_of_failure(check.kind);
      break;
    case Outcome::kBeyondBest:
      out.verdict = Verdict::kImplausible;
      break;
    case Outcome::kUnknown:
      break;
  }
  return out;
}

// The worst of the checks that could be made. A missing input weighs nothing beside a check that
// was made; a sample that is too small is itself such a check.
Verdict worst(const std::vector<const CheckResult*>& checks) {
  std::optional<Verdict> out;
  for (const auto* check : checks) {
    if (check->outcome == Outcome::kUnknown) continue;
    out = std::max(out.value_or(Verdict::kConsistent), check->verdict);
  }
  return out.value_or(Verdict::kCannotBeChecked);
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  constexpr std::string_view kNames[] = {"consistent", "cannot be checked", "implausible",
                                         "impossible"};
  return kNames[static_cast<size_t>(verdict)];
}

std::string_view outcome_name(Outcome outcome) {
  constexpr std::string_view kNames[] = {"holds", "fails", "beyond the best published", "unknown"};
  return kNames[static_cast<size_t>(outcome)];
}

Result<ClaimResult> audit(const Claim& claim) {
  ClaimResult out;
  out.claim = claim;
  std::map<std::string, Value, std::less<>> values;
  for (const auto& input : claim.inputs) {
    auto value = resolve(input);
    if (!value) {
      return invalid_argument(
          fmt::format("claim {}, input {}: {}", claim.id, input.name, value.error().message));
    }
    values[input.name] = {value->quantity,
                          fmt::format("{} is not given: {}", input.name, input.text)};
    out.inputs.push_back(std::move(*value));
  }
  const Lookup lookup = [&values](std::string_view name) -> std::optional<Value> {
    const auto found = values.find(name);
    return found == values.end() ? constant(name) : std::optional(found->second);
  };
  for (const auto& check : claim.checks) {
    auto result = run(claim, check, lookup);
    if (!result) return result.error();
    out.checks.push_back(std::move(*result));
  }

  std::vector<std::string> readings;
  for (const auto& check : claim.checks) {
    if (!check.reading.empty() &&
        std::find(readings.begin(), readings.end(), check.reading) == readings.end()) {
      readings.push_back(check.reading);
    }
  }
  const auto part = [&out](const std::string* reading) {
    std::vector<const CheckResult*> checks;
    for (const auto& check : out.checks) {
      if (check.check.reading.empty() || (reading && check.check.reading == *reading)) {
        checks.push_back(&check);
      }
    }
    return checks;
  };
  std::vector<const CheckResult*> behind = part(nullptr);
  out.verdict = worst(behind);
  if (!readings.empty()) {
    std::optional<Verdict> best;
    for (const auto& reading : readings) {
      const auto checks = part(&reading);
      const Verdict verdict = worst(checks);
      out.readings.push_back({reading, verdict});
      if (best && verdict >= *best) continue;
      best = verdict;
      behind = checks;
    }
    out.verdict = *best;
  }
  if (out.verdict != Verdict::kConsistent) {
    for (const auto* check : behind) {
      const auto& condition = check->check.condition;
      if (check->verdict != out.verdict || condition.empty()) continue;
      if (std::find(out.conditions.begin(), out.conditions.end(), condition) ==
          out.conditions.end()) {
        out.conditions.push_back(condition);
      }
    }
  }
  return out;
}

Result<std::vector<ClaimResult>> audit(std::span<const Claim> claims) {
  std::vector<ClaimResult> out;
  for (const auto& claim : claims) {
    auto result = audit(claim);
    if (!result) return result.error();
    out.push_back(std::move(*result));
  }
  return out;
}

std::vector<std::string> refuted_controls(std::span<const ClaimResult> results) {
  std::vector<std::string> out;
  for (const auto& result : results) {
    if (result.claim.control && result.verdict == Verdict::kImpossible) {
      out.push_back(result.claim.id);
    }
  }
  return out;
}

}  // namespace prony::audit
