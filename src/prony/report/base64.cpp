#include "prony/report/base64.hpp"

#include <algorithm>
#include <cstdint>

namespace prony::report {

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits64 =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t n = std::min<size_t>(3, bytes.size() - i);
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) {
      word = word << 8 | (k < n ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) {
      out.push_back(k <= n ? kDigits64[word >> (18 - 6 * k) & 63] : '=');
    }
  }
  return out;
}

}  // namespace prony::report
