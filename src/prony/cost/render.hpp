// The answer of the money model as JSON (prony.cost/1) and as a table for people.
// Thread safety: pure functions.
#pragma once
#include <string>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"
#include "prony/cost/model.hpp"
#include "prony/cost/price_book.hpp"

namespace prony::cost {

inline constexpr const char* kCostSchema = "prony.cost/1";

struct Answer {
  PriceEntry entry;  // inputs as used; without id if all came from flags
  Rates rates;
  std::string source;  // of the rates: "flags", or a record's path with its source
  double step = 0.1;   // of the tornado
  std::vector<Change> changes;
};

/// A published table repeated from its own inputs: figures printed and figures that follow.
/// `tokens_at_match` is how many tokens a request must have for the printed price to hold.
struct Repeat {
  std::string what;  // "USD per GPU-hour", "USD per 1k tokens"
  double printed = 0;
  std::optional<double> computed;         // nullopt: an input is missing
  std::optional<double> tokens_at_match;  // tokens a request, where the source leaves it out
  std::optional<double> usd_per_year;     // revenue of one GPU at the printed price, one token each
};
std::vector<Repeat> repeat_published(const PriceEntry& entry);

/// Error: kInvalidArgument where a change leaves the range of its input.
Result<core::Json> answer_json(const Answer& answer);
Result<std::string> answer_table(const Answer& answer);
std::string book_table(const std::vector<PriceEntry>& entries);

}  // namespace prony::cost
