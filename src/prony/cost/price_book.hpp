// Price books: data/prices/*.yaml, inputs of the money model by name and date, each number with
// its unit, source and origin. An entry may carry the figure that its source printed, so that the
// arithmetic of a published table can be repeated. docs/cost.md describes the format.
// Thread safety: pure functions; load_* read the files anew.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prony/catalog/yaml_map.hpp"
#include "prony/core/result.hpp"
#include "prony/cost/inputs.hpp"

namespace prony::cost {

/// Where one number of an entry comes from.
struct Cited {
  Field field = Field::kCapexUsd;
  catalog::Origin origin = catalog::Origin::kAssumed;
  std::string ref;  // text, not key
};

/// What the source of an entry states of its own result.
struct Published {
  std::optional<double> usd_per_gpu_hour;
  std::optional<double> usd_per_1k_tokens;
  std::optional<double> requests_per_s;      // of one GPU
  std::optional<double> tokens_per_request;  // absent: the source does not say
};

struct PriceEntry {
  std::string id;
  std::string book;
  std::string as_of;     // YYYY-MM-DD, or YYYY-MM where the day is not known
  std::string hardware;  // catalogue id
  std::string note;
  Inputs inputs;
  std::vector<Cited> cited;
  Published published;
};

/// `name` is the file, for messages. Error: kInvalidArgument, "NAME:LINE: ...".
Result<std::vector<PriceEntry>> parse_price_book(std::string_view text, std::string_view name);

/// All entries of data/prices, by book and id. Error: as parse_price_book, or kEnvironment.
Result<std::vector<PriceEntry>> load_price_books();
/// "ID" or "BOOK/ID". Error: kInvalidArgument, with the entries that contain it, or if ID is in two
/// books.
Result<PriceEntry> find_price(std::string_view id);

std::string_view origin_name(catalog::Origin origin);

}  // namespace prony::cost
