// RowStore: whatever went in comes out, once, in the order of the index, from memory and from the
// file, with any number of threads; a full disk loses nothing. And the codec under it.
#include "prony/record/row_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <thread>

#include "prony/record/random_rows.hpp"
#include "prony/record/row_codec.hpp"
#include "prony/record/summary.hpp"

namespace prony::record {
namespace {

TEST(RowCodec, AnyRowComesBackAsItWas) {
  core::Rng rng(1);
  RequestRow back;  // reused: nothing of the row before may stay
  for (int64_t i = 0; i < 5'000; ++i) {
    auto row = random_row(rng, i, 1'000'000'000);
    if (i % 7 == 0) row.issue_lag_ns = static_cast<core::Nanos>(rng.below(1'000'000));
    if (i % 11 == 0) row.t_close_ns = INT64_MIN;  // no clock says so, yet nothing may be lost
    if (i % 13 == 0) row.t_intended_ns = INT64_MAX;
    std::string bytes;
    encode_row(row, bytes);
    ASSERT_TRUE(decode_row(bytes, back));
    ASSERT_EQ(back, row);
  }
}

TEST(RowCodec, HundredEventsAreLessThanAKilobyte) {
  RequestRow row;
  row.id = "prony-12345678-123456";
  row.finish_reason = "length";
  core::Nanos t = row.t_intended_ns = 123'456'789'012'345;
  for (auto* stamp : {&row.t_send_ns, &row.t_sent_ns, &row.t_headers_ns, &row.t_first_event_ns,
                      &row.t_first_token_ns, &row.t_last_token_ns, &row.t_done_ns}) {
    *stamp = t += 50'000'000;
  }
  for (int i = 0; i < 100; ++i) row.events.push_back({t += 10'000'000, t + 25'000, 1});
  std::string bytes;
  encode_row(row, bytes);
  EXPECT_LT(bytes.size(), 950u);
}

TEST(RowCodec, DamageIsSeenOrHarmless) {
  core::Rng rng(2);
  RequestRow back;
  for (int64_t i = 0; i < 2'000; ++i) {
    std::string bytes;
    encode_row(random_row(rng, i, 1'000'000'000), bytes);
    EXPECT_FALSE(decode_row(std::string_view(bytes).substr(0, rng.below(bytes.size())), back));
    EXPECT_FALSE(decode_row(bytes + "x", back));
    bytes[rng.below(bytes.size())] = static_cast<char>(rng.below(256));
    if (decode_row(bytes, back)) {
      EXPECT_NE(status_name(back.status), nullptr);
    }
  }
}

// Rows dealt to `threads` appenders in an order that only roughly follows the index.
RowStore store_of(const std::vector<RequestRow>& rows, const RowStore::Options& options,
                  size_t threads, core::Rng& rng) {
  std::vector<std::pair<uint64_t, const RequestRow*>> order;
  for (const auto& row : rows) {
    const uint64_t late = rng.below(20) == 0 ? rng.below(rows.size()) : rng.below(30);
    order.emplace_back(static_cast<uint64_t>(row.index) + late, &row);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  RowStore store(options);
  std::vector<RowStore::Appender*> appenders;
  for (size_t i = 0; i < threads; ++i) appenders.push_back(&store.add_appender());
  std::vector<std::thread> running;
  for (size_t i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      for (size_t n = i; n < order.size(); n += threads) appenders[i]->append(*order[n].second);
      appenders[i]->flush();
    });
  }
  for (auto& thread : running) thread.join();
  store.seal();
  return store;
}

TEST(RowStore, GivesBackEveryRowInOrderFromMemoryAndFile) {
  core::Rng rng(3);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const auto rows = random_rows(rng, static_cast<int64_t>(rng.below(1'500)), 2'000'000'000);
    RowStore::Options options;
    options.folders = {::testing::TempDir()};
    options.memory_bytes = static_cast<int64_t>(rng.below(3) * rng.below(400'000));
    options.block_bytes = static_cast<int64_t>(1 + rng.below(40'000));
    options.read_ahead_bytes = static_cast<int64_t>(rng.below(2) * rng.below(100'000));
    const auto store = store_of(rows, options, 1 + rng.below(3), rng);
    ASSERT_EQ(store.size(), static_cast<int64_t>(rows.size()));
    EXPECT_EQ(all_rows(store), rows);
    EXPECT_EQ(all_rows(store), rows);  // any number of times
    EXPECT_TRUE(store.status().ok());
    if (options.memory_bytes == 0 && !rows.empty()) {
      EXPECT_GT(store.file_bytes(), 0);
    }
  }
}

TEST(RowStore, SummaryIsTheSameBits) {
  core::Rng rng(4);
  const auto rows = random_rows(rng, 1'200, 5'000'000'000);
  RowStore::Options options;
  options.folders = {::testing::TempDir()};
  options.memory_bytes = 100'000;
  options.block_bytes = 20'000;
  const auto store = store_of(rows, options, 2, rng);
  EXPECT_GT(store.file_bytes(), 0);
  EXPECT_EQ(summarize(store, {}), summarize(rows, {}));
  auto shuffled = rows;
  for (size_t i = shuffled.size(); i > 1; --i) std::swap(shuffled[i - 1], shuffled[rng.below(i)]);
  EXPECT_EQ(summarize(shuffled, {}), summarize(rows, {}));
}

TEST(RowStore, NothingIsNothing) {
  RowStore none;
  EXPECT_TRUE(none.empty());
  RowStore unused((RowStore::Options()));
  unused.add_appender().flush();
  unused.seal();
  unused.seal();
  EXPECT_TRUE(unused.empty());
  none = std::move(unused);
  EXPECT_TRUE(all_rows(none).empty());
  EXPECT_TRUE(none.status().ok());
  const RowStore never_sealed((RowStore::Options()));  // ends its writer all the same
}

TEST(RowStore, TakesTheFirstFolderThatTakesAFile) {
  core::Rng rng(5);
  const auto rows = random_rows(rng, 100, 1'000'000'000);
  RowStore::Options options;
  options.memory_bytes = 0;
  options.folders = {"/no/such/folder", ::testing::TempDir()};
  const auto store = store_of(rows, options, 1, rng);
  EXPECT_TRUE(store.status().ok());
  EXPECT_EQ(all_rows(store), rows);
}

TEST(RowStore, AFullDiskLosesNoRowAndSaysSo) {
  core::Rng rng(6);
  const auto rows = random_rows(rng, 1'000, 1'000'000'000);
  RowStore::Options options;
  options.folders = {::testing::TempDir()};
  options.memory_bytes = 0;
  options.block_bytes = 10'000;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{45'000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto store = store_of(rows, options, 2, rng);
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, old);
  EXPECT_GT(store.file_bytes(), 10'000);
  EXPECT_TRUE(store.failed());
  ASSERT_FALSE(store.status().ok());
  EXPECT_THAT(store.status().error().message, ::testing::HasSubstr("File too large"));
  EXPECT_EQ(all_rows(store), rows);
}

}  // namespace
}  // namespace prony::record
