// The ceilings are plausible and the readers read. How fast this machine is, is no test's business.
#include "prony/kernels/ceilings.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace prony::kernels {
namespace {

TEST(Ceilings, ArePositiveAtEveryLevel) {
  for (const Isa isa : supported_isas()) {
    ThreadPool pool(2);
    const auto ceilings = measure_ceilings(kernels_for(isa), pool, int64_t{4} << 20);
    ASSERT_TRUE(ceilings.ok()) << ceilings.error().message;
    // A clock that stood still or a loop that was left out would give more than 10^15.
    for (const double rate :
         {ceilings->read_bytes, ceilings->fp32_ops, ceilings->bf16_ops, ceilings->int8_ops}) {
      EXPECT_GT(rate, 1e5) << isa_name(isa);
      EXPECT_LT(rate, 1e15) << isa_name(isa);
    }
  }
}

TEST(Ceilings, TouchLinesReadsAWordOfEveryLine) {
  std::vector<uint64_t> words(8 * 64);
  for (size_t line = 0; line < 64; ++line) words[8 * line] = line + 1;
  EXPECT_EQ(touch_lines(words.data(), words.data() + words.size()), 64u * 65 / 2);
  EXPECT_EQ(touch_lines(words.data(), words.data()), 0u);
}

TEST(Ceilings, AbsurdSizeIsAnError) {
  ThreadPool pool(1);
  EXPECT_FALSE(measure_ceilings(kernels_for(Isa::kGeneric), pool, int64_t{1} << 60).ok());
}

}  // namespace
}  // namespace prony::kernels
