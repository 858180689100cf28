#include "prony/plan/prices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "prony/catalog/hardware_file.hpp"
#include "prony/cost/model.hpp"

namespace prony::plan {
namespace {

struct Hour {
  double usd = 0;
  std::string name;
};

Hour hour_of(const cost::PriceEntry& entry) {
  return {cost::hourly(entry.inputs).total, entry.book + "/" + entry.id};
}

}  // namespace

void set_prices(std::vector<Device>& devices, const std::vector<cost::PriceEntry>& entries,
                const std::vector<cost::PriceEntry>& named) {
  for (Device& device : devices) {
    std::vector<Hour> hours;
    for (const auto& entry : named) {
      if (entry.hardware == device.hardware.id) hours.push_back(hour_of(entry));
    }
    if (hours.empty()) {
      for (const auto& entry : entries) {
        if (entry.hardware == device.hardware.id) hours.push_back(hour_of(entry));
      }
    }
    if (hours.empty()) continue;
    std::stable_sort(hours.begin(), hours.end(),
                     [](const Hour& a, const Hour& b) { return a.usd < b.usd; });
    const Hour& middle = hours[(hours.size() - 1) / 2];
    device.usd_per_hour = middle.usd;
    device.price = middle.name;
  }
}

Result<std::vector<Device>> priced_devices(const std::vector<std::string>& hardware,
                                           const std::vector<std::string>& prices) {
  const auto entries = cost::load_price_books();
  if (!entries) return entries.error();
  std::vector<cost::PriceEntry> named;
  for (const std::string& id : prices) {
    auto entry = cost::find_price(id);
    if (!entry) return entry.error();
    named.push_back(*std::move(entry));
  }
  std::vector<std::string> names = hardware;
  if (names.empty()) {
    // Books may have devices that the catalogue lacks.
    const auto catalogued = catalog::hardware_ids();
    if (!catalogued) return catalogued.error();
    std::set<std::string> priced;
    for (const auto& entry : *entries) priced.insert(entry.hardware);
    std::set_intersection(priced.begin(), priced.end(), catalogued->begin(), catalogued->end(),
                          std::back_inserter(names));
  }
  std::vector<Device> devices;
  for (const std::string& name : names) {
    auto spec = catalog::resolve_hardware(name);
    if (!spec) return spec.error();
    devices.push_back({.hardware = *std::move(spec), .usd_per_hour = {}, .price = {}});
  }
  for (const auto& entry : named) {
    const bool wanted = std::any_of(devices.begin(), devices.end(), [&](const Device& device) {
      return device.hardware.id == entry.hardware;
    });
    if (wanted) continue;
    return invalid_argument(fmt::format("--price: {}/{} is of {}, which is not among --hardware",
                                        entry.book, entry.id, entry.hardware));
  }
  set_prices(devices, *entries, named);
  return devices;
}

}  // namespace prony::plan
