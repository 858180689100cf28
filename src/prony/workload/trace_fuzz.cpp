// Fuzzes the readers of foreign files: traces, token columns, schedules, length laws, rate curves.
// The corpus is in tests/fuzz/trace; corpus_test.cpp replays it in every test run.
#include "prony/workload/trace_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  prony::workload::read_everything({reinterpret_cast<const char*>(data), size});
  return 0;
}
