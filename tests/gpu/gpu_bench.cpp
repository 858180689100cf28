// Speeds of the CUDA executor beside the ceilings measured in the same minute: decode steps at context
// 2048 for several batch sizes, and a prefill of one long prompt. A step is timed as the server sees
// it, submit() to the end of wait(), host work included. Weights are random, every KV page was computed.
// Usage: prony_gpu_bench [MODEL] [JSON FILE]; a model of the catalogue, llama-3.1-8b by default.
// `prony_gpu_bench MODEL profile` runs a few steps without graphs and prints nothing of them: for a
// profiler that lists kernels (ncu --metrics gpu__time_duration.sum).
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "prony/catalog/catalog.hpp"
#include "prony/core/check.hpp"
#include "prony/core/clock.hpp"
#include "prony/core/json.hpp"
#include "prony/core/system.hpp"
#include "prony/engine/cuda_executor.hpp"
#include "prony/engine/cuda_plugin.hpp"
#include "prony/engine/dummy_tensors.hpp"
#include "prony/engine/specs_testing.hpp"

namespace prony::gpu {
namespace {

constexpr int32_t kContext = 2048;
constexpr int32_t kMaxBatch = 256;
constexpr int32_t kPrefill = 8192;
constexpr int kWarmSteps = 5, kTimedSteps = 40;
constexpr int kPrefillWarmSteps = 2, kPrefillSteps = 5;

struct Row {
  std::string name;
  double ms = 0, least_ms = 0, floor_ms = 0, target_ms = 0;
  int steps = 0;
};

// Rows of the executor by hand: no scheduler between the steps and the clock.
class Steps {
 public:
  explicit Steps(engine::CudaExecutor& executor) : executor_(executor) {}

  void start(sched::Handle handle, int32_t tokens, int32_t vocab) {
    executor_.start(handle, {.prompt = engine::random_tokens(tokens, vocab, 11 + handle),
                             .sampling = {},
                             .max_new_tokens = 600});
  }
  /// One step of `rows`; its milliseconds.
  double run(const std::vector<sched::StepRow>& rows) {
    plan_.rows = rows;
    plan_.token_count = 0;
    for (const auto& row : rows) plan_.token_count += row.token_count;
    const core::Nanos t_begin_ns = core::monotonic_ns();
    executor_.submit(plan_);
    const auto result = executor_.wait();
    const core::Nanos t_end_ns = core::monotonic_ns();
    PRONY_CHECK(result.ok(), result.error().message);
    ++plan_.step;
    return static_cast<double>(t_end_ns - t_begin_ns) / 1e6;
  }

