// Html: builds markup so that no text of a run can become markup. Only literals of this program go
// in as they are (Markup can be made of nothing else, the compiler sees to it); every other string
// passes text(), which escapes it for element content and for quoted attribute values alike.
// Thread safety: none; one writer a page.
#pragma once
#include <string>
#include <string_view>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"

namespace prony::report {

/// Markup known at compile time.
class Markup {
 public:
  template <size_t kSize>
  consteval Markup(const char (&literal)[kSize])  // NOLINT: implicit
      : text_(literal, kSize - 1) {}
  std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

class Html {
 public:
  Html& raw(Markup markup);
  /// Escaped; invalid UTF-8, control characters and bidirectional overrides (which would let a
  /// server's text reorder what stands around it) become U+FFFD.
  Html& text(std::string_view untrusted);
  /// Assets that the build made and hashed: style sheet, script. Nothing from a run.
  Html& asset(std::string_view trusted);
  /// JSON for a <script type="application/json"> block. Error: as core::write_json.
  Result<void> json(const core::Json& json);

  const std::string& str() const& { return out_; }
  std::string str() && { return std::move(out_); }

 private:
  std::string out_;
};

/// At most `max_characters` of `text` (UTF-8 kept whole), with an ellipsis if some were cut: an
/// error body may be a megabyte of HTML.
std::string shorten(std::string_view text, size_t max_characters);

}  // namespace prony::report
