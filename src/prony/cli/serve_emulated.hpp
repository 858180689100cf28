// `prony serve --device emulated:HARDWARE`: the executor that stands for a GPU that is not there.
// Thread safety: functions, main thread.
#pragma once
#include <memory>
#include <string>

#include "prony/catalog/model_spec.hpp"
#include "prony/cli/serve_options.hpp"
#include "prony/core/clock.hpp"
#include "prony/core/result.hpp"
#include "prony/sched/executor.hpp"

namespace prony::cli {

/// "h100-sxm" of "emulated:h100-sxm"; empty for other devices.
std::string emulated_hardware(const std::string& device);

/// `clock` outlives it. Limits that no flag gives are the engine profile's; the KV cache is as
/// large as memory leaves it. Error: kInvalidArgument naming the flag; kEnvironment if the model
/// does not fit.
Result<std::unique_ptr<sched::Executor>> make_emulated(const ServeOptions& options,
                                                       const catalog::ModelSpec& model,
                                                       core::Clock& clock);

}  // namespace prony::cli
