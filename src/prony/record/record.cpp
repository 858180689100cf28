#include "prony/record/record.hpp"

#include "prony/core/file.hpp"

namespace prony::record {

void Validity::refuse(std::string reason) {
  valid = false;
  reasons.push_back(std::move(reason));
}

Result<std::string> record_text(const Record& record) {
  const auto json = record_to_json(record);
  if (auto valid = validate_record(json, "record"); !valid) return valid.error();
  auto text = core::write_json(json, 2);
  if (!text) return text.error();
  *text += '\n';
  return text;
}

Result<void> write_record(const std::string& path, const Record& record) {
  const auto text = record_text(record);
  if (!text) return text.error();
  return core::write_file_atomic(path, *text);
}

Result<Record> read_record(const std::string& path) {
  const auto text = core::read_file(path);
  if (!text) return text.error();
  const auto json = core::parse_json(*text, path);
  if (!json) return json.error();
  return record_from_json(*json, path);
}

}  // namespace prony::record
