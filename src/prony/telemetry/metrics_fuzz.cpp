// libFuzzer target: any bytes as the text of a /metrics. Checks what must hold for every input
// (check_any_metrics); the sanitizers check the rest. Corpus: tests/fuzz/metrics.
// Build: clang++-16 -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Isrc \
//        src/prony/telemetry/{metrics_fuzz,prometheus,server_metrics}.cpp -o metrics_fuzz
// Run: ./metrics_fuzz -max_len=4096 tests/fuzz/metrics
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "prony/telemetry/metrics_testing.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (!prony::telemetry::check_any_metrics({reinterpret_cast<const char*>(data), size})) {
    __builtin_trap();
  }
  return 0;
}
