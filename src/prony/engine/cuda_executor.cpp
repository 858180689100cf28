#include "prony/engine/cuda_executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <thread>

#include "prony/core/check.hpp"
#include "prony/engine/cuda_weights.hpp"
#include "prony/kernels/cuda/layout.hpp"
#include "prony/kernels/kernels.hpp"
#include "prony/kernels/thread_pool.hpp"

namespace prony::engine {
namespace {

using Capacity = sched::Executor::Capacity;
using kernels::cuda::EngineLimits;
using kernels::cuda::ModelShape;

Result<void> check_range(const char* option, int64_t found, int64_t least, int64_t most) {
  if (found >= least && found <= most) return {};
  return invalid_argument(
      fmt::format("{}: found {}, expected {} to {}", option, found, least, most));
}

Result<void> check_options(const catalog::ModelSpec& spec, const CudaExecutorOptions& options) {
  for (const Result<void>& check :
       {check_range("threads", options.threads, 1, 1024),
        check_range("max_tokens_per_step", options.max_tokens_per_step, 1, 1 << 18),
        check_range("max_sequences", options.max_sequences, 1, 4096),
        check_range("max_context", options.max_context, 0, spec.max_context),
        check_range("sample_vocab", options.sample_vocab, 0, spec.vocab),
        check_range("block_count", options.block_count.value_or(1), 1, 1 << 26)}) {
    if (!check.ok()) return check.error();
  }
  return {};
}

/// A call of the library, its text as an Error.
template <class... Parameters, class... Arguments>
Result<void> call(int (*function)(Parameters...), Arguments... arguments) {
  std::array<char, 400> text{};
  if (function(arguments..., text.data(), static_cast<uint32_t>(text.size())) == 0) return {};
  return environment_error(fmt::format("cuda: {}", text.data()));
}

MemoryNeed need_of(const ModelShape& shape, const EngineLimits& limits) {
  return {.weights_bytes = kernels::cuda::plan_weights(shape, limits.max_context).total_bytes,
          .kv_bytes = kernels::cuda::kv_bytes(shape, limits),
          .workspace_bytes = kernels::cuda::plan_buffers(shape, limits).total_bytes};
}

// The blocks that were asked for, or as many as the memory holds, but no more than all sequences
// can fill.
Result<EngineLimits> plan_limits(const catalog::ModelSpec& spec, const CudaExecutorOptions& options,
                                 const kernels::cuda::DeviceInfo& device) {
  EngineLimits limits;
  limits.max_tokens = options.max_tokens_per_step;
  limits.max_sequences = options.max_sequences;
  limits.max_context = options.max_context > 0 ? options.max_context : spec.max_context;
  limits.sample_vocab = options.sample_vocab > 0 ? options.sample_vocab : spec.vocab;
  limits.graphs = options.graphs ? 1 : 0;
  if (options.block_count) {
    limits.block_count = *options.block_count;
    return limits;
  }
  const ModelShape shape = cuda_shape(spec);
  const MemoryNeed without_kv = need_of(shape, limits);
  const double usable = static_cast<double>(device.total_bytes) * options.memory_fraction -
                        static_cast<double>(device.total_bytes - device.free_bytes);
  const int64_t left = static_cast<int64_t>(usable) - without_kv.total_bytes();
  const int64_t page = kernels::cuda::page_bytes(shape);
  const int64_t blocks_each = (limits.max_context + sched::kBlockTokens - 1) / sched::kBlockTokens;
  const int64_t count = std::min({std::min(options.kv_cache_bytes.value_or(left), left) / page,
                                  limits.max_sequences * blocks_each,
                                  int64_t{std::numeric_limits<int32_t>::max()} / 16 - 1});
  if (count < 1) {
    if (const auto fits =
            check_memory(need_of(shape, limits), static_cast<int64_t>(usable), spec.id);
        !fits.ok()) {
      return fits.error();
    }
    return invalid_argument(
        fmt::format("kv_cache_bytes: found {}, expected at least {} for one block of model {}",
                    options.kv_cache_bytes.value_or(left), page, spec.id));
  }
  limits.block_count = static_cast<int32_t>(count);
  return limits;
}

}  // namespace

CudaExecutor::CudaExecutor(const kernels::cuda::Api& api, const catalog::ModelSpec& spec,
                           const CudaExecutorOptions& options, const Capacity& capacity)
    : api_(api),
      spec_(spec),
      capacity_(capacity),
      sample_vocab_(options.sample_vocab > 0 ? options.sample_vocab : spec.vocab),
      step_limit_ns_(options.step_limit_ns),
      sampler_(spec.vocab, kernels::kernels_for(kernels::Isa::kGeneric)),
      logits_(static_cast<size_t>(sample_vocab_)) {}

CudaExecutor::~CudaExecutor() {
  if (engine_ != nullptr) api_.destroy(engine_);
}

Result<std::unique_ptr<CudaExecutor>> CudaExecutor::create(const kernels::cuda::Api& api,
                                                           const catalog::ModelSpec& spec,
                                                           const TensorSource& source,
                                                           const CudaExecutorOptions& options) {
  if (const auto check = check_supported_by_cuda(spec); !check.ok()) return check.error();
  if (const auto check = check_options(spec, options); !check.ok()) return check.error();
  kernels::cuda::DeviceInfo device;
  if (const auto found = call(api.device, &device); !found.ok()) return found.error();
  if (device.compute_major != 9 || device.compute_minor != 0) {
    return environment_error(fmt::format("cuda: found {} of compute capability {}.{}, expected 9.0",
                                         device.name, device.compute_major, device.compute_minor));
  }
  const Result<EngineLimits> limits = plan_limits(spec, options, device);
  if (!limits.ok()) return limits.error();
  const ModelShape shape = cuda_shape(spec);
  const MemoryNeed need = need_of(shape, *limits);
  if (const auto check = check_memory(need, device.free_bytes, spec.id); !check.ok()) {
    return check.error();
  }
  const int64_t cached = int64_t{limits->block_count} * sched::kBlockTokens;
  const Capacity capacity{
      .block_count = limits->block_count,
      .max_tokens_per_step = limits->max_tokens,
      .max_sequences = limits->max_sequences,
      .max_context = static_cast<int32_t>(std::min<int64_t>(limits->max_context, cached))};
  std::unique_ptr<CudaExecutor> executor(new CudaExecutor(api, spec, options, capacity));
  executor->device_ = device;
  executor->memory_ = need;
  if (const auto made = call(api.create, &shape, &*limits, &executor->engine_); !made.ok()) {
    return made.error();
  }
  kernels::ThreadPool pool(options.threads);
  if (const auto sent =
          upload_weights(api, executor->engine_, spec, limits->max_context, source, pool);
      !sent.ok()) {
    return sent.error();
  }
  return executor;
}

CudaExecutor::Request& CudaExecutor::live(sched::Handle handle) {
  PRONY_CHECK(handle < requests_.size() && requests_[handle].live, "no such request");
  return requests_[handle];
}

void CudaExecutor::start(sched::Handle handle, sched::RequestInput input) {
  PRONY_CHECK(!input.prompt.empty(), "empty prompt");
  for (const int32_t token : input.prompt) {
    PRONY_CHECK(token >= 0 && token < spec_.vocab, "prompt token outside the vocabulary");
  }
  if (handle >= requests_.size()) requests_.resize(handle + 1);
  Request& request = requests_[handle];
  PRONY_CHECK(!request.live, "handle is in use");
  request.live = true;
  request.prompt_tokens = static_cast<int32_t>(input.prompt.size());
  request.tokens = std::move(input.prompt);
  const int64_t most = int64_t{request.prompt_tokens} + std::max(0, input.max_new_tokens);
  request.tokens.reserve(static_cast<size_t>(std::min<int64_t>(most, capacity_.max_context + 1)));
  request.sampling = std::move(input.sampling);
}

void CudaExecutor::finish(sched::Handle handle) {
  live(handle) = Request{};
}

void CudaExecutor::submit(const sched::StepPlan& plan) {
  PRONY_CHECK(pending_ == nullptr, "a step is in flight and depth() is 1");
  PRONY_CHECK(plan.loads.empty(), "the cuda executor loads no remote KV");
  PRONY_CHECK(plan.rows.size() <= static_cast<size_t>(capacity_.max_sequences) &&
                  plan.token_count <= capacity_.max_tokens_per_step,
              "the step is larger than the capacity");
  pending_ = &plan;
  row_tokens_.clear();
  for (const sched::StepRow& row : plan.rows) row_tokens_.emplace_back(live(row.handle).tokens);
  if (plan.rows.empty()) return;
  batch_.build(plan, row_tokens_);
  const kernels::cuda::StepBatch batch = batch_.view();
  if (const auto done = call(api_.submit, engine_, &batch); !done.ok()) {
    submit_error_ = done.error();
  }
}

Result<kernels::cuda::StepOutput> CudaExecutor::poll() {
  const core::Nanos t_limit_ns = core::monotonic_ns() + step_limit_ns_;
  std::array<char, 400> text{};
  for (;;) {
    kernels::cuda::StepOutput output;
    const int state = api_.poll(engine_, &output, text.data(), static_cast<uint32_t>(text.size()));
    if (state == 0) return output;
    if (state == 1) return environment_error(fmt::format("cuda: {}", text.data()));
    if (core::monotonic_ns() > t_limit_ns) {
      return environment_error(fmt::format("cuda: a step did not end within {} s",
                                           step_limit_ns_ / core::kNanosPerSecond));
    }
    std::this_thread::yield();
  }
}

Result<sched::StepResult> CudaExecutor::wait() {
  PRONY_CHECK(pending_ != nullptr, "nothing was submitted");
  const sched::StepPlan& plan = *pending_;
  pending_ = nullptr;
  sampled_.clear();
  sample_index_.clear();
  if (submit_error_) return *submit_error_;
  if (plan.rows.empty()) return sched::StepResult{.step = plan.step, .tokens = {}};
  const auto output = poll();
  if (!output.ok()) return output.error();
  size_t top_size = 0;
  for (const sched::StepRow& row : plan.rows) {
    top_size += static_cast<size_t>(std::max(0, live(row.handle).sampling.logprobs));
  }
  top_used_ = 0;
  if (top_.size() < top_size) top_.resize(top_size);  // before any span into it is given out
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    if (!plan.rows[i].samples) continue;
    if (const auto taken = take_sample(plan.rows[i], batch_.sample_of(i), *output); !taken.ok()) {
      return taken.error();
    }
  }
  return sched::StepResult{.step = plan.step, .tokens = sampled_};
}

