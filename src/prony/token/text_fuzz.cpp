// Fuzzes text streaming: a byte stream cut as the input says must give the text of the uncut one,
// valid at every cut, and stop strings must be found wherever the cuts lie.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/check.hpp"
#include "prony/token/byte_tokenizer.hpp"
#include "prony/token/detokenizer.hpp"
#include "prony/token/quote.hpp"
#include "prony/token/stop_matcher.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace prony::token;
  if (size < 4) return 0;
  // Four bytes of control: cut length, number and length of stops, include_stop.
  const size_t cut = 1 + data[0] % 7, stop_count = data[1] % 4, stop_length = 1 + data[2] % 5;
  const bool include_stop = data[3] % 2 != 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 4), size - 4);

  std::string whole;
  Utf8Stream once;
  once.push(bytes, whole);
  once.flush(whole);
  PRONY_CHECK(is_valid_utf8(whole));
  PRONY_CHECK((whole == bytes) == is_valid_utf8(bytes));
  PRONY_CHECK(ByteTokenizer().decode(ByteTokenizer().encode(bytes)) == whole);
  PRONY_CHECK(is_valid_utf8(quote(bytes)));

  std::vector<std::string> stops;
  for (size_t i = 0; i < stop_count && i * stop_length < bytes.size(); ++i) {
    stops.emplace_back(bytes.substr(i * stop_length, stop_length));
  }
  auto matcher = StopMatcher::create(stops, include_stop);
  if (!matcher) return 0;  // a stop that is not UTF-8

  Utf8Stream stream;
  std::string text, shown;
  for (size_t at = 0; at < bytes.size() && !matcher->stopped(); at += cut) {
    std::string piece;
    stream.push(bytes.substr(at, cut), piece);
    PRONY_CHECK(is_valid_utf8(piece));
    text += piece;
    matcher->push(piece, shown);
    PRONY_CHECK(is_valid_utf8(shown));
  }
  if (!matcher->stopped()) {
    std::string piece;
    stream.flush(piece);
    text += piece;
    PRONY_CHECK(text == whole);
    matcher->push(piece, shown);
  }
  matcher->flush(shown);
  size_t first_end = std::string::npos;
  for (const auto& stop : stops) {
    const size_t at = whole.find(stop);
    if (at != std::string::npos) first_end = std::min(first_end, at + stop.size());
  }
  PRONY_CHECK(matcher->stopped() == (first_end != std::string::npos));
  if (!matcher->stopped()) {
    PRONY_CHECK(shown == whole);
  } else {
    const size_t length = stops[*matcher->matched()].size();
    PRONY_CHECK(shown == whole.substr(0, include_stop ? first_end : first_end - length));
  }
  return 0;
}
