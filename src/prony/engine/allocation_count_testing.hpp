// Allocations of the engine's test program since its start, all threads: what proves that a steady
// step allocates nothing. Thread safety: any thread.
#pragma once
#include <cstdint>

namespace prony::engine {

int64_t allocation_count();

}  // namespace prony::engine
