// prony cost: what a GPU-hour and a thousand tokens cost, from a price book or from flags, for a
// record's throughput or a given one.
#include <fmt/format.h>

#include <cstdio>
#include <map>

#include "prony/cli/commands.hpp"
#include "prony/cli/flags.hpp"
#include "prony/cost/rates.hpp"
#include "prony/cost/render.hpp"

namespace prony::cli {
namespace {

struct Options {
  std::string price, record, basis = "owned";
  std::map<cost::Field, std::optional<double>> values;
  cost::GivenRates given;
  std::vector<std::string> changes;
  double step = 0.1;
  bool json = false, list = false;
};

std::string flag_of(std::string_view name) {
  std::string out = "--" + std::string(name);
  for (char& c : out) c = c == '_' ? '-' : c;
  return out;
}

Result<int> run(const Options& options) {
  if (options.list) {
    const auto books = cost::load_price_books();
    if (!books) return books.error();
    std::fputs(cost::book_table(*books).c_str(), stdout);
    return kExitOk;
  }
  if (!(options.step > 0 && options.step < 1)) {
    return invalid_argument(
        fmt::format("--step: found {}, expected a fraction between 0 and 1", options.step));
  }
  cost::Answer answer;
  answer.step = options.step;
  if (!options.price.empty()) {
    auto found = cost::find_price(options.price);
    if (!found) return found.error();
    answer.entry = *found;
  } else {
    answer.entry.inputs.basis =
        options.basis == "owned" ? cost::Basis::kOwned : cost::Basis::kRented;
  }
  for (const auto& [field, value] : options.values) {
    if (!value) continue;
    answer.entry.inputs[field] = *value;
    std::erase_if(answer.entry.cited, [f = field](const auto& cited) { return cited.field == f; });
  }
  if (auto checked = cost::check(answer.entry.inputs); !checked) return checked.error();
  auto found = cost::rates_from(options.given, options.record, answer.source);
  if (!found) return found.error();
  answer.rates = *found;
  for (const auto& text : options.changes) {
    auto change = cost::parse_change(text);
    if (!change) return change.error();
    answer.changes.push_back(*change);
  }
  if (options.json) {
    const auto json = cost::answer_json(answer);
    if (!json) return json.error();
    const auto text = core::write_json(*json, 2);
    if (!text) return text.error();
    std::fputs((*text + "\n").c_str(), stdout);
  } else {
    const auto table = cost::answer_table(answer);
    if (!table) return table.error();
    std::fputs((*table).c_str(), stdout);
  }
  return kExitOk;
}

}  // namespace

int run_cost(const Arguments& arguments) {
  Options options;
  Flags flags("cost", "what a GPU-hour, a thousand tokens and the energy of one cost");
  flags.group("Prices").text("--price", options.price, "entry of a price book (see --list)");
  flags.choice("--basis", options.basis, {"owned", "rented"}, "without --price: who owns the GPU");
  flags.toggle("--list", options.list, "list the price books");
  for (const auto& field : cost::fields()) {
    flags.number(flag_of(field.name), options.values[field.field],
                 fmt::format("{} [{}]", field.help, field.unit));
  }
  flags.group("Throughput")
      .text("--record", options.record, "a record of a run, predicted or simulated ones too")
      .integer("--gpus", options.given.gpus, "GPUs behind the throughput")
      .number("--input-throughput", options.given.input, "input tokens/s of all GPUs")
      .number("--output-throughput", options.given.output, "output tokens/s of all GPUs")
      .number("--total-throughput", options.given.total, "input + output tokens/s of all GPUs")
      .number("--goodput-throughput", options.given.goodput,
              "tokens/s of requests that met the SLO")
      .number("--request-throughput", options.given.requests, "requests/s of all GPUs");
  flags.group("Answer")
      .list("--what-if", options.changes, "NAME=VALUE, NAME=+X or NAME=*X; repeatable")
      .number("--step", options.step, "relative change of every input in the tornado")
      .toggle("--json", options.json, "one JSON document on stdout");
  const auto outcome = flags.parse(arguments);
  if (!outcome) return report_error("cost", outcome.error());
  if (outcome.value() == Flags::Outcome::kHelp) {
    std::fputs(flags.help().c_str(), stdout);
    return kExitOk;
  }
  const auto code = run(options);
  return code ? code.value() : report_error("cost", code.error());
}

}  // namespace prony::cli
