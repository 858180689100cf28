// What must hold of any bytes given as a profile, for the fuzzer and for the test that replays its
// corpus: the four files, NUL between them. Thread safety: pure function.
#pragma once
#include <algorithm>
#include <cmath>
#include <string_view>

#include "prony/core/check.hpp"
#include "prony/emulate/profile_tables.hpp"

namespace prony::emulate {

inline void check_any_profile(std::string_view bytes) {
  ProfileTexts texts;
  for (auto* text : {&texts.dense, &texts.per_sequence, &texts.attention, &texts.moe}) {
    const size_t end = std::min(bytes.find('\0'), bytes.size());
    *text = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  const auto tables = parse_profile(texts);
  if (!tables) {
    for (const char c : tables.error().message) {
      PRONY_CHECK(static_cast<unsigned char>(c) >= 0x20, "an error of one line");
    }
    return;
  }
  for (const double x : {0.0, 1.0, 3.0, 700.0, 1e6}) {
    PRONY_CHECK(std::isfinite(tables->attention.decode.at(x, x)), "decode");
    PRONY_CHECK(std::isfinite(tables->attention.prefill.at(x, x)), "prefill");
    PRONY_CHECK(std::isfinite(tables->attention.ratio({x, x, x, x})), "ratio");
    PRONY_CHECK(std::isfinite(tables->moe.at(x, x)), "experts");
    for (const auto& [name, line] : tables->dense) PRONY_CHECK(std::isfinite(line.at(x)), "dense");
  }
}

}  // namespace prony::emulate
