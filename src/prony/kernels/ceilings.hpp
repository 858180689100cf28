// What this machine can do at most, measured now, with the threads and kernels an engine uses: a
// shared host moves by a fifth within an hour, so a speed means little without the ceiling of the
// same minute. Memory is read from a buffer beyond every cache; products run on weights so small
// that they stay in the first-level cache and the registers' arithmetic is all that counts.
// Thread safety: one thread; keeps all threads of the pool busy for some tenths of a second.
#pragma once
#include <cstdint>

#include "prony/core/result.hpp"
#include "prony/kernels/kernels.hpp"
#include "prony/kernels/thread_pool.hpp"

namespace prony::kernels {

/// Per second, all threads together; a multiply-add counts as two operations.
struct Ceilings {
  double read_bytes = 0;
  double fp32_ops = 0;  // fp32 rows, weights fp32
  double bf16_ops = 0;  // bf16 rows
  double int8_ops = 0;  // int8 rows
};

/// Best of several short repetitions. `read_size_bytes`: of the buffer; more than the last-level
/// cache, or the rate is the cache's. Error: kEnvironment if the memory cannot be had.
Result<Ceilings> measure_ceilings(const Kernels& kernels, ThreadPool& pool,
                                  int64_t read_size_bytes = int64_t{1} << 30);

/// A word of every cache line of [begin, end) is read, from four places at once and asked for
/// ahead, so that nothing but memory is the limit. Returns their sum, so that nothing is left out.
uint64_t touch_lines(const uint64_t* begin, const uint64_t* end);

}  // namespace prony::kernels
