// Replays the fuzz corpus (record_fuzz.cpp) in every test run: what is accepted writes and reads
// back as the same value, what is refused says so on one line.
#include <gtest/gtest.h>

#include <filesystem>

#include "prony/core/file.hpp"
#include "prony/record/record.hpp"
#include "prony/record/rows_file.hpp"

namespace prony::record {
namespace {

void expect_one_line(const Error& error, const std::string& name) {
  EXPECT_FALSE(error.message.empty()) << name;
  for (const char c : error.message) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << name;
}

TEST(Corpus, EveryInputIsKeptOrRefused) {
  int files = 0, records = 0, rows = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(PRONY_SOURCE_DIR "/tests/fuzz/record")) {
    const auto name = entry.path().string();
    ++files;
    const auto json = core::parse_json(core::read_file(name).value(), name);
    if (!json) {
      expect_one_line(json.error(), name);
      continue;
    }
    if (const auto record = record_from_json(*json, name); record) {
      ++records;
      EXPECT_EQ(record_from_json(record_to_json(*record), name).value(), *record) << name;
    } else {
      expect_one_line(record.error(), name);
    }
    if (const auto row = row_from_json(*json, name); row) {
      ++rows;
      const auto again = row_from_json(row_to_json(*row, {.detailed = true, .text = true}), name);
      EXPECT_EQ(again.value(), *row) << name;
    } else {
      expect_one_line(row.error(), name);
    }
  }
  EXPECT_GE(files, 10);
  EXPECT_GE(records, 2);
  EXPECT_GE(rows, 4);
}

}  // namespace
}  // namespace prony::record
