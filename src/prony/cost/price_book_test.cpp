#include "prony/cost/price_book.hpp"

#include <gtest/gtest.h>

#include "prony/core/file.hpp"
#include "prony/cost/render.hpp"

namespace prony::cost {
namespace {

std::vector<PriceEntry> shipped(const std::string& file) {
  const std::string path = std::string(PRONY_SOURCE_DIR) + "/data/prices/" + file;
  auto entries = parse_price_book(core::read_file(path).value(), path);
  EXPECT_TRUE(entries.ok()) << (entries.ok() ? "" : entries.error().message);
  return entries.ok() ? *entries : std::vector<PriceEntry>();
}

const PriceEntry& by_id(const std::vector<PriceEntry>& entries, std::string_view id) {
  for (const auto& entry : entries) {
    if (entry.id == id) return entry;
  }
  ADD_FAILURE() << "no entry " << id;
  return entries.front();
}

// Golden: InferenceX prints 1.30 USD for an H100-hour; the arithmetic from stated inputs is within
// 5 %.
TEST(PriceBook, GivesInferenceXHour) {
  const auto entries = shipped("inferencex.yaml");
  const auto& entry = by_id(entries, "h100-sxm-hyperscaler");
  const auto hour = hourly(entry.inputs);
  EXPECT_NEAR(hour.capital, 325000.0 / 8 / 4 / 8760, 1e-9);
  EXPECT_NEAR(hour.energy, 1.275 * 1.25 * 0.08, 1e-9);
  ASSERT_TRUE(entry.published.usd_per_gpu_hour);
  EXPECT_NEAR(hour.total / *entry.published.usd_per_gpu_hour, 1, 0.05);
  EXPECT_NEAR(hour.total, 1.287, 0.001);
  EXPECT_EQ(entries.size(), 25u);
}

TEST(PriceBook, MarketRangesAreRentals) {
  for (const auto& entry : shipped("market.yaml")) {
    EXPECT_EQ(entry.inputs.basis, Basis::kRented) << entry.id;
    EXPECT_DOUBLE_EQ(hourly(entry.inputs).total, entry.inputs[Field::kRentalUsdPerHour]);
  }
}

// The published cost table repeated from its inputs: its prices follow for no common number of
// tokens a query, and at the one token a query that its formula charges a card would cost 700 kUSD.
TEST(PriceBook, PublishedCostTableIsInconsistent) {
  const auto entries = shipped("w1-cost-table.yaml");
  ASSERT_EQ(entries.size(), 3u);
  std::vector<double> tokens;
  for (const auto& entry : entries) {
    const auto repeats = repeat_published(entry);
    ASSERT_EQ(repeats.size(), 1u);
    EXPECT_FALSE(repeats[0].computed);
    ASSERT_TRUE(repeats[0].tokens_at_match);
    tokens.push_back(*repeats[0].tokens_at_match);
  }
  const auto& a100 = by_id(entries, "w1-a100-own");
  EXPECT_NEAR(hourly(a100.inputs).total * 8760, 7917, 5);
  EXPECT_NEAR(*repeat_published(a100)[0].usd_per_year, 693'000, 1000);
  for (const double match : tokens) EXPECT_LT(match, 0.05);  // less than a token a query
}

TEST(PriceBook, PublishedWithTokensIsComputed) {
  const auto entries = parse_price_book(R"(book: t
as_of: "2026-11-30"
refs: {s: test}
entries:
  a:
    basis: rented
    hardware: h100-sxm
    rental_usd_per_hour: {value: 3.6, unit: USD/h, origin: measured, ref: s}
    published:
      requests_per_s: {value: 10, unit: 1/s, origin: measured, ref: s}
      tokens_per_request: {value: 100, unit: tokens, origin: measured, ref: s}
      usd_per_1k_tokens: {value: 0.002, unit: USD/1k tokens, origin: measured, ref: s}
)",
                                        "t.yaml");
  ASSERT_TRUE(entries.ok()) << entries.error().message;
  EXPECT_NEAR(*repeat_published(entries->front())[0].computed, 0.001, 1e-12);
}

TEST(PriceBook, RefusesByFileAndLine) {
  const std::string head = "book: t\nas_of: \"2026-11\"\nrefs: {s: test}\nentries:\n  a:\n";
  const std::string rental =
      "    rental_usd_per_hour: {value: 3, unit: USD/h, origin: measured, ref: s}\n";
  const struct {
    std::string text, message;
  } kCases[] = {
      {head + "    basis: rented\n    hardware: x\n", "rental_usd_per_hour: found 0"},
      {head + "    basis: rented\n    hardware: x\n" + rental + "    colour: red\n",
       "b.yaml:9: unknown key 'entries.a.colour'"},
      {head + "    basis: leased\n    hardware: x\n" + rental, "b.yaml:6: entries.a.basis is"},
      {head + "    basis: rented\n    hardware: x\n" +
           "    rental_usd_per_hour: {value: 3, unit: EUR/h, origin: measured, ref: s}\n",
       "b.yaml:8: entries.a.rental_usd_per_hour.unit is 'EUR/h'"},
      {head + "    basis: rented\n    hardware: x\n" +
           "    rental_usd_per_hour: {value: 3, unit: USD/h, origin: measured}\n",
       "ref is missing"},
      {head + "    basis: rented\n    hardware: x\n" +
           "    rental_usd_per_hour: {value: -3, unit: USD/h, origin: measured, ref: s}\n",
       "b.yaml:8: entries.a.rental_usd_per_hour.value is '-3'"},
      {"book: t\nas_of: soon\nrefs: {s: test}\nentries: {}\n", "as_of is 'soon'"},
      {"book: t\nas_of: \"2026-13\"\nrefs: {s: test}\nentries: {}\n", "as_of is '2026-13'"},
      {"book: t\nas_of: \"2026-11\"\nrefs: {s: test}\nentries: {}\n", "entries is empty"},
      {head + "    basis: rented\n    hardware: x\n" + rental +
           "    pue: {value: 0.5, unit: \"1\", origin: assumed, ref: s}\n",
       "b.yaml:9: entries.a.pue.value is '0.5'"},
  };
  for (const auto& bad : kCases) {
    const auto entries = parse_price_book(bad.text, "b.yaml");
    ASSERT_FALSE(entries.ok()) << bad.message;
    EXPECT_NE(entries.error().message.find(bad.message), std::string::npos)
        << entries.error().message;
  }
}

}  // namespace
}  // namespace prony::cost
