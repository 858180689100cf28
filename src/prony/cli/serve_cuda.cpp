#include "prony/cli/serve_cuda.hpp"

#include <fmt/format.h>

#include "prony/core/system.hpp"
#include "prony/core/units.hpp"
#include "prony/engine/cuda_executor.hpp"
#include "prony/engine/cuda_plugin.hpp"
#include "prony/engine/dummy_tensors.hpp"

namespace prony::cli {

Result<std::unique_ptr<sched::Executor>> make_cuda(const ServeOptions& options,
                                                   const catalog::ModelSpec& spec) {
  if (options.weight_dtype.value_or("bf16") != "bf16") {
    return invalid_argument(
        fmt::format("--weight-dtype: found '{}', expected bf16 on cuda", *options.weight_dtype));
  }
  const auto api = engine::open_cuda_plugin();
  if (!api) return api.error();
  engine::CudaExecutorOptions wanted;
  wanted.graphs = options.cuda_graphs == "on";
  wanted.threads = options.threads > 0 ? static_cast<int>(options.threads)
                                       : static_cast<int>(core::allowed_cores().size());
  wanted.max_tokens_per_step = static_cast<int32_t>(options.max_step_tokens.value_or(8192));
  wanted.max_sequences = static_cast<int32_t>(options.max_sequences.value_or(256));
  wanted.max_context = static_cast<int32_t>(options.max_context);
  if (options.kv_memory_gib) {
    wanted.kv_cache_bytes = static_cast<int64_t>(*options.kv_memory_gib * core::kGiB);
  }
  if (options.kv_blocks) wanted.block_count = static_cast<int32_t>(*options.kv_blocks);
  const engine::DummyTensors weights(static_cast<uint64_t>(options.seed));
  auto made = engine::CudaExecutor::create(**api, spec, weights, wanted);
  if (!made) return made.error();
  const auto& need = (*made)->memory();
  fmt::print(stderr, "{}: weights {:.2f} GB, {} KV blocks in {:.2f} GB, buffers {:.2f} GB\n",
             (*made)->device_info().name, static_cast<double>(need.weights_bytes) / core::kGB,
             (*made)->capacity().block_count, static_cast<double>(need.kv_bytes) / core::kGB,
             static_cast<double>(need.workspace_bytes) / core::kGB);
  return std::unique_ptr<sched::Executor>(std::move(made).value());
}

}  // namespace prony::cli
