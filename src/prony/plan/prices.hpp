// Prices: which devices a plan may choose from and what an hour of each costs, from the price
// books. A device with several entries takes the middle one by price (the lower of two), so that
// neither a bargain nor a list price decides; an entry that is named wins. Thread safety: pure, but
// for the read of the files.
#pragma once
#include <string>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/cost/price_book.hpp"
#include "prony/plan/question.hpp"

namespace prony::plan {

/// `hardware` names devices or slices; empty: every device that has a price. `prices` are entries
/// ("ID" or "BOOK/ID"), each for its own device. Error: as the catalogue and cost::find_price.
Result<std::vector<Device>> priced_devices(const std::vector<std::string>& hardware,
                                           const std::vector<std::string>& prices);

/// The same without files: sets the price of `devices` from `entries`, `named` first.
void set_prices(std::vector<Device>& devices, const std::vector<cost::PriceEntry>& entries,
                const std::vector<cost::PriceEntry>& named);

}  // namespace prony::plan