Result<void> CudaExecutor::take_sample(const sched::StepRow& row, int32_t sample,
                                       const kernels::cuda::StepOutput& output) {
  Request& request = live(row.handle);
  const sched::Sampling& sampling = request.sampling;
  const auto at = static_cast<size_t>(sample);
  const auto output_index = static_cast<int32_t>(request.tokens.size()) - request.prompt_tokens;
  const bool on_device = sampling.temperature < kGreedyTemperature && sampling.logprobs <= 0 &&
                         output_index >= sampling.min_tokens;
  const auto top_size = static_cast<size_t>(std::clamp(sampling.logprobs, 0, sample_vocab_));
  const std::span<sched::TokenLogprob> top = std::span(top_).subspan(top_used_, top_size);
  top_used_ += top_size;
  Sampler::Choice choice;
  if (output.finite[at] == 0) {
    return failed(fmt::format("model {}: logits are not finite at position {}", spec_.id,
                              request.tokens.size() - 1));
  }
  if (on_device) {
    choice.token = output.tokens[at];
    choice.logprob = sampling.logprobs == 0 ? output.logprobs[at] : 0;
  } else {
    const auto chosen = choose(request, sample, top);
    if (!chosen.ok()) return chosen.error();
    choice = *chosen;
  }
  sampled_.push_back(
      {.handle = row.handle, .token = choice.token, .logprob = choice.logprob, .top = top});
  sample_index_.push_back(sample);
  request.tokens.push_back(choice.token);
  return {};
}

Result<Sampler::Choice> CudaExecutor::choose(const Request& request, int32_t sample,
                                             std::span<sched::TokenLogprob> top) {
  if (const auto read = call(api_.logits, engine_, sample, logits_.data()); !read.ok()) {
    return read.error();
  }
  const auto output_index = static_cast<int32_t>(request.tokens.size()) - request.prompt_tokens;
  const auto choice = sampler_.sample(logits_, request.sampling, output_index, top);
  if (choice.ok()) return choice;
  return failed(fmt::format("model {}: {} at position {}", spec_.id, choice.error().message,
                            request.tokens.size() - 1));
}

Result<void> CudaExecutor::read_logits(size_t i, std::span<float> out) {
  PRONY_CHECK(i < sample_index_.size() && out.size() >= static_cast<size_t>(sample_vocab_),
              "no such sample");
  return call(api_.logits, engine_, sample_index_[i], out.data());
}

}  // namespace prony::engine
