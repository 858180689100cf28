// Fuzzes tokenizer.json: any JSON is a tokenizer or an error, and a tokenizer encodes any text into
// ids that it knows and decodes them to valid UTF-8. Input: JSON, a byte 0, a text.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/check.hpp"
#include "prony/core/json.hpp"
#include "prony/token/detokenizer.hpp"
#include "prony/token/hf_tokenizer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace prony;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  const auto json = core::parse_json(input.substr(0, end), "fuzz");
  if (!json) return 0;
  const auto tokenizer = token::HfTokenizer::parse(*json, *json, {}, "fuzz");
  if (!tokenizer) return 0;
  const std::string_view text =
      end == std::string_view::npos ? "Hello <s> 12 \u00e9" : input.substr(end + 1);
  const auto ids = (*tokenizer)->encode(text, {.add_bos = true, .parse_special = true});
  for (const token::TokenId id : ids) PRONY_CHECK((*tokenizer)->is_valid(id));
  PRONY_CHECK(token::is_valid_utf8((*tokenizer)->decode(ids, {.skip_special = false})));
  return 0;
}
