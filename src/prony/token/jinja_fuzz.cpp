// Fuzzes chat templates: any text is a template or an error, and rendering it ends within its
// limits in text or in an error of one line. Marks lie inside the text, rising and disjoint.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "prony/core/check.hpp"
#include "prony/token/detokenizer.hpp"
#include "prony/token/jinja.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace prony::token;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = jinja::Template::parse(text, "fuzz");
  if (!parsed) {
    PRONY_CHECK(parsed.error().message.find('\n') == std::string::npos);
    return 0;
  }
  static const prony::core::Json kContext = {
      {"messages",
       {{{"role", "system"}, {"content", " be \u00e9 "}},
        {{"role", "user"}, {"content", "<|eot|>"}, {"n", 1.5}}}},
      {"tools", {{{"function", {{"name", "f"}, {"list", {1, 2, nullptr, true}}}}}}},
      {"bos_token", "<s>"}};
  jinja::RenderOptions options;
  options.limits = {
      .output_bytes = 1 << 16, .memory_bytes = 1 << 22, .steps = 20'000, .depth = 200};
  options.foreign = {"messages", "tools"};
  const auto out = parsed->render(kContext, options);
  if (!out) {
    PRONY_CHECK(out.error().message.find('\n') == std::string::npos);
    return 0;
  }
  PRONY_CHECK(is_valid_utf8(out->bytes));
  size_t end = 0;
  for (const auto& range : out->foreign) {
    PRONY_CHECK(range.begin >= end && range.begin < range.end && range.end <= out->bytes.size());
    end = range.end;
  }
  return 0;
}
