// libFuzzer target: the readers of foreign records and rows. What is accepted must write and read
// back as the same value; what is refused must say so on one line.
// Run: ./run fuzz (record_test replays the corpus)
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "prony/core/check.hpp"
#include "prony/record/record.hpp"
#include "prony/record/rows_file.hpp"

namespace {

void check_message(const prony::Error& error) {
  PRONY_CHECK(!error.message.empty());
  for (const char c : error.message) PRONY_CHECK(static_cast<unsigned char>(c) >= 0x20);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace prony::record;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = prony::core::parse_json(text, "f.json");
  if (!json) return 0;
  if (const auto record = record_from_json(*json, "f.json"); record) {
    const auto again = record_from_json(record_to_json(*record), "f.json");
    PRONY_CHECK(again.ok() && record_to_json(*again) == record_to_json(*record));
  } else {
    check_message(record.error());
  }
  if (const auto row = row_from_json(*json, "f.json"); row) {
    const auto again = row_from_json(row_to_json(*row, {.detailed = true, .text = true}), "f.json");
    PRONY_CHECK(again.ok() && *again == *row);
  } else {
    check_message(row.error());
  }
  return 0;
}
