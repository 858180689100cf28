// What `prony bench` prepares: a server of our own where no endpoint is given, and the prompts.
// Thread safety: main thread.
#pragma once
#include <atomic>
#include <memory>

#include "prony/cli/bench_flags.hpp"
#include "prony/cli/child_process.hpp"
#include "prony/core/result.hpp"
#include "prony/load/endpoint.hpp"
#include "prony/workload/prompt_builder.hpp"

namespace prony::cli {

/// Starts `prony serve` on a free port, leaving the client its cores, and points `flags.target` at
/// it. Error: kEnvironment if it does not come up.
Result<std::unique_ptr<ChildProcess>> start_server(BenchFlags& flags,
                                                   const std::atomic<bool>& interrupt);

/// Prompts by the tokenizer that was asked for, or the one that our own server is known to have;
/// else a best effort. Error: kInvalidArgument naming the flag.
Result<std::shared_ptr<const workload::PromptBuilder>> make_prompts(const BenchFlags& flags,
                                                                    const load::Endpoint& endpoint);

}  // namespace prony::cli
