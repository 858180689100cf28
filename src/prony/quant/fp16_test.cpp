// fp16: every one of the 65,536 bit patterns against the definition, evaluated in double.
#include "prony/quant/fp16.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace prony::quant {
namespace {

TEST(Fp16, EveryPatternReadsAsDefined) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const float got = to_float(Fp16{static_cast<uint16_t>(bits)});
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const double fraction = bits & 1023;
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    if (exponent == 31 && fraction != 0) {
      EXPECT_TRUE(std::isnan(got)) << bits;
      continue;
    }
    const double expected = exponent == 31  ? sign * INFINITY
                            : exponent == 0 ? sign * std::ldexp(fraction, -24)
                                            : sign * std::ldexp(1 + fraction / 1024, exponent - 15);
    ASSERT_EQ(static_cast<double>(got), expected) << bits;
    ASSERT_EQ(std::signbit(got), sign < 0) << bits;
  }
}

}  // namespace
}  // namespace prony::quant
