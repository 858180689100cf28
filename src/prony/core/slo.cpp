#include "prony/core/slo.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "prony/core/slo_name.hpp"
#include "prony/core/slo_presets.hpp"

namespace prony::core {
namespace {

template <class Enum>
struct Named {
  Enum value;
  const char* name;
};

constexpr std::array kMetrics = {
    Named<SloMetric>{SloMetric::kTtft, "ttft"},
    Named<SloMetric>{SloMetric::kTpot, "tpot"},
    Named<SloMetric>{SloMetric::kItl, "itl"},
    Named<SloMetric>{SloMetric::kIcl, "icl"},
    Named<SloMetric>{SloMetric::kE2e, "e2e"},
    Named<SloMetric>{SloMetric::kTtftIntended, "ttft_intended"},
    Named<SloMetric>{SloMetric::kE2eIntended, "e2e_intended"},
    Named<SloMetric>{SloMetric::kGoodputFraction, "goodput_fraction"},
    Named<SloMetric>{SloMetric::kErrorRate, "error_rate"},
    Named<SloMetric>{SloMetric::kRequestThroughput, "request_throughput"},
    Named<SloMetric>{SloMetric::kOutputThroughput, "output_throughput"},
};
constexpr std::array kStatistics = {
    Named<SloStatistic>{SloStatistic::kMean, "mean"},
    Named<SloStatistic>{SloStatistic::kMin, "min"},
    Named<SloStatistic>{SloStatistic::kMax, "max"},
    Named<SloStatistic>{SloStatistic::kP50, "p50"},
    Named<SloStatistic>{SloStatistic::kP75, "p75"},
    Named<SloStatistic>{SloStatistic::kP90, "p90"},
    Named<SloStatistic>{SloStatistic::kP95, "p95"},
    Named<SloStatistic>{SloStatistic::kP99, "p99"},
    Named<SloStatistic>{SloStatistic::kP999, "p999"},
    Named<SloStatistic>{SloStatistic::kP9999, "p9999"},
};
// Longer operators first: "<=" must not be read as "<" and "=500ms".
constexpr std::array kComparisons = {
    Named<SloComparison>{SloComparison::kLessEqual, "<="},
    Named<SloComparison>{SloComparison::kGreaterEqual, ">="},
    Named<SloComparison>{SloComparison::kLess, "<"},
    Named<SloComparison>{SloComparison::kGreater, ">"},
};
constexpr std::string_view kMetricList =
    "ttft, tpot, itl, icl, e2e, ttft_intended, e2e_intended, goodput_fraction, error_rate, "
    "request_throughput or output_throughput";
constexpr std::string_view kStatisticList =
    "mean, min, max, p50, p75, p90, p95, p99, p999 or p9999";

template <class Table, class Enum>
const char* name_in(const Table& table, Enum value) {
  for (const auto& entry : table) {
    if (entry.value == value) return entry.name;
  }
  return "";
}

template <class Enum, size_t N>
std::optional<Enum> value_in(const std::array<Named<Enum>, N>& table, std::string_view name) {
  for (const auto& entry : table) {
    if (name == entry.name) return entry.value;
  }
  return std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

// `text` fit for a message of one line.
std::string shown(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = '?';
  }
  return out;
}

Error piece_error(std::string_view flag, std::string_view piece, std::string_view reason) {
  return invalid_argument(fmt::format("{}: '{}': {}", flag, shown(piece), shown(reason)));
}

// Names as users know them from other tools.
std::string_view canonical_metric(std::string_view name) {
  return name == "e2el" ? "e2e" : name;
}

std::optional<SloMetric> metric_named(std::string_view name) {
  return value_in(kMetrics, canonical_metric(name));
}

std::optional<SloStatistic> statistic_named(std::string_view name) {
  if (name == "median") return SloStatistic::kP50;
  if (name == "p99.9") return SloStatistic::kP999;
  if (name == "p99.99") return SloStatistic::kP9999;
  return value_in(kStatistics, name);
}

// A plain decimal number at the start of `text`; the rest is the unit.
struct NumberAndUnit {
  double number = 0;
  std::string_view unit;
};
std::optional<NumberAndUnit> split_number(std::string_view text) {
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || !std::isfinite(number)) return std::nullopt;
  return NumberAndUnit{number, trimmed(text.substr(static_cast<size_t>(end - text.data())))};
}

std::optional<double> ms_per(std::string_view unit) {
  if (unit == "ms") return 1.0;
  if (unit == "s") return 1000.0;
  if (unit == "us") return 0.001;
  return std::nullopt;
}

bool is_fraction(SloMetric metric) {
  return metric == SloMetric::kGoodputFraction || metric == SloMetric::kErrorRate;
}

class TermParser {
 public:
  TermParser(std::string_view flag, std::string_view piece) : flag_(flag), piece_(piece) {}

