// libFuzzer: tables of a profile (profile_fuzz.hpp). Run: ./run fuzz; corpus: tests/fuzz/profile,
// replayed by profile_test.
#include <cstdint>

#include "prony/emulate/profile_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  prony::emulate::check_any_profile({reinterpret_cast<const char*>(data), size});
  return 0;
}
