// ServeOptions: the flags of `prony serve` as data, their declaration and their checks.
// Thread safety: a value.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "prony/cli/flags.hpp"
#include "prony/core/result.hpp"

namespace prony::cli {

struct ServeOptions {
  std::string model, tokenizer, served_name, device = "cpu", host = "127.0.0.1";
  std::optional<std::string> weight_dtype;
  std::string trace_file, activation_dtype = "auto";
  std::string policy = "fcfs", prefix_caching = "on";
  int64_t port = 8000, threads = 0, seed = 0, max_waiting = 1024;
  std::optional<int64_t> max_sequences, max_step_tokens;  // absent: the device's default
  int64_t max_context = 0;
  std::optional<int64_t> kv_blocks;
  std::optional<double> kv_memory_gib;  // absent: the device's default
  std::string cuda_graphs = "on";
  // Of an emulated device.
  std::string engine = "vllm", step_time_profile;
  int64_t tp = 1;
  double step_noise = 0;
};

/// Adds every flag of the command; the targets are the fields of `options`.
void declare(Flags& flags, ServeOptions& options);
/// Error: kInvalidArgument naming the flag, found and expected.
Result<void> check(const ServeOptions& options);

}  // namespace prony::cli
