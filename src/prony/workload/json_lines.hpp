// JsonLines: the objects of a JSON Lines file, one a line, with fields read by name and refused by
// file and line. LF and CRLF, a byte order mark and blank lines are accepted.
// Thread safety: none.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"

namespace prony::workload {

class JsonLines {
 public:
  /// Keeps `content` by reference; `path` is for messages.
  JsonLines(std::string_view content, std::string path);

  /// Reads the next object; false at the end. Error: kInvalidArgument for a line that is no object.
  Result<bool> next();

  /// Member of the current object, or null. Requires next() to have said true.
  const core::Json* find(std::string_view name) const;
  /// A finite number >= 0. Error: kInvalidArgument, "FILE:LINE: NAME: found 'x', expected ...".
  Result<double> number(std::string_view name) const;
  /// An integer in 0..kTokensMax. Error: likewise.
  Result<int32_t> tokens(std::string_view name) const;
  Error unexpected(std::string_view name, std::string_view what) const;

 private:
  std::string_view rest_;
  std::string path_;
  int64_t line_ = 0;  // of the current object, from 1
  core::Json object_;
};

}  // namespace prony::workload
