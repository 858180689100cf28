// The names of the SLO grammar alone, "ttft_p99" or "error_rate", for other grammars over the same
// names (compare/rule.hpp). Thread safety: pure functions.
#pragma once
#include <string_view>

#include "prony/core/slo.hpp"

namespace prony::core {

/// Metric and statistic of the term; comparison and bound are left as they are. Errors are those of
/// parse_slo: "FLAG: 'PIECE': unknown metric ...".
Result<SloTerm> parse_slo_name(std::string_view name, std::string_view flag,
                               std::string_view piece);

}  // namespace prony::core
