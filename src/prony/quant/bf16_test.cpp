#include "prony/quant/bf16.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "prony/core/rng.hpp"

namespace prony::quant {
namespace {

TEST(Bf16, EveryValueSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const Bf16 value{static_cast<uint16_t>(bits)};
    const float wide = to_float(value);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(to_float(to_bf16(wide)))) << bits;
    } else {
      EXPECT_EQ(to_bf16(wide), value) << bits;
    }
  }
}

// Oracle: of the two bf16 around x, the nearer one; on a tie the one with an even last bit.
TEST(Bf16, RoundsToNearestTiesToEven) {
  core::Rng rng(7);
  for (int i = 0; i < 200'000; ++i) {
    auto bits = rng.next_u32();
    if (i % 4 == 0) bits = (bits & 0xFFFF0000u) | 0x8000u;  // exact ties
    const auto x = std::bit_cast<float>(bits);
    if (!std::isfinite(x)) continue;
    const Bf16 below{static_cast<uint16_t>(bits >> 16)};
    const Bf16 above{static_cast<uint16_t>((bits >> 16) + 1)};
    const double gap_below =
        std::fabs(static_cast<double>(x) - static_cast<double>(to_float(below)));
    // The neighbour of the largest finite value is infinity: its distance is that to 2^128.
    const double upper = std::isinf(to_float(above))
                             ? std::copysign(0x1p128, static_cast<double>(x))
                             : static_cast<double>(to_float(above));
    const double gap_above = std::fabs(upper - static_cast<double>(x));
    Bf16 expected = gap_below < gap_above ? below : above;
    if (gap_below == gap_above) expected = below.bits % 2 == 0 ? below : above;
    ASSERT_EQ(to_bf16(x), expected) << bits;
  }
}

TEST(Bf16, SpecialValues) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_bf16(infinity).bits, 0x7F80);
  EXPECT_EQ(to_bf16(-infinity).bits, 0xFF80);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()).bits, 0x7F80);  // rounds up to infinity
  EXPECT_EQ(to_bf16(-0.0f).bits, 0x8000);
  // A NaN whose payload lies only in the lower half must not become infinity.
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::bit_cast<float>(0x7F800001u)))));
  EXPECT_EQ(round_to_bf16(1.0f + 0x1p-9f), 1.0f);
}

}  // namespace
}  // namespace prony::quant