 private:
  engine::CudaExecutor& executor_;
  sched::StepPlan plan_;
};

Row summed_up(std::string name, std::vector<double> times, double floor_ms, double target_ms) {
  std::sort(times.begin(), times.end());
  return {std::move(name), times[times.size() / 2],       times[0],
          floor_ms,        target_ms,                     static_cast<int>(times.size())};
}

struct Counts {
  double weight_bytes, kv_bytes_per_token, matrix_flops_per_token;
};
Counts counts_of(const catalog::ModelSpec& s) {
  const double attention = static_cast<double>(s.hidden) * (s.heads + 2.0 * s.kv_heads) * s.head_dim +
                           static_cast<double>(s.heads) * s.head_dim * s.hidden;
  const double mlp = 3.0 * s.hidden * s.intermediate;
  const double head = static_cast<double>(s.vocab) * s.hidden;
  return {(s.layers * (attention + mlp) + head) * 2, 4.0 * s.layers * s.kv_heads * s.head_dim,
          2 * s.layers * (attention + mlp)};
}

std::vector<Row> measure(engine::CudaExecutor& executor, const catalog::ModelSpec& spec,
                         const kernels::cuda::Ceilings& ceilings, bool profile) {
  const int warm = profile ? 0 : kWarmSteps, timed = profile ? 1 : kTimedSteps;
  const int prefills = profile ? 1 : kPrefillWarmSteps + kPrefillSteps;
  Steps steps(executor);
  std::vector<Row> rows;
  const int32_t blocks_each = (kContext + 600) / sched::kBlockTokens;
  std::vector<std::vector<int32_t>> blocks(kMaxBatch);
  int32_t next_block = 0;
  const Counts counts = counts_of(spec);

  // Prefill of one prompt: matrix products and causal attention.
  std::vector<int32_t> long_blocks(kPrefill / sched::kBlockTokens);
  std::iota(long_blocks.begin(), long_blocks.end(), 0);
  steps.start(kMaxBatch, kPrefill, spec.vocab);
  std::vector<double> times;
  for (int i = 0; i < prefills; ++i) {
    // Not the last token: nothing is sampled, so the same prompt runs again.
    const double ms = steps.run({{.handle = kMaxBatch,
                                  .first_position = 0,
                                  .token_count = kPrefill - 1,
                                  .samples = false,
                                  .blocks = long_blocks}});
    if (i >= kPrefillWarmSteps || profile) times.push_back(ms);
  }
  executor.finish(kMaxBatch);
  const double flops =
      kPrefill * counts.matrix_flops_per_token +
      2.0 * kPrefill * kPrefill * spec.heads * spec.head_dim * spec.layers;
  const double prefill_floor = flops / ceilings.gemm_tflop_s / 1e9;
  rows.push_back(summed_up(fmt::format("prefill of {} tokens", kPrefill), times, prefill_floor,
                           prefill_floor / 0.75));

  for (int32_t h = 0; h < kMaxBatch; ++h) {
    auto& mine = blocks[static_cast<size_t>(h)];
    for (int32_t i = 0; i < blocks_each; ++i) mine.push_back(next_block++);
    steps.start(static_cast<sched::Handle>(h), kContext, spec.vocab);
  }
  const int32_t together = std::max(1, executor.capacity().max_tokens_per_step / kContext);
  for (int32_t h = 0; h < kMaxBatch && !profile; h += together) {
    std::vector<sched::StepRow> chunk;
    for (int32_t i = h; i < std::min(kMaxBatch, h + together); ++i) {
      chunk.push_back({.handle = static_cast<sched::Handle>(i),
                       .first_position = 0,
                       .token_count = kContext,
                       .samples = true,
                       .blocks = blocks[static_cast<size_t>(i)]});
    }
    steps.run(chunk);
  }
  std::vector<int32_t> position(kMaxBatch, profile ? kContext - 1 : kContext);
  for (const auto& [batch, target_ms] :
       {std::pair{1, 4.2}, {2, 0.0}, {4, 0.0}, {8, 0.0}, {16, 0.0}, {64, 9.2}, {256, 24.5}}) {
    times.clear();
    double context = 0;
    for (int i = 0; i < warm + timed; ++i) {
      std::vector<sched::StepRow> step;
      context = 0;
      for (int32_t h = 0; h < batch; ++h) {
        int32_t& at = position[static_cast<size_t>(h)];
        context += at + 1;
        step.push_back({.handle = static_cast<sched::Handle>(h),
                        .first_position = at++,
                        .token_count = 1,
                        .samples = true,
                        .blocks = blocks[static_cast<size_t>(h)]});
      }
      const double ms = steps.run(step);
      if (i >= warm) times.push_back(ms);
    }
    const double read_ms = (counts.weight_bytes + context * counts.kv_bytes_per_token) /
                           (ceilings.read_gb_s * 1e6);
    const double compute_ms =
        batch * (counts.matrix_flops_per_token + 2.0 * spec.vocab * spec.hidden) /
        (ceilings.gemm_tflop_s * 1e9);
    const double kv_ms = context * counts.kv_bytes_per_token / (ceilings.read_gb_s * 1e6);
    rows.push_back(summed_up(fmt::format("decode, batch {}, context about {}", batch,
                                         static_cast<int>(context / batch)),
                             times, std::max(read_ms, compute_ms + kv_ms), target_ms));
  }
  return rows;
}

int fail(const Error& error) {
  fmt::print(stderr, "gpu-bench: {}\n", error.message);
  return 3;
}

int bench(const std::string& model, const std::string& json_path) {
  const auto api = engine::open_cuda_plugin();
  if (!api.ok()) return fail(api.error());
  const auto spec = catalog::resolve_model("dummy:" + model);
  if (!spec) return fail(spec.error());
  kernels::cuda::Ceilings ceilings;
  char text[400] = {};
  const bool profile = json_path == "profile";
  if (!profile && (*api)->measure(&ceilings, text, sizeof(text)) != 0) return fail(environment_error(text));

  engine::CudaExecutorOptions options;
  options.max_tokens_per_step = kPrefill;
  options.max_sequences = kMaxBatch;
  options.max_context = kPrefill;
  options.block_count = kMaxBatch * (kContext + 600) / sched::kBlockTokens + 1;
  options.graphs = !profile;
  options.threads = static_cast<int>(core::allowed_cores().size());
  const core::Nanos t_load_ns = core::monotonic_ns();
  const auto executor =
      engine::CudaExecutor::create(**api, *spec, engine::DummyTensors(1), options);
  if (!executor.ok()) return fail(executor.error());
  const double load_s = static_cast<double>(core::monotonic_ns() - t_load_ns) / 1e9;
  const auto rows = measure(**executor, *spec, ceilings, profile);
  if (profile) return 0;

  fmt::print("{} on {}: read {:.0f} GB/s, copy {:.0f} GB/s, bf16 8192^3 {:.0f} TFLOP/s; weights in "
             "{:.1f} s\n",
             model, (*executor)->device_info().name, ceilings.read_gb_s, ceilings.copy_gb_s,
             ceilings.gemm_tflop_s, load_s);
  fmt::print("{:<36} {:>9} {:>9} {:>9} {:>7} {:>9}\n", "step", "median ms", "least ms", "floor ms",
             "share", "target");
  core::Json json = {{"schema", "prony.gpu-bench/1"},
                     {"model", model},
                     {"device", (*executor)->device_info().name},
                     {"read_gb_s", ceilings.read_gb_s},
                     {"copy_gb_s", ceilings.copy_gb_s},
                     {"gemm_tflop_s", ceilings.gemm_tflop_s},
                     {"load_s", load_s},
                     {"rows", core::Json::array()}};
  for (const Row& row : rows) {
    const std::string target = row.target_ms > 0 ? fmt::format("{:.1f}", row.target_ms) : "-";
    fmt::print("{:<36} {:>9.3f} {:>9.3f} {:>9.3f} {:>6.1f}% {:>9}{}\n", row.name, row.ms,
               row.least_ms, row.floor_ms, 100 * row.floor_ms / row.ms, target,
               row.target_ms > 0 && row.ms > row.target_ms ? " missed" : "");
    json["rows"].push_back({{"name", row.name},
                            {"median_ms", row.ms},
                            {"least_ms", row.least_ms},
                            {"steps", row.steps},
                            {"floor_ms", row.floor_ms},
                            {"share", row.floor_ms / row.ms}});
  }
  if (json_path.empty()) return 0;
  std::FILE* file = std::fopen(json_path.c_str(), "w");
  if (file == nullptr) return fail(environment_error("cannot write " + json_path));
  fmt::print(file, "{}\n", json.dump(2));
  return std::fclose(file) == 0 ? 0 : 3;
}

}  // namespace
}  // namespace prony::gpu

int main(int argc, char** argv) {
  return prony::gpu::bench(argc > 1 ? argv[1] : "llama-3.1-8b", argc > 2 ? argv[2] : "");
}
