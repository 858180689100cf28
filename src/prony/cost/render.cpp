#include "prony/cost/render.hpp"

#include <fmt/format.h>

#include <cmath>

namespace prony::cost {
namespace {

using core::Json;

Json number(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string text(const std::optional<double>& value, std::string_view unit) {
  return value ? fmt::format("{:>12.6g} {}", *value, unit) : fmt::format("{:>12} {}", "-", unit);
}

std::string_view basis_name(Basis basis) {
  return basis == Basis::kOwned ? "owned" : "rented";
}

std::string change_text(const Change& change) {
  const char* sign = "";
  if (change.kind == Change::Kind::kAdd && change.amount >= 0) sign = "+";
  if (change.kind == Change::Kind::kMultiply) sign = "*";
  return fmt::format("{}={}{:g}", info(change.field).name, sign, change.amount);
}

Json inputs_json(const PriceEntry& entry) {
  Json out = Json::object();
  for (const auto& field : fields()) {
    Json item = {{"value", entry.inputs[field.field]}, {"unit", std::string(field.unit)}};
    for (const auto& cited : entry.cited) {
      if (cited.field != field.field) continue;
      item["origin"] = std::string(origin_name(cited.origin));
      item["ref"] = cited.ref;
    }
    if (!item.contains("origin")) item["origin"] = "given";
    out[std::string(field.name)] = std::move(item);
  }
  return out;
}

Json breakdown_json(const Breakdown& hour) {
  return {{"capital", hour.capital},       {"energy", hour.energy}, {"colocation", hour.colocation},
          {"operations", hour.operations}, {"rental", hour.rental}, {"spares", hour.spares},
          {"idle_hours", hour.idle_hours}, {"total", hour.total}};
}

Json repeat_json(const Repeat& repeat) {
  Json out = {{"what", repeat.what}, {"printed", repeat.printed}};
  out["computed"] = number(repeat.computed);
  out["relative_difference"] =
      repeat.computed ? Json(*repeat.computed / repeat.printed - 1) : Json(nullptr);
  out["tokens_per_request_at_match"] = number(repeat.tokens_at_match);
  out["usd_per_gpu_year_at_one_token_a_request"] = number(repeat.usd_per_year);
  return out;
}

void append_repeats(const PriceEntry& entry, std::string& out) {
  for (const auto& repeat : repeat_published(entry)) {
    out += fmt::format("published {}: printed {:.4g}", repeat.what, repeat.printed);
    if (repeat.computed) {
      out += fmt::format(", from its inputs {:.4g} ({:+.1f} %)", *repeat.computed,
                         100 * (*repeat.computed / repeat.printed - 1));
    }
    if (repeat.tokens_at_match) {
      out +=
          fmt::format(", tokens a request not stated: holds for {:.4g}", *repeat.tokens_at_match);
    }
    if (repeat.usd_per_year) {
      out += fmt::format("; at one token each a GPU would cost {:.4g} USD a year",
                         *repeat.usd_per_year);
    }
    out += '\n';
  }
}

}  // namespace

std::vector<Repeat> repeat_published(const PriceEntry& entry) {
  std::vector<Repeat> out;
  const auto& published = entry.published;
  const double hour = hourly(entry.inputs).total;
  if (published.usd_per_gpu_hour) {
    out.push_back({"USD per GPU-hour", *published.usd_per_gpu_hour, hour, {}, {}});
  }
  if (published.usd_per_1k_tokens) {
    Repeat repeat{"USD per 1k tokens", *published.usd_per_1k_tokens, {}, {}, {}};
    if (published.requests_per_s) {
      const double usd_per_1k_requests = hour / (*published.requests_per_s * 3600) * 1000;
      if (published.tokens_per_request) {
        repeat.computed = usd_per_1k_requests / *published.tokens_per_request;
      } else {
        repeat.tokens_at_match = usd_per_1k_requests / repeat.printed;
        repeat.usd_per_year =
            repeat.printed / 1000 * *published.requests_per_s * 3600 * kHoursPerYear;
      }
    }
    out.push_back(repeat);
  }
  return out;
}

Result<Json> answer_json(const Answer& answer) {
  const auto& entry = answer.entry;
  const auto hour = hourly(entry.inputs);
  const auto tokens = token_cost(entry.inputs, answer.rates);
  Json out = {{"schema", kCostSchema}};
  out["entry"] = {{"id", entry.id},
                  {"book", entry.book},
                  {"as_of", entry.as_of},
                  {"hardware", entry.hardware},
                  {"basis", std::string(basis_name(entry.inputs.basis))}};
  out["inputs"] = inputs_json(entry);
  out["usd_per_gpu_hour"] = breakdown_json(hour);
  out["power_per_gpu_w"] = {{"it", hour.it_w}, {"facility", hour.facility_w}};
  out["rates"] = {{"source", answer.source},
                  {"gpus", answer.rates.gpus},
                  {"input_tokens_per_s", number(answer.rates.input)},
                  {"output_tokens_per_s", number(answer.rates.output)},
                  {"total_tokens_per_s", number(answer.rates.total)},
                  {"goodput_tokens_per_s", number(answer.rates.goodput)},
                  {"requests_per_s", number(answer.rates.requests)}};
  out["usd_per_1k"] = {{"input_tokens", number(tokens.usd_per_1k_input)},
                       {"output_tokens", number(tokens.usd_per_1k_output)},
                       {"total_tokens", number(tokens.usd_per_1k_total)},
                       {"goodput_tokens", number(tokens.usd_per_1k_goodput)},
                       {"requests", number(tokens.usd_per_1k_requests)}};
  out["joule_per_token"] = {{"output", number(tokens.j_per_output)},
                            {"total", number(tokens.j_per_total)},
                            {"output_with_pue", number(tokens.facility_j_per_output)},
                            {"total_with_pue", number(tokens.facility_j_per_total)}};
  out["tornado"] = Json::array();
  for (const auto& bar : tornado(entry.inputs, answer.step)) {
    out["tornado"].push_back({{"input", std::string(info(bar.field).name)},
                              {"value", bar.value},
                              {"derivative_usd_per_hour", bar.derivative},
                              {"elasticity", bar.elasticity},
                              {"step", answer.step},
                              {"low_relative", bar.low_change},
                              {"high_relative", bar.high_change}});
  }
  out["what_if"] = Json::array();
  for (const auto& change : answer.changes) {
    const auto effect = what_if(entry.inputs, change);
    if (!effect) return effect.error();
    out["what_if"].push_back({{"change", change_text(change)},
                              {"relative", effect->relative},
                              {"relative_by_derivative", effect->linear}});
  }
  out["published"] = Json::array();
  for (const auto& repeat : repeat_published(entry))
    out["published"].push_back(repeat_json(repeat));
  return out;
}

Result<std::string> answer_table(const Answer& answer) {
  const auto& entry = answer.entry;
  const auto hour = hourly(entry.inputs);
  const auto tokens = token_cost(entry.inputs, answer.rates);
  std::string out;
  if (!entry.id.empty()) {
    out += fmt::format("{}/{}, {}, {}, prices of {}\n", entry.book, entry.id, entry.hardware,
                       basis_name(entry.inputs.basis), entry.as_of);
  }
  out += "USD per GPU-hour\n";
  const auto line = [&out, &hour](std::string_view name, double value) {
    if (value == 0) return;
    out += fmt::format("  {:<12} {:>9.4f} {:>6.1f} %\n", name, value, 100 * value / hour.total);
  };
  line("capital", hour.capital);
  line("energy", hour.energy);
  line("colocation", hour.colocation);
  line("operations", hour.operations);
  line("rental", hour.rental);
  line("spares", hour.spares);
  line("idle hours", hour.idle_hours);
  line("total", hour.total);
  if (hour.it_w > 0) {
    out += fmt::format("power per GPU: {:.0f} W, {:.0f} W with PUE\n", hour.it_w, hour.facility_w);
  }
  if (!answer.source.empty()) {
    out += fmt::format("per 1k on {} GPU{} ({})\n", answer.rates.gpus,
                       answer.rates.gpus == 1 ? "" : "s", answer.source);
    out += fmt::format("  input tokens   {}\n", text(tokens.usd_per_1k_input, "USD"));
    out += fmt::format("  output tokens  {}\n", text(tokens.usd_per_1k_output, "USD"));
    out += fmt::format("  total tokens   {}\n", text(tokens.usd_per_1k_total, "USD"));
    out += fmt::format("  goodput tokens {}\n", text(tokens.usd_per_1k_goodput, "USD"));
    out += fmt::format("  requests       {}\n", text(tokens.usd_per_1k_requests, "USD"));
    out += fmt::format("energy per output token {}, with PUE {}\n", text(tokens.j_per_output, "J"),
                       text(tokens.facility_j_per_output, "J"));
  }
  out += fmt::format("price of a token if an input moves by {:.0f} %\n", 100 * answer.step);
  out += fmt::format("  {:<24} {:>10} {:>9} {:>9} {:>11}\n", "input", "value", "lower", "higher",
                     "elasticity");
  for (const auto& bar : tornado(entry.inputs, answer.step)) {
    out += fmt::format("  {:<24} {:>10.5g} {:>+8.2f}% {:>+8.2f}% {:>11.4f}\n", info(bar.field).name,
                       bar.value, 100 * bar.low_change, 100 * bar.high_change, bar.elasticity);
  }
  for (const auto& change : answer.changes) {
    const auto effect = what_if(entry.inputs, change);
    if (!effect) return effect.error();
    out += fmt::format("{}: {:+.2f} % (by the derivative alone {:+.2f} %)\n", change_text(change),
                       100 * effect->relative, 100 * effect->linear);
  }
  append_repeats(entry, out);
  return out;
}

std::string book_table(const std::vector<PriceEntry>& entries) {
  std::string out = fmt::format("{:<36} {:<12} {:<7} {:<10} {:>10} {:>10}\n", "book/id", "hardware",
                                "basis", "as of", "USD/GPU-h", "published");
  for (const auto& entry : entries) {
    const auto& printed = entry.published.usd_per_gpu_hour;
    out += fmt::format("{:<36} {:<12} {:<7} {:<10} {:>10.4f} {:>10}\n", entry.book + "/" + entry.id,
                       entry.hardware, basis_name(entry.inputs.basis), entry.as_of,
                       hourly(entry.inputs).total, printed ? fmt::format("{:.4g}", *printed) : "-");
  }
  return out;
}

}  // namespace prony::cost
