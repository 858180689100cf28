// The flags of prony plan and what they mean: a question with its space.
// Thread safety: none; one command owns them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prony/cli/flags.hpp"
#include "prony/plan/question.hpp"

namespace prony::cli {

struct PlanOptions {
  std::string model, engine = "vllm", slo, ep = "both";
  int64_t input_len = 1024, output_len = 128;
  std::optional<double> request_rate, concurrency, num_prompts;
  std::optional<int64_t> max_batched_tokens;
  std::vector<std::string> hardware, prices, calibration;
  std::vector<std::string> weights = {"auto", "fp8"}, tp = {"1", "2", "4", "8"}, pp = {"1", "2"},
                           dp = {"1"};
  std::vector<std::string> max_num_seqs = {"16", "32", "64", "128", "256", "512", "1024"};
  int64_t max_devices = 64, spares = 1, lines = 12;
  bool json = false;
};

void declare(Flags& flags, PlanOptions& options);

/// Loads what the names mean. Error: kInvalidArgument, naming the flag.
Result<plan::Question> question_of(const PlanOptions& options);

}  // namespace prony::cli
