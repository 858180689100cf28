// What `prony bench` prepares: a server of our own where no endpoint is given, and the prompts; and
// the run itself, which every cell of a sweep and every probe of a search goes through.
// Thread safety: main thread.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string_view>

#include "prony/cli/bench_flags.hpp"
#include "prony/cli/child_process.hpp"
#include "prony/core/result.hpp"
#include "prony/load/bench.hpp"
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

/// What only this machine and this moment can fill in: the sample trace's path, a fresh salt.
Result<void> fill_defaults(BenchFlags& flags);

/// One measured run: prompts, load with its progress line, record. Error: as load::run_bench.
Result<load::BenchRun> measure(BenchFlags& flags, const load::Endpoint& endpoint,
                               const std::atomic<bool>& interrupt,
                               const std::function<void(std::string_view)>& note,
                               core::Group* group = nullptr);

}  // namespace prony::cli
