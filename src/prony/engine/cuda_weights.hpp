// Weights on their way to the device: each tensor of a checkpoint, by its published name, rounded
// to bf16 (vectors stay floats, rounded like the CPU engine's) and sent in pieces by all threads of
// a pool, so no tensor is in host memory as a whole. Thread safety: one thread.
#pragma once
#include "prony/catalog/model_spec.hpp"
#include "prony/core/result.hpp"
#include "prony/engine/tensor_source.hpp"
#include "prony/kernels/cuda/abi.hpp"
#include "prony/kernels/thread_pool.hpp"

namespace prony::engine {

/// The shape as the device library wants it.
kernels::cuda::ModelShape cuda_shape(const catalog::ModelSpec& spec);

/// Error: kInvalidArgument naming the model and the first thing the device library does not do.
Result<void> check_supported_by_cuda(const catalog::ModelSpec& spec);

/// Requires check_supported_by_cuda(spec). Error: what the source says, or kEnvironment.
Result<void> upload_weights(const kernels::cuda::Api& api, kernels::cuda::Engine* engine,
                            const catalog::ModelSpec& spec, int32_t max_context,
                            const TensorSource& source, kernels::ThreadPool& pool);

}  // namespace prony::engine
