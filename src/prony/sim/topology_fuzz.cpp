// libFuzzer target: any bytes as the text of --topology. Checks what must hold for every input
// (check_any_topology_text); the sanitizers check the rest. Corpus: tests/fuzz/topology.
// Run: ./run fuzz
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "prony/sim/topology_testing.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (!prony::sim::testing::check_any_topology_text({reinterpret_cast<const char*>(data), size})) {
    __builtin_trap();
  }
  return 0;
}
