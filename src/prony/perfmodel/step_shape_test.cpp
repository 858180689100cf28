// Tests of attention counts against enumeration of every (query, key) pair.
#include <gtest/gtest.h>

#include <set>

#include "prony/core/rng.hpp"
#include "prony/perfmodel/step_shape.hpp"

namespace prony::perfmodel {
namespace {

// What a row asks by the definition: the query at position p sees positions q <= p with
// p - q < window.
AttentionLoad enumerate(const StepRow& row, std::optional<int32_t> window) {
  AttentionLoad load;
  load.rows = 1;
  std::set<int64_t> keys;
  for (int64_t p = row.context; p < row.context + row.new_tokens; ++p) {
    ++load.queries;
    for (int64_t q = 0; q <= p; ++q) {
      if (window && p - q >= *window) continue;
      load.pairs += 1;
      keys.insert(q);
    }
  }
  load.keys = static_cast<int64_t>(keys.size());
  return load;
}

void expect_equal(const AttentionLoad& a, const AttentionLoad& b) {
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.queries, b.queries);
  EXPECT_EQ(a.keys, b.keys);
  EXPECT_EQ(a.pairs, b.pairs);
}

TEST(AttentionLoad, EqualsEnumerationForEverySmallCase) {
  for (int64_t context = 0; context <= 12; ++context) {
    for (int64_t tokens = 1; tokens <= 12; ++tokens) {
      const StepRow row{context, tokens, true};
      expect_equal(attention_load(row, std::nullopt), enumerate(row, std::nullopt));
      for (int32_t window = 1; window <= 26; ++window) {
        SCOPED_TRACE(testing::Message()
                     << context << " cached, " << tokens << " new, window " << window);
        expect_equal(attention_load(row, window), enumerate(row, window));
      }
    }
  }
}

TEST(AttentionLoad, ClosedForms) {
  // A whole prompt of s: s (s + 1) / 2 pairs. A decode at context c: c + 1.
  EXPECT_EQ(attention_load({0, 2048, true}, std::nullopt).pairs, 2048.0 * 2049 / 2);
  EXPECT_EQ(attention_load({4096, 1, true}, std::nullopt).pairs, 4097);
  EXPECT_EQ(attention_load({4096, 1, true}, 128).pairs, 128);
  EXPECT_EQ(attention_load({4096, 1, true}, 128).keys, 128);
  // A chunk behind a prefix: s p + s (s + 1) / 2.
  EXPECT_EQ(attention_load({1000, 24, true}, std::nullopt).pairs, 24 * 1000.0 + 24 * 25 / 2);
}

TEST(AttentionLoad, ChunksOfAPromptAddUpToTheWhole) {
  for (const std::optional<int32_t> window : {std::optional<int32_t>(), std::optional(37)}) {
    double pairs = 0;
    for (int64_t first = 0; first < 200; first += 23) {
      pairs += attention_load({first, std::min<int64_t>(23, 200 - first), true}, window).pairs;
    }
    EXPECT_EQ(pairs, attention_load({0, 200, true}, window).pairs);
  }
}

TEST(StepShape, SumsAnyMixedBatch) {
  core::Rng rng(7);
  for (int round = 0; round < 50; ++round) {
    StepShape shape;
    AttentionLoad decode, prefill;
    int64_t tokens = 0, samples = 0, sequences = 0;
    const auto row_count = 1 + static_cast<int64_t>(rng.uniform() * 20);
    for (int64_t i = 0; i < row_count; ++i) {
      StepRow row;
      row.context = static_cast<int64_t>(rng.uniform() * 60);
      row.new_tokens = rng.uniform() < 0.5 ? 1 : 1 + static_cast<int64_t>(rng.uniform() * 40);
      row.samples = rng.uniform() < 0.7;
      const auto count = 1 + static_cast<int64_t>(rng.uniform() * 3);
      shape.add(row, count);
      tokens += count * row.new_tokens;
      samples += row.samples ? count : 0;
      sequences += count;
      const AttentionLoad one = enumerate(row, 16);
      AttentionLoad& sum = row.new_tokens == 1 ? decode : prefill;
      sum.rows += count;
      sum.queries += count * one.queries;
      sum.keys += count * one.keys;
      sum.pairs += static_cast<double>(count) * one.pairs;
    }
    EXPECT_EQ(shape.tokens(), tokens);
    EXPECT_EQ(shape.samples(), samples);
    EXPECT_EQ(shape.sequences(), sequences);
    expect_equal(shape.load(RowKind::kDecode, 16), decode);
    expect_equal(shape.load(RowKind::kPrefill, 16), prefill);
  }
}

TEST(StepShape, ClearForgetsEverything) {
  StepShape shape;
  shape.add({5, 3, true}, 2);
  shape.clear();
  EXPECT_TRUE(shape.empty());
  EXPECT_EQ(shape.tokens() + shape.samples() + shape.sequences(), 0);
  EXPECT_EQ(shape.load(RowKind::kPrefill, std::nullopt).rows, 0);
}

TEST(StepShape, RefusesRowsOfNoWork) {
  StepShape shape;
  EXPECT_DEATH(shape.add({0, 0, true}), "row of no work");
  EXPECT_DEATH(shape.add({-1, 1, true}), "row of no work");
  EXPECT_DEATH(shape.add({0, 1, true}, 0), "row of no work");
}

}  // namespace
}  // namespace prony::perfmodel
