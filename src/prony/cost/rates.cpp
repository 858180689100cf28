#include "prony/cost/rates.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "prony/record/record.hpp"

namespace prony::cost {
namespace {

constexpr int64_t kGpusMax = 1'000'000;

Result<void> check_given(const GivenRates& given) {
  if (given.gpus && (*given.gpus < 1 || *given.gpus > kGpusMax)) {
    return invalid_argument(
        fmt::format("--gpus: found {}, expected 1 to {}", *given.gpus, kGpusMax));
  }
  const struct {
    const char* flag;
    const std::optional<double>& rate;
  } kRates[] = {{"--input-throughput", given.input},
                {"--output-throughput", given.output},
                {"--total-throughput", given.total},
                {"--goodput-throughput", given.goodput},
                {"--request-throughput", given.requests}};
  for (const auto& [flag, rate] : kRates) {
    if (rate && !(*rate > 0)) {
      return invalid_argument(fmt::format("{}: found {}, expected more than 0", flag, *rate));
    }
  }
  return {};
}

}  // namespace

std::optional<int64_t> gpus_of(const core::Json& details) {
  const auto whole = [&details](const char* key) -> std::optional<int64_t> {
    const auto found = details.find(key);
    if (found == details.end() || !found->is_number_integer()) return std::nullopt;
    const auto value = found->get<int64_t>();
    return value >= 1 && value <= kGpusMax ? std::optional(value) : std::nullopt;
  };
  if (const auto gpus = whole("gpus")) return gpus;
  std::optional<int64_t> product;
  for (const char* key : {"tp", "pp", "replicas"}) {
    if (const auto factor = whole(key)) product = product.value_or(1) * *factor;
  }
  return product;
}

Result<Rates> rates_from(const GivenRates& given, const std::string& record_path,
                         std::string& source) {
  if (auto checked = check_given(given); !checked) return checked.error();
  Rates out;
  out.gpus = given.gpus.value_or(1);
  source.clear();
  if (!record_path.empty()) {
    const auto record = record::read_record(record_path);
    if (!record) return record.error();
    const auto gpus = given.gpus ? given.gpus : gpus_of(record->system.details);
    if (!gpus) {
      return invalid_argument(
          fmt::format("{}: does not say how many GPUs it used, expected --gpus", record_path));
    }
    out = rates_of(record->metrics, *gpus);
    source = fmt::format("{}, {}", record_path, record::source_name(record->source));
    if (record->system.kind == record::SystemKind::kEmulated) source += ", emulated timing";
    if (!record->validity.valid) source += ", an invalid run";
  }
  const auto take = [&source](const std::optional<double>& from, std::optional<double>& to) {
    if (!from) return;
    to = from;
    if (source.empty()) source = "given by flags";
  };
  take(given.input, out.input);
  take(given.output, out.output);
  take(given.total, out.total);
  take(given.goodput, out.goodput);
  take(given.requests, out.requests);
  if (!out.total && out.input && out.output) out.total = *out.input + *out.output;
  return out;
}

}  // namespace prony::cost
