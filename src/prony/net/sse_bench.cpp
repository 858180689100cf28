// Token events per second through framing alone and through HTTP chunk parsing and framing, from
// memory, one core. Ceiling: memchr over the same bytes. Goal: 3,000,000 events/s with framing and
// JSON, so framing may take a small part of 333 ns an event.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstring>
#include <string>
#include <vector>

#include "prony/net/http_parser.hpp"
#include "prony/net/sse.hpp"

namespace prony::net {
namespace {

constexpr int kEvents = 1000;

std::string event(int i) {
  return fmt::format(
      R"(data: {{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,)"
      R"("model":"m","choices":[{{"index":0,"delta":{{"content":" w{}"}},"logprobs":null,)"
      R"("finish_reason":null}}]}})"
      "\n\n",
      i % 100);
}

class Counter final : public SseFramer::Sink {
 public:
  bool on_event(const SseEvent& event) override {
    bytes += event.data.size();
    return true;
  }
  size_t bytes = 0;
};

/// Events of one read each, as a stream at its own pace has them, or 64 KiB of events a read.
void framing(benchmark::State& state) {
  std::vector<std::string> reads;
  const auto read_bytes = static_cast<size_t>(state.range(0));
  std::string read;
  for (int i = 0; i < kEvents; ++i) {
    read += event(i);
    if (read.size() >= read_bytes || i + 1 == kEvents) reads.push_back(std::exchange(read, {}));
  }
  Counter sink;
  SseFramer framer;
  for (auto _ : state) {
    for (const auto& bytes : reads) framer.feed(bytes, sink);
  }
  benchmark::DoNotOptimize(sink.bytes);
  state.SetItemsProcessed(state.iterations() * kEvents);
}
BENCHMARK(framing)->Arg(1)->Arg(65536);

class FramingSink final : public ResponseParser::Sink {
 public:
  void on_head(const ResponseHead&) override {}
  void on_body(std::string_view piece) override { framer.feed(piece, counter); }
  SseFramer framer;
  Counter counter;
};

void chunks_and_framing(benchmark::State& state) {
  std::vector<std::string> reads;
  for (int i = 0; i < kEvents; ++i) {
    const std::string body = event(i);
    reads.push_back(fmt::format("{:x}\r\n{}\r\n", body.size(), body));
  }
  FramingSink sink;
  ResponseParser parser(sink);
  parser.feed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (auto _ : state) {
    for (const auto& bytes : reads) parser.feed(bytes);
  }
  benchmark::DoNotOptimize(sink.counter.bytes);
  state.SetItemsProcessed(state.iterations() * kEvents);
}
BENCHMARK(chunks_and_framing);

void memchr_ceiling(benchmark::State& state) {
  std::string bytes;
  for (int i = 0; i < kEvents; ++i) bytes += event(i);
  for (auto _ : state) {
    size_t lines = 0;
    for (const char* at = bytes.data(); at != nullptr; ++lines) {
      at = static_cast<const char*>(
          std::memchr(at, '\n', static_cast<size_t>(bytes.data() + bytes.size() - at)));
      if (at != nullptr) ++at;
    }
    benchmark::DoNotOptimize(lines);
  }
  state.SetItemsProcessed(state.iterations() * kEvents);
}
BENCHMARK(memchr_ceiling);

}  // namespace
}  // namespace prony::net
