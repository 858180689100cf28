// libFuzzer target: any bytes as the body of a stream. Checks what must hold for every input
// (check_any_stream); the sanitizers check the rest. Corpus: tests/fuzz/dialect.
// Build: clang++-16 -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Isrc \
//        src/prony/load/dialect_fuzz.cpp \
//        src/prony/load/{dialect,openai_*,timeline,token_count,meters}.cpp src/prony/net/sse.cpp \
//        src/prony/stats/{histogram,quantile,binomial}.cpp
//        src/prony/core/{json,check,clock,math}.cpp \ -lsimdjson -lfmt -o dialect_fuzz (openai_*
//        without the tests)
// Run: ./dialect_fuzz -max_len=4096 tests/fuzz/dialect
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "prony/load/timeline_test_util.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  prony::load::check_any_stream({reinterpret_cast<const char*>(data), size});
  return 0;
}
