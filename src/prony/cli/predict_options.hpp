// The flags of prony predict and what they mean: a deployment and a load.
// Thread safety: none; one command owns them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prony/cli/flags.hpp"
#include "prony/perfmodel/serving.hpp"

namespace prony::cli {

struct PredictOptions {
  std::string model, hardware, engine = "vllm", weight_dtype = "auto", kv_dtype = "auto";
  int64_t tp = 1, pp = 1, ep = 1, dp = 1;
  int64_t input_len = 1024, output_len = 128;
  std::optional<double> concurrency, request_rate, num_prompts, clock_mhz;
  std::optional<int64_t> max_num_seqs, max_batched_tokens;
  bool static_batch = false, eager = false, json = false;
  double expert_skew = 1.15;
  int64_t draft_tokens = 0;
  double acceptance = 0.7, draft_cost = 0.05;
  std::vector<std::string> calibration;
  std::string rows;  // a file of many questions
  std::vector<std::string> sweep;
};

void declare(Flags& flags, PredictOptions& options);

/// Loads what the names mean. Error: kInvalidArgument, naming the flag.
Result<perfmodel::Deployment> deployment_of(const PredictOptions& options);
Result<perfmodel::ServingLoad> load_of(const PredictOptions& options);

/// The format of `auto`.
perfmodel::WeightDtype published_dtype(catalog::WeightFormat format);

/// Parses `arguments` over what `options` holds, as --sweep and --rows do with theirs.
Result<void> apply_flags(PredictOptions& options, const std::vector<std::string>& arguments);

}  // namespace prony::cli
