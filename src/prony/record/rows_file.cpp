#include "prony/record/rows_file.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace prony::record {

RowsWriter::RowsWriter(core::AtomicFile file, const RowFormat& format)
    : file_(std::move(file)), format_(format) {}

Result<RowsWriter> RowsWriter::create(const std::string& path, const RowFormat& format) {
  auto file = core::AtomicFile::create(path);
  if (!file) return file.error();
  return RowsWriter(std::move(*file), format);
}

void RowsWriter::append(const RequestRow& row) {
  // No number in a row can be infinite: all are counts, stamps and differences of stamps.
  file_.append(core::write_json(row_to_json(row, format_)).value());
  file_.append("\n");
}

Result<void> RowsWriter::commit() {
  return file_.commit();
}

Result<void> write_rows(const std::string& path, const RowSource& rows, const RowFormat& format) {
  auto writer = RowsWriter::create(path, format);
  if (!writer) return writer.error();
  rows.for_each([&](const RequestRow& row) { writer->append(row); });
  return writer->commit();
}

Result<std::vector<RequestRow>> read_rows(const std::string& path) {
  const auto text = core::read_file(path);
  if (!text) return text.error();
  std::vector<RequestRow> rows;
  int64_t line_number = 0;
  for (size_t begin = 0; begin < text->size();) {
    const auto end = std::min(text->find('\n', begin), text->size());
    const auto line = std::string_view(*text).substr(begin, end - begin);
    const auto where = fmt::format("{}:{}", path, ++line_number);
    begin = end + 1;
    const auto json = core::parse_json(line, where);
    if (!json) return json.error();
    auto row = row_from_json(*json, where);
    if (!row) return row.error();
    rows.push_back(std::move(*row));
  }
  return rows;
}

}  // namespace prony::record
