#include "prony/cli/serve_emulated.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "prony/catalog/catalog.hpp"
#include "prony/cli/predict_options.hpp"
#include "prony/core/units.hpp"
#include "prony/emulate/emulated_executor.hpp"
#include "prony/emulate/profile_step_time.hpp"
#include "prony/perfmodel/memory_model.hpp"

namespace prony::cli {
namespace {

constexpr std::string_view kPrefix = "emulated:";

Result<perfmodel::Deployment> deployment_of(const ServeOptions& options) {
  PredictOptions wanted;
  wanted.model = options.model;
  if (catalog::is_dummy(wanted.model))
    wanted.model = wanted.model.substr(6);  // no weights either way
  wanted.hardware = emulated_hardware(options.device);
  wanted.engine = options.engine;
  wanted.tp = options.tp;
  wanted.weight_dtype = options.weight_dtype.value_or("auto");
  return deployment_of(wanted);
}

// KV blocks of kBlockTokens that the device's memory leaves.
Result<int64_t> blocks_of(const perfmodel::Deployment& deployment, int64_t step_tokens,
                          int64_t sequences) {
  const perfmodel::RankModel rank(deployment);
  const auto plan = perfmodel::memory_plan(
      deployment, rank, {.step_tokens = step_tokens, .max_sequences = sequences});
  if (!plan.fits()) {
    return environment_error(fmt::format(
        "--device: {} does not fit on {} x {}: {:.1f} GiB missing on each", deployment.model.id,
        deployment.parallel.ranks(), deployment.hardware.id, plan.missing_bytes / core::kGiB));
  }
  return plan.kv_tokens / sched::kBlockTokens;
}

Result<std::unique_ptr<emulate::StepTime>> step_time_of(const ServeOptions& options,
                                                        const perfmodel::Deployment& deployment) {
  if (options.step_time_profile.empty()) {
    auto made = emulate::ModelStepTime::create(deployment);
    if (!made) return made.error();
    return std::unique_ptr<emulate::StepTime>(std::move(made).value());
  }
  auto made =
      emulate::ProfileStepTime::load(options.step_time_profile, deployment.model,
                                     deployment.engine.step_s, deployment.engine.sequence_s);
  if (!made) return made.error();
  return std::unique_ptr<emulate::StepTime>(std::move(made).value());
}

}  // namespace

std::string emulated_hardware(const std::string& device) {
  return device.starts_with(kPrefix) ? device.substr(kPrefix.size()) : std::string();
}

Result<std::unique_ptr<sched::Executor>> make_emulated(const ServeOptions& options,
                                                       const catalog::ModelSpec& model,
                                                       core::Clock& clock) {
  const auto deployment = deployment_of(options);
  if (!deployment) return deployment.error();
  auto time = step_time_of(options, *deployment);
  if (!time) return time.error();
  const auto& engine = deployment->engine;
  emulate::EmulatedOptions wanted;
  wanted.hardware = deployment->hardware.id;
  wanted.noise_cv = options.step_noise;
  wanted.seed = static_cast<uint64_t>(options.seed);
  wanted.first_token = 'a';
  wanted.first_among_threads = true;
  auto& capacity = wanted.capacity;
  capacity.max_sequences =
      static_cast<int32_t>(options.max_sequences.value_or(engine.max_sequences));
  capacity.max_tokens_per_step =
      static_cast<int32_t>(options.max_step_tokens.value_or(engine.max_step_tokens));
  auto blocks = options.kv_blocks
                    ? Result<int64_t>(*options.kv_blocks)
                    : blocks_of(*deployment, capacity.max_tokens_per_step, capacity.max_sequences);
  if (!blocks) return blocks.error();
  capacity.block_count = static_cast<int32_t>(*blocks);
  const int64_t context = options.max_context > 0 ? options.max_context : model.max_context;
  capacity.max_context =
      static_cast<int32_t>(std::min<int64_t>(context, *blocks * sched::kBlockTokens));
  return std::unique_ptr<sched::Executor>(std::make_unique<emulate::EmulatedExecutor>(
      std::move(time).value(), clock, std::move(wanted)));
}

}  // namespace prony::cli