  Result<SloTerm> parse() {
    const auto at = piece_.find_first_of("<>=");
    if (at == std::string_view::npos) {
      return error("no comparison found, expected <, <=, > or >= as in ttft_p99<=500ms");
    }
    SloTerm term;
    const auto tail = piece_.substr(at);
    std::string_view symbol;
    for (const auto& entry : kComparisons) {
      if (tail.starts_with(entry.name)) {
        term.comparison = entry.value;
        symbol = entry.name;
        break;
      }
    }
    if (symbol.empty()) return error("found '=', expected <, <=, > or >=");
    if (auto named = read_name(trimmed(piece_.substr(0, at)), term); !named) return named.error();
    if (auto bound = read_bound(trimmed(tail.substr(symbol.size())), term); !bound) {
      return bound.error();
    }
    return term;
  }

  Result<void> read_name(std::string_view name, SloTerm& term) const {
    if (const auto metric = metric_named(name)) {
      term.metric = *metric;
      if (!slo_is_latency(*metric)) return {};
      return error(fmt::format("{} needs a statistic, expected {}_p99 or one of {}", name, name,
                               kStatisticList));
    }
    const auto underscore = name.rfind('_');
    const auto metric = underscore == std::string_view::npos
                            ? std::nullopt
                            : metric_named(name.substr(0, underscore));
    if (!metric) {
      return error(fmt::format("unknown metric '{}', expected {}", name, kMetricList));
    }
    const auto statistic_name = name.substr(underscore + 1);
    if (!slo_is_latency(*metric)) {
      return error(fmt::format("{} has no statistics, found '{}'", slo_metric_name(*metric),
                               statistic_name));
    }
    const auto statistic = statistic_named(statistic_name);
    if (!statistic) {
      return error(
          fmt::format("unknown statistic '{}', expected {}", statistic_name, kStatisticList));
    }
    term.metric = *metric;
    term.statistic = *statistic;
    return {};
  }

 private:
  Error error(std::string_view reason) const { return piece_error(flag_, piece_, reason); }

  Result<void> read_bound(std::string_view text, SloTerm& term) const {
    const auto parts = split_number(text);
    if (!parts) return error(fmt::format("bound: found '{}', expected a number", text));
    if (parts->number < 0) {
      return error(fmt::format("bound: found {}, expected at least 0", parts->number));
    }
    term.bound = parts->number;
    if (slo_is_latency(term.metric)) {
      const auto factor = ms_per(parts->unit);
      if (!factor) {
        return error(fmt::format("unit: found '{}', expected ms, s or us", parts->unit));
      }
      term.bound *= *factor;
      return {};
    }
    if (is_fraction(term.metric)) {
      if (parts->unit == "%") {
        term.bound /= 100;
      } else if (!parts->unit.empty()) {
        return error(fmt::format("unit: found '{}', expected % or nothing", parts->unit));
      }
      if (term.bound > 1) {
        return error(fmt::format("bound: found {}, expected a fraction from 0 to 1", term.bound));
      }
      return {};
    }
    if (!parts->unit.empty()) {
      return error(fmt::format("unit: found '{}', expected none (it is per second)", parts->unit));
    }
    return {};
  }

  std::string_view flag_, piece_;
};

}  // namespace

const char* slo_metric_name(SloMetric metric) {
  return name_in(kMetrics, metric);
}
const char* slo_statistic_name(SloStatistic statistic) {
  return name_in(kStatistics, statistic);
}
const char* slo_comparison_text(SloComparison comparison) {
  return name_in(kComparisons, comparison);
}
bool slo_is_latency(SloMetric metric) {
  return metric <= SloMetric::kE2eIntended;
}

bool SloTerm::holds(double value) const {
  switch (comparison) {
    case SloComparison::kLess:
      return value < bound;
    case SloComparison::kLessEqual:
      return value <= bound;
    case SloComparison::kGreater:
      return value > bound;
    case SloComparison::kGreaterEqual:
      return value >= bound;
  }
  return false;
}

Result<SloTerm> parse_slo_name(std::string_view name, std::string_view flag,
                               std::string_view piece) {
  SloTerm term;
  if (auto read = TermParser(flag, piece).read_name(trimmed(name), term); !read) {
    return read.error();
  }
  return term;
}

Result<Slo> parse_slo(std::string_view text, std::string_view flag) {
  Slo slo;
  for (size_t begin = 0; begin <= text.size();) {
    const auto comma = std::min(text.find(',', begin), text.size());
    const auto piece = trimmed(text.substr(begin, comma - begin));
    if (piece.empty()) {
      return piece_error(flag, text, "empty term, expected one like ttft_p99<=500ms");
    }
    auto term = TermParser(flag, piece).parse();
    if (!term) return term.error();
    slo.terms.push_back(*term);
    begin = comma + 1;
  }
  return slo;
}

