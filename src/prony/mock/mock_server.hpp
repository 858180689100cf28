// MockServer: an OpenAI-compatible endpoint of exactly known timing. Every answer keeps absolute
// deadlines from the receipt of its request and stamps each write; named faults make it misbehave
// in one way each. It is the truth that a client is judged by, so run it in a process of its own.
// Thread safety: loop thread.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/core/result.hpp"
#include "prony/net/event_loop.hpp"

namespace prony::mock {

struct Options {
  std::string host = "127.0.0.1";
  uint16_t port = 0;  // 0: any free one
  std::string model = "mock";
  core::Nanos ttft_ns = 50 * core::kNanosPerMilli;  // receipt of the request to the first token
  core::Nanos itl_ns = 10 * core::kNanosPerMilli;   // token to token; a chunk of k comes every k-th
  std::optional<int64_t> tokens;                    // instead of what the request asks for
  int64_t tokens_per_chunk = 1;
  std::vector<std::string> faults;
  std::string stamps_path;  // empty: none
};

class MockServer {
 public:
  /// Error: kInvalidArgument for a fault that is unknown or does not go with another, or a number
  /// out of range, naming the flag; kEnvironment if it cannot listen or write the stamps.
  static Result<std::unique_ptr<MockServer>> create(net::EventLoop& loop, const Options& options);
  ~MockServer();

  uint16_t port() const;
  size_t answers_in_flight() const;
  /// Breaks off what is in flight and puts the stamps file in place. Call once, last.
  Result<void> finish();

 private:
  struct Impl;
  explicit MockServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace prony::mock
