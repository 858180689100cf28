// libFuzzer target: the framer of JSON lines must give the same lines for any bytes at any cut, and
// never read or keep a view outside its input. The first byte is the piece size.
// Run: ./run fuzz; corpus: tests/fuzz/line_framer, replayed by line_framer_test.
#include <cstdint>
#include <string_view>

#include "prony/net/line_framer_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  prony::net::check_any_lines({reinterpret_cast<const char*>(data), size});
  return 0;
}
