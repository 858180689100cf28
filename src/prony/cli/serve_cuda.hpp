// The executor behind `prony serve --device cuda`: the library opened, memory planned and told on
// stderr, weights loaded. Thread safety: as the executor.
#pragma once
#include <memory>

#include "prony/catalog/model_spec.hpp"
#include "prony/cli/serve_options.hpp"
#include "prony/core/result.hpp"
#include "prony/sched/executor.hpp"

namespace prony::cli {

/// Error: kEnvironment without a GPU or the CUDA library, or what the model lacks.
Result<std::unique_ptr<sched::Executor>> make_cuda(const ServeOptions& options,
                                                   const catalog::ModelSpec& spec);

}  // namespace prony::cli
