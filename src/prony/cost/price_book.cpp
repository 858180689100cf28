#include "prony/cost/price_book.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "prony/catalog/catalog.hpp"
#include "prony/core/file.hpp"

namespace prony::cost {
namespace {

using catalog::Unit;
using catalog::YamlMap;

// Units in which a field may be written; the first is the program's own.
std::vector<Unit> units_of(const FieldInfo& field) {
  std::vector<Unit> out = {{field.unit, 1}};
  const auto also = [&out](std::string_view name, double factor) { out.push_back({name, factor}); };
  if (field.unit == "1") also("%", 0.01);
  if (field.unit == "1/year") also("%/year", 0.01);
  if (field.unit == "W") also("kW", 1000);
  if (field.unit == "USD") also("kUSD", 1000);
  if (field.unit == "USD/year") also("USD/month", 12);
  if (field.unit == "USD/kWh") also("USD/MWh", 0.001);
  if (field.unit == "year") also("month", 1.0 / 12);
  return out;
}

bool is_date(std::string_view text) {
  constexpr std::string_view kShape = "dddd-dd-dd";
  if (text.size() != 7 && text.size() != 10) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kShape[i] == 'd' ? !digit : text[i] != '-') return false;
  }
  const int month = (text[5] - '0') * 10 + text[6] - '0';
  const int day = text.size() == 7 ? 1 : (text[8] - '0') * 10 + text[9] - '0';
  return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

void read_fields(YamlMap& map, const YamlMap& refs, PriceEntry& entry) {
  for (const auto& field : fields()) {
    if (!map.has(field.name)) continue;
    const auto quantity = map.quantity(field.name, units_of(field), field.min, 1e9, refs);
    entry.inputs[field.field] = quantity.value;
    const std::string* ref = refs.find_text(quantity.ref);
    std::erase_if(entry.cited, [&field](const Cited& old) { return old.field == field.field; });
    entry.cited.push_back({field.field, quantity.origin, ref ? *ref : quantity.ref});
  }
}

void read_published(YamlMap map, const YamlMap& refs, Published& out) {
  const auto read = [&](std::string_view key, std::string_view unit,
                        std::optional<double>& target) {
    const Unit units[] = {{unit, 1}};
    if (map.has(key)) target = map.quantity(key, units, 0, 1e9, refs).value;
  };
  read("usd_per_gpu_hour", "USD/h", out.usd_per_gpu_hour);
  read("usd_per_1k_tokens", "USD/1k tokens", out.usd_per_1k_tokens);
  read("requests_per_s", "1/s", out.requests_per_s);
  read("tokens_per_request", "tokens", out.tokens_per_request);
  map.done();
}

}  // namespace

std::string_view origin_name(catalog::Origin origin) {
  switch (origin) {
    case catalog::Origin::kDatasheet:
      return "datasheet";
    case catalog::Origin::kMeasured:
      return "measured";
    case catalog::Origin::kAssumed:
      return "assumed";
  }
  return "assumed";
}

Result<std::vector<PriceEntry>> parse_price_book(std::string_view text, std::string_view name) {
  const auto document = catalog::parse_yaml(text, name);
  if (!document) return document.error();
  catalog::YamlErrors errors(name);
  YamlMap top(*document, "", errors);
  const std::string book = top.text("book");
  const std::string as_of = top.text("as_of");
  if (!is_date(as_of)) {
    errors.add(top.line(), fmt::format("as_of is '{}', expected YYYY-MM or YYYY-MM-DD", as_of));
  }
  const YamlMap refs = top.refs("refs");
  PriceEntry common;
  if (auto shared = top.maybe_map("common")) {
    read_fields(*shared, refs, common);
    shared->done();
  }
  top.map("entries");
  top.done();
  if (!errors.empty()) return errors.first();

  std::vector<PriceEntry> out;
  for (const auto& item : document->find("entries")->value.entries) {
    const std::string path = fmt::format("entries.{}.", item.key);
    if (item.value.kind != catalog::YamlValue::Kind::kMap) {
      errors.add(item.line, fmt::format("entries.{} is no map", item.key));
      break;
    }
    YamlMap map(item.value, path, errors);
    constexpr std::string_view kBases[] = {"owned", "rented"};
    PriceEntry entry = common;
    entry.id = item.key;
    entry.book = book;
    entry.as_of = as_of;
    entry.inputs.basis = static_cast<Basis>(map.word("basis", kBases));
    entry.hardware = map.text("hardware");
    if (map.has("note")) entry.note = map.text("note");
    read_fields(map, refs, entry);
    if (auto published = map.maybe_map("published")) {
      read_published(*published, refs, entry.published);
    }
    map.done();
    if (auto checked = check(entry.inputs); !checked) {
      errors.add(item.line, path + checked.error().message);
    }
    out.push_back(std::move(entry));
  }
  if (!errors.empty()) return errors.first();
  if (out.empty()) return invalid_argument(fmt::format("{}: entries is empty", name));
  return out;
}

Result<std::vector<PriceEntry>> load_price_books() {
  const auto data = catalog::data_folder();
  if (!data) return data.error();
  const std::filesystem::path folder = std::filesystem::path(*data) / "prices";
  std::vector<std::string> paths;
  std::error_code code;
  for (const auto& file : std::filesystem::directory_iterator(folder, code)) {
    if (file.path().extension() == ".yaml") paths.push_back(file.path().string());
  }
  if (code) {
    return environment_error(fmt::format("cannot read {}: {}", folder.string(), code.message()));
  }
  std::sort(paths.begin(), paths.end());
  std::vector<PriceEntry> out;
  for (const auto& path : paths) {
    const auto text = core::read_file(path);
    if (!text) return text.error();
    auto entries = parse_price_book(*text, path);
    if (!entries) return entries.error();
    out.insert(out.end(), entries->begin(), entries->end());
  }
  return out;
}

Result<PriceEntry> find_price(std::string_view id) {
  const auto all = load_price_books();
  if (!all) return all.error();
  std::vector<const PriceEntry*> found;
  std::string near;
  for (const auto& entry : *all) {
    const std::string full = entry.book + "/" + entry.id;
    if (entry.id == id || full == id) found.push_back(&entry);
    if (full.find(id) != std::string::npos) near += (near.empty() ? "" : ", ") + full;
  }
  if (found.size() == 1) return *found.front();
  if (found.empty()) {
    return invalid_argument(near.empty()
                                ? fmt::format("unknown price '{}', see cost --list", id)
                                : fmt::format("unknown price '{}', expected one of {}", id, near));
  }
  return invalid_argument(fmt::format("price '{}' is in the books {} and {}, expected BOOK/{}", id,
                                      found[0]->book, found[1]->book, id));
}

}  // namespace prony::cost
