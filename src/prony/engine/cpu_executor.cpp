#include "prony/engine/cpu_executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "prony/core/check.hpp"

namespace prony::engine {
namespace {

using Capacity = sched::Executor::Capacity;

Result<void> check_range(const char* option, int64_t found, int64_t least, int64_t most) {
  if (found >= least && found <= most) return {};
  return invalid_argument(
      fmt::format("{}: found {}, expected {} to {}", option, found, least, most));
}

Result<void> check_options(const catalog::ModelSpec& spec, const CpuExecutorOptions& options) {
  constexpr int64_t kMost = 1 << 24;  // of any count: keeps products inside 64 bits
  for (const Result<void>& check :
       {check_range("threads", options.threads, 1, 1024),
        check_range("max_tokens_per_step", options.max_tokens_per_step, 1, kMost),
        check_range("max_sequences", options.max_sequences, 1, kMost),
        check_range("max_context", options.max_context, 0, spec.max_context),
        check_range("sample_vocab", options.sample_vocab, 0, spec.vocab),
        check_range("block_count", options.block_count.value_or(1), 1,
                    std::numeric_limits<int32_t>::max())}) {
    if (!check.ok()) return check.error();
  }
  return {};
}

int32_t blocks_of(int64_t tokens) {
  return static_cast<int32_t>((tokens + sched::kBlockTokens - 1) / sched::kBlockTokens);
}

// Blocks asked for; or as many as the budget holds, but no more than all sequences can fill.
Result<int32_t> plan_blocks(const catalog::ModelSpec& spec, const CpuExecutorOptions& options,
                            int32_t max_context) {
  if (options.block_count) return *options.block_count;
  const int64_t page = KvStore::page_bytes(spec, kv_dtype(options.dtype));
  const int64_t useful = int64_t{options.max_sequences} * blocks_of(max_context);
  const int64_t count = std::min(
      {options.kv_cache_bytes / page, useful, int64_t{std::numeric_limits<int32_t>::max()}});
  if (count < 1) {
    return invalid_argument(
        fmt::format("kv_cache_bytes: found {}, expected at least {} for one block of model {}",
                    options.kv_cache_bytes, page, spec.id));
  }
  return static_cast<int32_t>(count);
}

Result<Capacity> plan_capacity(const catalog::ModelSpec& spec, const CpuExecutorOptions& options) {
  const int32_t context = options.max_context > 0 ? options.max_context : spec.max_context;
  const Result<int32_t> blocks = plan_blocks(spec, options, context);
  if (!blocks.ok()) return blocks.error();
  Capacity capacity;
  capacity.block_count = *blocks;
  capacity.max_tokens_per_step = options.max_tokens_per_step;
  capacity.max_sequences = options.max_sequences;
  capacity.max_context =
      static_cast<int32_t>(std::min(int64_t{context}, int64_t{*blocks} * sched::kBlockTokens));
  return capacity;
}

ForwardLimits limits_of(const Capacity& capacity) {
  return {.max_tokens = capacity.max_tokens_per_step,
          .max_rows = capacity.max_sequences,
          .max_context = capacity.max_context};
}

MemoryNeed need_of(const catalog::ModelSpec& spec, kernels::Dtype dtype, const Capacity& capacity) {
  return {.weights_bytes = Model::weights_bytes(spec, dtype),
          .kv_bytes = capacity.block_count * KvStore::page_bytes(spec, kv_dtype(dtype)),
          .workspace_bytes = Forward::workspace_bytes(spec, limits_of(capacity))};
}

Result<const kernels::Kernels*> choose_kernels(const CpuExecutorOptions& options) {
  if (options.isa) return &kernels::kernels_for(*options.isa);
  const Result<kernels::Isa> isa = kernels::isa_from_environment();
  if (!isa.ok()) return isa.error();
  return &kernels::kernels_for(*isa);
}

}  // namespace

CpuExecutor::CpuExecutor(std::unique_ptr<kernels::ThreadPool> pool, Model model, KvStore kv,
                         const kernels::Kernels& kernels, const CpuExecutorOptions& options,
                         const Capacity& capacity)
    : pool_(std::move(pool)),
      kernels_(&kernels),
      bf16_rows_(options.bf16_rows.value_or(kernels.isa == kernels::Isa::kAmx) &&
                 options.dtype == kernels::Dtype::kBf16),
      model_(std::move(model)),
      kv_(std::move(kv)),
      sampler_(model_.spec().vocab, kernels),
      capacity_(capacity),
      memory_(need_of(model_.spec(), options.dtype, capacity)),
      sample_vocab_(options.sample_vocab > 0 ? options.sample_vocab : model_.spec().vocab) {
  const auto rows = static_cast<size_t>(capacity.max_sequences);
  requests_.reserve(rows);
  rows_.reserve(rows);
  sampled_.reserve(rows);
}

Result<std::unique_ptr<CpuExecutor>> CpuExecutor::create(const catalog::ModelSpec& spec,
                                                         const TensorSource& source,
                                                         const CpuExecutorOptions& options) {
  if (const auto check = check_supported(spec); !check.ok()) return check.error();
  if (const auto check = check_options(spec, options); !check.ok()) return check.error();
  const auto kernels = choose_kernels(options);
  if (!kernels.ok()) return kernels.error();
  const Result<Capacity> capacity = plan_capacity(spec, options);
  if (!capacity.ok()) return capacity.error();

  const Result<int64_t> available = options.memory_available_bytes
                                        ? Result<int64_t>(*options.memory_available_bytes)
                                        : available_memory_bytes();
  if (!available.ok()) return available.error();
  const MemoryNeed need = need_of(spec, options.dtype, *capacity);
  if (const auto check = check_memory(need, *available, spec.id); !check.ok()) {
    return check.error();
  }

  auto pool = std::make_unique<kernels::ThreadPool>(options.threads);
  Result<Model> model = Model::load(spec, options.dtype, source, *pool);
  if (!model.ok()) return model.error();
  Result<KvStore> kv =
      KvStore::create(spec, kv_dtype(options.dtype), capacity->block_count, options.touch_memory);
  if (!kv.ok()) return kv.error();
  std::unique_ptr<CpuExecutor> executor(new CpuExecutor(std::move(pool), std::move(model).value(),
                                                        std::move(kv).value(), **kernels, options,
                                                        *capacity));
  Result<Forward> forward =
      Forward::create(executor->model_, executor->kv_, **kernels, *executor->pool_,
                      limits_of(*capacity), {.bf16_rows = executor->bf16_rows_});
  if (!forward.ok()) return forward.error();
  executor->forward_.emplace(std::move(forward).value());
  return executor;
}

void CpuExecutor::set_trace(OperatorTrace* trace) {
  trace_ = trace;
  forward_->set_trace(trace);
}

CpuExecutor::Request& CpuExecutor::live(sched::Handle handle) {
  PRONY_CHECK(handle < requests_.size() && requests_[handle].live, "no such request");
  return requests_[handle];
}

void CpuExecutor::start(sched::Handle handle, sched::RequestInput input) {
  PRONY_CHECK(!input.prompt.empty(), "empty prompt");
  for (const int32_t token : input.prompt) {
    PRONY_CHECK(token >= 0 && token < model_.spec().vocab, "prompt token outside the vocabulary");
  }
  if (handle >= requests_.size()) requests_.resize(handle + 1);
  Request& request = requests_[handle];
  PRONY_CHECK(!request.live, "handle is in use");
  request.live = true;
  request.prompt_tokens = static_cast<int32_t>(input.prompt.size());
  request.tokens = std::move(input.prompt);
  // No step of this request allocates: a request cannot grow beyond the context.
  const int64_t most = int64_t{request.prompt_tokens} + std::max(0, input.max_new_tokens);
  request.tokens.reserve(static_cast<size_t>(std::min<int64_t>(most, capacity_.max_context + 1)));
  request.sampling = std::move(input.sampling);
}

void CpuExecutor::finish(sched::Handle handle) {
  live(handle) = Request{};
}

void CpuExecutor::submit(const sched::StepPlan& plan) {
  PRONY_CHECK(pending_ == nullptr, "a step is in flight and depth() is 1");
  PRONY_CHECK(plan.loads.empty(), "the cpu executor loads no remote KV");
  pending_ = &plan;
}

void CpuExecutor::prepare(const sched::StepPlan& plan) {
  rows_.clear();
  sampled_.clear();
  top_used_ = 0;
  size_t top_size = 0;
  for (const sched::StepRow& row : plan.rows) {
    const Request& request = live(row.handle);
    const auto known = static_cast<int64_t>(request.tokens.size());
    const int64_t end = int64_t{row.first_position} + row.token_count;
    PRONY_CHECK(row.first_position >= 0 && row.token_count >= 1 && end <= known,
                "row reaches beyond the known tokens");
    PRONY_CHECK(row.samples == (end == known), "a row samples if it reaches the last known token");
    rows_.push_back({.tokens = std::span(request.tokens)
                                   .subspan(static_cast<size_t>(row.first_position),
                                            static_cast<size_t>(row.token_count)),
                     .first_position = row.first_position,
                     .pages = row.blocks,
                     .wants_logits = row.samples});
    if (row.samples) top_size += static_cast<size_t>(std::max(0, request.sampling.logprobs));
  }
  // Before any span into it is given out.
  if (top_.size() < top_size) top_.resize(top_size);
}

Result<sched::StepResult> CpuExecutor::wait() {
  PRONY_CHECK(pending_ != nullptr, "nothing was submitted");
  const sched::StepPlan& plan = *pending_;
  pending_ = nullptr;
  if (trace_ != nullptr) {
    trace_->begin_step();
    for (const sched::StepRow& row : plan.rows) {
      trace_->add_row({row.first_position, row.token_count, row.samples});
    }
  }
  prepare(plan);
  if (!rows_.empty()) forward_->run(rows_, observer_);
  if (const auto sampled = sample_rows(plan); !sampled.ok()) return sampled.error();
  if (trace_ != nullptr) trace_->end_step();
  return sched::StepResult{.step = plan.step, .tokens = sampled_};
}

Result<void> CpuExecutor::sample_rows(const sched::StepPlan& plan) {
  int32_t wanting = 0;
  for (const sched::StepRow& row : plan.rows) wanting += row.samples ? 1 : 0;
  int32_t done = 0;
  int32_t group = 0;  // rows whose logits are computed together
  for (const sched::StepRow& row : plan.rows) {
    if (!row.samples) continue;
    const int32_t in_group = done % Forward::kLogitRows;
    if (in_group == 0) {
      group = std::min(Forward::kLogitRows, wanting - done);
      forward_->compute_logits(done, group);
    }
    if (const auto result = sample_row(row, in_group); !result.ok()) return result.error();
    ++done;
  }
  return {};
}

Result<void> CpuExecutor::sample_row(const sched::StepRow& row, int32_t logits_row) {
  Request& request = live(row.handle);
  const std::span<float> logits(forward_->logits(logits_row), static_cast<size_t>(sample_vocab_));
  const int32_t output_index = request.output_index();
  if (observer_ != nullptr) observer_->on_logits(row.handle, output_index, logits);
  const auto top_size =
      static_cast<size_t>(std::clamp(request.sampling.logprobs, 0, sample_vocab_));
  const std::span<sched::TokenLogprob> top = std::span(top_).subspan(top_used_, top_size);
  top_used_ += top_size;
  const Result<Sampler::Choice> choice =
      sampler_.sample(logits, request.sampling, output_index, top);
  if (!choice.ok()) {
    return failed(fmt::format("model {}: {} at position {}", model_.spec().id,
                              choice.error().message, request.tokens.size() - 1));
  }
  sampled_.push_back(
      {.handle = row.handle, .token = choice->token, .logprob = choice->logprob, .top = top});
  request.tokens.push_back(choice->token);
  return {};
}

}  // namespace prony::engine
