// Template: the part of Jinja2 that chat templates of checkpoints use, parsed once and rendered
// with the settings of Hugging Face transformers (trim_blocks, lstrip_blocks, loop controls). What
// is not understood is an error when parsing, not a surprise in a prompt. docs/chat-templates.md
// lists the constructs, filters and tests, and where Python and this differ.
// Thread safety: immutable; any thread.
// Source: Jinja 3.1 documentation, https://jinja.palletsprojects.com/en/3.1.x/templates/;
// transformers, src/transformers/utils/chat_template_utils.py.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"
#include "prony/token/jinja_text.hpp"

namespace prony::token::jinja {

/// Bounds of one rendering: beyond them it is an error, never a hang.
struct RenderLimits {
  size_t output_bytes = size_t{64} << 20;
  size_t memory_bytes = size_t{256} << 20;  // of everything made on the way
  int64_t steps = 5'000'000;                // expressions, statements, items, characters looked at
  int depth = 600;                          // of nested expressions, bodies and calls
};

struct RenderOptions {
  RenderLimits limits;
  /// Members of the context whose strings come from outside; they are marked in the output.
  std::vector<std::string> foreign;
  int64_t now_s = 0;  // what strftime_now() shows, in UTC: seconds since 1970
};

struct Body;  // jinja_ast.hpp

class Template {
 public:
  /// Error: kInvalidArgument, "NAME:LINE: found ..., expected ...".
  static Result<Template> parse(std::string_view text, std::string_view name);

  /// `context`: an object; its members are the variables. Error: kInvalidArgument,
  /// "NAME:LINE: ..."; of raise_exception(m): m.
  Result<Text> render(const core::Json& context, const RenderOptions& options) const;
  Result<std::string> render(const core::Json& context, const RenderLimits& limits = {}) const;

 private:
  Template(std::shared_ptr<const Body> body, std::string_view name);
  std::shared_ptr<const Body> body_;
  std::string name_;
};

}  // namespace prony::token::jinja
