// libFuzzer target: any bytes as the body of a stream. Checks what must hold for every input
// (check_any_stream); the sanitizers check the rest. Corpus: tests/fuzz/dialect.
// Run: ./run fuzz
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "prony/load/timeline_test_util.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  prony::load::check_any_stream({reinterpret_cast<const char*>(data), size});
  return 0;
}
