// Micro benchmark of the token path: bytes of a stream in memory through SSE framing, JSON and the
// Timeline. Target (on one core of a 2 GHz server): 3,000,000 token events a second.
#include <benchmark/benchmark.h>

#include "prony/load/timeline_test_util.hpp"

namespace prony::load {
namespace {

std::string stream_of(const std::string& chunk, int tokens) {
  std::string body;
  for (int i = 0; i < tokens; ++i) body += "data: " + chunk + "\n\n";
  return body;
}

// One stream of 1000 tokens, an event a read, as from a live server.
void run(benchmark::State& state, const std::string& chunk, size_t piece_bytes) {
  constexpr int kTokens = 1000;
  const auto body = stream_of(chunk, kTokens);
  const size_t step = piece_bytes == 0 ? body.size() / kTokens : piece_bytes;
  LoopMeters meters;
  const auto parser = openai_chat().make_parser();
  Timeline timeline(*parser, meters, {.keep_text = false});
  for (auto _ : state) {
    record::RequestRow row;
    row.output_tokens_asked = kTokens;
    timeline.begin(std::move(row));
    timeline.on_sent(1000, 1001);
    timeline.on_head(sse_head(), stamp_at(2000));
    core::Nanos t = 3000;
    for (size_t at = 0; at < body.size(); at += step) {
      timeline.on_body(std::string_view(body).substr(at, step), stamp_at(t += 100));
    }
    timeline.on_complete(stamp_at(t));
    benchmark::DoNotOptimize(timeline.take_row());
  }
  state.SetItemsProcessed(state.iterations() * kTokens);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(body.size()));
}

const std::string kChunk =
    R"({"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1700000000,)"
    R"("model":"llama-3.1-8b","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,)"
    R"("finish_reason":null}]})";

void chat_event(benchmark::State& state) {
  run(state, kChunk, 0);
}
void chat_event_with_usage(benchmark::State& state) {
  auto chunk = kChunk;
  chunk.insert(chunk.size() - 1,
               R"(,"usage":{"prompt_tokens":9,"total_tokens":15,"completion_tokens":6})");
  run(state, chunk, 0);
}
void chat_event_in_large_reads(benchmark::State& state) {
  run(state, kChunk, 65'536);
}
BENCHMARK(chat_event);
BENCHMARK(chat_event_with_usage);
BENCHMARK(chat_event_in_large_reads);

}  // namespace
}  // namespace prony::load
