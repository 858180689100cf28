// The answer of a search on a terminal, and how each level was judged.
#include <fmt/format.h>

#include "prony/cli/search_runner.hpp"

namespace prony::cli {
namespace {

std::string shown(const record::Search& search, double level) {
  const bool rate = search.objective == "max-rate";
  return rate ? fmt::format("{:.3g}", level) : fmt::format("{:.0f}", level);
}

}  // namespace

std::string search_table(const record::Search& search) {
  const bool rate = search.objective == "max-rate";
  const std::string what = rate ? "max rate" : "max concurrency", per = rate ? "/s" : "";
  std::string out;
  if (search.value) {
    out = fmt::format("{} {}{} [{}, {}] keeps {}\n", what, shown(search, *search.value), per,
                      shown(search, *search.lower), shown(search, *search.upper), search.slo);
  } else if (search.lower) {
    out = fmt::format("{} at least {}{} keeps {}\n", what, shown(search, *search.lower), per,
                      search.slo);
  } else if (search.upper) {
    out = fmt::format("{} below {}{}: that breaks {}\n", what, shown(search, *search.upper), per,
                      search.slo);
  } else {
    out = fmt::format("{} not found: no probe was certain\n", what);
  }
  if (!search.limiting.empty()) {
    out += fmt::format("limited by {}{}\n", search.limiting,
                       search.overloaded_above ? "; the server is overloaded there" : "");
  }
  out += fmt::format("ended: {}, {} probes\n\n", search.end, search.probes.size());
  out += fmt::format("{:>12}  {:<10}{:>9}  terms: beyond the bound, of all (allowed)\n", "level",
                     "verdict", "requests");
  for (const auto& level : search.levels) {
    std::string terms;
    for (const auto& term : level.terms) {
      if (!term.estimate) continue;
      terms += fmt::format("{}{} {:.3g} [{:.3g}, {:.3g}] ({:.3g})", terms.empty() ? "" : "; ",
                           term.text, *term.estimate, *term.lower, *term.upper, term.allowed);
    }
    out += fmt::format("{:>12}  {:<10}{:>9}  {}\n", fmt::format("{:.4g}{}", level.level, per),
                       level.verdict, level.requests, terms);
  }
  return out;
}

}  // namespace prony::cli
