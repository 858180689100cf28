// libFuzzer target: the framer must give the same events for any bytes at any cut, and never read
// or keep a view outside its input. The first byte is the piece size.
// Run: ./run fuzz (the corpus; sse_test replays it at every split)
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "prony/net/sse.hpp"

namespace {

using prony::net::SseEvent;
using prony::net::SseFramer;

class Recorder final : public SseFramer::Sink {
 public:
  bool on_event(const SseEvent& event) override {
    add(event.terminated ? 'e' : 'c', event.event, event.data);
    return true;
  }
  void on_comment() override { add('#', {}, {}); }
  void on_other_field(std::string_view name, std::string_view value) override {
    add('o', name, value);
  }
  std::string seen;

 private:
  void add(char kind, std::string_view name, std::string_view value) {
    seen += kind;
    for (const auto part : {name, value}) {
      seen += std::to_string(part.size());
      seen += ':';
      seen += part;
    }
  }
};

std::string parse(std::string_view text, size_t piece) {
  SseFramer framer(1 << 20);
  Recorder sink;
  while (!text.empty()) {
    // A heap block of the exact size: AddressSanitizer sees a byte too many, and a view kept.
    const std::string_view part = text.substr(0, piece);
    const std::vector<char> copy(part.begin(), part.end());
    if (!framer.feed({copy.data(), copy.size()}, sink)) std::abort();
    text.remove_prefix(part.size());
  }
  if (!framer.finish(sink)) std::abort();
  return sink.seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const size_t piece = 1 + data[0] % 64;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string whole = parse(text, text.size() + 1);
  if (parse(text, piece) != whole || parse(text, 1) != whole) std::abort();
  return 0;
}
