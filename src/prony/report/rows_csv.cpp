#include "prony/report/rows_csv.hpp"

#include <string_view>
#include <utility>

#include "prony/core/file.hpp"
#include "prony/record/rows_file.hpp"

namespace prony::report {
namespace {

void append_text(std::string& out, const std::string& text) {
  if (text.empty()) return;
  out.push_back('"');
  if (std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos) {
    out.push_back('\'');
  }
  for (const char c : text) {
    if (c == '"') out.push_back('"');
    out.push_back(c);
  }
  out.push_back('"');
}

}  // namespace

std::string csv_header() {
  std::string out;
  const auto keys = record::row_to_json({}, {});
  for (const auto& [key, value] : keys.items()) {
    if (!out.empty()) out.push_back(',');
    out += key;
  }
  return out + "\n";
}

std::string csv_line(const record::RequestRow& row) {
  std::string out;
  bool first = true;
  const auto json = record::row_to_json(row, {});
  for (const auto& [key, value] : json.items()) {
    if (!std::exchange(first, false)) out.push_back(',');
    if (value.is_string()) {
      append_text(out, value.get_ref<const std::string&>());
    } else if (!value.is_null()) {
      // No number in a row can be infinite.
      out += core::write_json(value).value();
    }
  }
  return out + "\n";
}

Result<void> write_rows_csv(const std::string& path, const record::RowSource& rows) {
  auto file = core::AtomicFile::create(path);
  if (!file) return file.error();
  file->append(csv_header());
  rows.for_each([&](const record::RequestRow& row) { file->append(csv_line(row)); });
  return file->commit();
}

}  // namespace prony::report
