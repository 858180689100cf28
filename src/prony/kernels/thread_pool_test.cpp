#include "prony/kernels/thread_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/kernels/isa.hpp"
#include "prony/kernels/memory.hpp"

namespace prony::kernels {
namespace {

TEST(ThreadPool, CoversEveryItemOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t count : {0, 1, 2, 7, 100, 1001}) {
      for (const int64_t grain : {1, 3, 64, 5000}) {
        std::vector<int> hits(static_cast<size_t>(count), 0);  // each item has one writer
        pool.run(count, grain, [&](int64_t begin, int64_t end) {
          if (threads > 1) {
            EXPECT_LE(end - begin, grain);
          }
          for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
        });
        EXPECT_EQ(std::accumulate(hits.begin(), hits.end(), int64_t{0}), count);
        for (const int hit : hits) ASSERT_EQ(hit, 1);
      }
    }
  }
}

// What a job wrote is seen by the caller, and what the caller wrote by the next job, without
// atomics in the body; ThreadSanitizer checks the same.
TEST(ThreadPool, JobsAreOrdered) {
  ThreadPool pool(4);
  std::vector<int64_t> values(64, 0);
  for (int64_t round = 1; round <= 3000; ++round) {
    pool.run(64, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) values[static_cast<size_t>(i)] += i;
    });
    ASSERT_EQ(values[63], 63 * round);
    values[0] = round;  // written between jobs by the caller
  }
}

// Workers that parked must come back, and parked or spinning ones must stop at destruction.
TEST(ThreadPool, WakesParkedWorkers) {
  core::MonotonicClock clock;
  for (int repeat = 0; repeat < 5; ++repeat) {
    ThreadPool pool(3);
    for (int round = 0; round < 4; ++round) {
      clock.sleep_until(clock.now_ns() + 3 * core::kNanosPerMilli);  // long enough to park
      std::atomic<int64_t> sum{0};
      pool.run(1000, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
      ASSERT_EQ(sum.load(), 1000);
    }
  }
}

TEST(Memory, ArenaGivesAlignedZeroedPieces) {
  for (const int64_t size : {int64_t{4096}, int64_t{5} << 20}) {
    Result<Pages> pages = Pages::create(size, true);
    ASSERT_TRUE(pages.ok());
    Arena arena(std::move(pages).value());
    const auto* bytes = arena.take<std::byte>(3);
    const auto* floats = arena.take<float>(17);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(floats) % 64, 0u);
    Arena planner;
    EXPECT_EQ(planner.take<std::byte>(3), nullptr);
    EXPECT_EQ(planner.take<float>(17), nullptr);
    EXPECT_EQ(planner.used_bytes(), 64 + 128);
    EXPECT_EQ(arena.used_bytes(), planner.used_bytes());
    for (int i = 0; i < 17; ++i) EXPECT_EQ(floats[i], 0.0f);
    arena.take<std::byte>(arena.size_bytes() - arena.used_bytes());
    EXPECT_DEATH(arena.take<std::byte>(1), "smaller than its plan");
  }
}

TEST(Memory, AbsurdSizeIsAnError) {
  const Result<Pages> pages = Pages::create(int64_t{1} << 60, false);
  ASSERT_FALSE(pages.ok());
  EXPECT_EQ(pages.error().code, ErrorCode::kEnvironment);
  EXPECT_EQ(pages.error().message.rfind("cannot reserve 1152921504606846976 bytes", 0), 0u);
}

TEST(Isa, NamesAndChoices) {
  const std::vector<Isa> supported = supported_isas();
  ASSERT_FALSE(supported.empty());
  EXPECT_EQ(supported.front(), Isa::kGeneric);
  EXPECT_EQ(choose_isa("", "x").value(), supported.back());
  for (const Isa isa : supported) EXPECT_EQ(choose_isa(isa_name(isa), "x").value(), isa);
  const Result<Isa> unknown = choose_isa("avx3", "PRONY_ISA");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(unknown.error().message,
            "PRONY_ISA: found 'avx3', expected generic, avx2, avx512, avx512vnni or amx");
}

// A missing bit takes away every level that needs it, and with it all above.
TEST(Isa, AMissingFeatureBitEndsTheListThere) {
  CpuFeatures all{.avx2 = true,
                  .fma = true,
                  .avx512f = true,
                  .avx512bw = true,
                  .avx512dq = true,
                  .avx512vl = true,
                  .avx512_vnni = true,
                  .amx_tile = true,
                  .amx_bf16 = true,
                  .amx_int8 = true,
                  .tile_permission = true};
  EXPECT_EQ(isas_of(all).back(), Isa::kAmx);
  EXPECT_EQ(isas_of(all).size(), 5u);
  EXPECT_EQ(isas_of({}), std::vector<Isa>{Isa::kGeneric});
  const struct {
    bool CpuFeatures::*bit;
    Isa fastest;
  } cases[] = {{&CpuFeatures::avx2, Isa::kGeneric},        {&CpuFeatures::fma, Isa::kGeneric},
               {&CpuFeatures::avx512f, Isa::kAvx2},        {&CpuFeatures::avx512bw, Isa::kAvx2},
               {&CpuFeatures::avx512dq, Isa::kAvx2},       {&CpuFeatures::avx512vl, Isa::kAvx2},
               {&CpuFeatures::avx512_vnni, Isa::kAvx512},  {&CpuFeatures::amx_tile, Isa::kVnni},
               {&CpuFeatures::amx_bf16, Isa::kVnni},       {&CpuFeatures::amx_int8, Isa::kVnni},
               {&CpuFeatures::tile_permission, Isa::kVnni}};
  for (const auto& c : cases) {
    CpuFeatures without = all;
    without.*c.bit = false;
    EXPECT_EQ(isas_of(without).back(), c.fastest);
  }
}

TEST(Isa, TheEnvironmentForcesALevel) {
  ASSERT_EQ(setenv("PRONY_ISA", "generic", 1), 0);
  EXPECT_EQ(isa_from_environment().value(), Isa::kGeneric);
  ASSERT_EQ(setenv("PRONY_ISA", "neon", 1), 0);
  EXPECT_FALSE(isa_from_environment().ok());
  ASSERT_EQ(unsetenv("PRONY_ISA"), 0);
  EXPECT_EQ(isa_from_environment().value(), supported_isas().back());
}

}  // namespace
}  // namespace prony::kernels