std::string slo_text(const SloTerm& term) {
  const bool latency = slo_is_latency(term.metric);
  return fmt::format("{}{}{}{}{}{}", slo_metric_name(term.metric), latency ? "_" : "",
                     slo_statistic_name(term.statistic), slo_comparison_text(term.comparison),
                     term.bound, latency ? "ms" : "");
}

std::string slo_text(const Slo& slo) {
  std::string text;
  for (const auto& term : slo.terms) {
    if (!text.empty()) text += ',';
    text += slo_text(term);
  }
  return text;
}

namespace {

// "mlperf:NAME" stands for the two bounds of that benchmark.
Result<void> read_mlperf_piece(std::string_view name, std::string_view flag, RequestSlo& slo) {
  const auto* preset = find_mlperf_slo(name);
  if (preset == nullptr) {
    std::string known;
    for (const auto& one : mlperf_slo_presets()) {
      known += (known.empty() ? "" : ", ") + std::string(one.name);
    }
    return piece_error(flag, name, "unknown preset, expected one of " + known);
  }
  if (slo.ttft_ms || slo.tpot_ms) {
    return piece_error(flag, name, "bounds ttft and tpot, of which one is given already");
  }
  slo.ttft_ms = preset->ttft_ms;
  slo.tpot_ms = preset->tpot_ms;
  return {};
}

Result<void> read_goodput_piece(std::string_view piece, std::string_view flag, RequestSlo& slo) {
  const auto error = [&](std::string_view reason) { return piece_error(flag, piece, reason); };
  constexpr std::string_view kMlperf = "mlperf:";
  if (piece.starts_with(kMlperf)) return read_mlperf_piece(piece.substr(kMlperf.size()), flag, slo);
  const auto colon = piece.find(':');
  if (colon == std::string_view::npos) {
    return error("no colon found, expected METRIC:MILLISECONDS as in ttft:200");
  }
  const auto name = canonical_metric(trimmed(piece.substr(0, colon)));
  std::optional<double>* target = nullptr;
  if (name == "ttft") target = &slo.ttft_ms;
  if (name == "tpot") target = &slo.tpot_ms;
  if (name == "e2e") target = &slo.e2e_ms;
  if (name == "ttft_intended") target = &slo.ttft_intended_ms;
  if (name == "e2e_intended") target = &slo.e2e_intended_ms;
  if (target == nullptr) {
    return error(fmt::format(
        "unknown metric '{}', expected ttft, tpot, e2el (or e2e), ttft_intended or e2e_intended",
        name));
  }
  if (target->has_value()) return error(fmt::format("{} is given twice", name));
  const auto value = trimmed(piece.substr(colon + 1));
  const auto parts = split_number(value);
  if (!parts || !(parts->unit.empty() || parts->unit == "ms")) {
    return error(fmt::format("bound: found '{}', expected a number of milliseconds", value));
  }
  if (!(parts->number > 0)) {
    return error(fmt::format("bound: found {}, expected more than 0", value));
  }
  *target = parts->number;
  return {};
}

}  // namespace

Result<RequestSlo> parse_goodput(std::string_view text, std::string_view flag) {
  RequestSlo slo;
  constexpr std::string_view kSeparators = " \t\r\n,";
  for (size_t begin = text.find_first_not_of(kSeparators); begin != std::string_view::npos;) {
    const auto end = std::min(text.find_first_of(kSeparators, begin), text.size());
    if (auto read = read_goodput_piece(text.substr(begin, end - begin), flag, slo); !read) {
      return read.error();
    }
    begin = text.find_first_not_of(kSeparators, end);
  }
  if (slo.empty()) {
    return piece_error(flag, text, "nothing found, expected bounds like ttft:200 tpot:50");
  }
  return slo;
}

Result<RequestSlo> parse_goodput(std::span<const std::string> pieces, std::string_view flag) {
  std::string text;
  for (const auto& piece : pieces) {
    if (!text.empty()) text += ' ';
    text += piece;
  }
  return parse_goodput(text, flag);
}

std::string goodput_text(const RequestSlo& slo) {
  std::string text;
  const auto add = [&](const char* name, const std::optional<double>& bound) {
    if (!bound) return;
    if (!text.empty()) text += ' ';
    text += fmt::format("{}:{}", name, *bound);
  };
  add("ttft", slo.ttft_ms);
  add("tpot", slo.tpot_ms);
  add("e2e", slo.e2e_ms);
  add("ttft_intended", slo.ttft_intended_ms);
  add("e2e_intended", slo.e2e_intended_ms);
  return text;
}

}  // namespace prony::core
