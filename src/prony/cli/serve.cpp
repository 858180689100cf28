// prony serve: an OpenAI-compatible server over the embedded engine. docs/server.md is its manual.
#include <fmt/format.h>

#include <csignal>
#include <memory>
#include <utility>

#include "prony/catalog/catalog.hpp"
#include "prony/cli/commands.hpp"
#include "prony/cli/flags.hpp"
#include "prony/cli/serve_cuda.hpp"
#include "prony/cli/serve_emulated.hpp"
#include "prony/cli/serve_options.hpp"
#include "prony/cli/serve_trace.hpp"
#include "prony/core/scheduling.hpp"
#include "prony/core/system.hpp"
#include "prony/core/units.hpp"
#include "prony/engine/cpu_executor.hpp"
#include "prony/engine/dummy_tensors.hpp"
#include "prony/net/event_loop.hpp"
#include "prony/net/signals.hpp"
#include "prony/server/service.hpp"
#include "prony/token/byte_tokenizer.hpp"
#include "prony/version.hpp"

namespace prony::cli {
namespace {

constexpr core::Nanos kDrainLimitNs = 30 * core::kNanosPerSecond;

Result<std::unique_ptr<sched::Executor>> make_executor(const catalog::ModelSpec& spec,
                                                       const ServeOptions& options,
                                                       core::Clock& clock) {
  if (!emulated_hardware(options.device).empty()) return make_emulated(options, spec, clock);
  if (options.device == "cuda") return make_cuda(options, spec);
  engine::CpuExecutorOptions wanted;
  const auto dtype = options.weight_dtype.value_or("bf16");
  wanted.dtype = dtype == "fp32"   ? kernels::Dtype::kF32
                 : dtype == "int8" ? kernels::Dtype::kI8
                                   : kernels::Dtype::kBf16;
  wanted.bf16_rows = std::nullopt;
  if (options.activation_dtype != "auto") wanted.bf16_rows = options.activation_dtype == "bf16";
  wanted.threads = options.threads > 0 ? static_cast<int>(options.threads)
                                       : static_cast<int>(core::allowed_cores().size());
  wanted.max_tokens_per_step = static_cast<int32_t>(options.max_step_tokens.value_or(512));
  wanted.max_sequences = static_cast<int32_t>(options.max_sequences.value_or(64));
  wanted.max_context = static_cast<int32_t>(options.max_context);
  wanted.kv_cache_bytes = static_cast<int64_t>(options.kv_memory_gib.value_or(0.5) * core::kGiB);
  if (options.kv_blocks) wanted.block_count = static_cast<int32_t>(*options.kv_blocks);
  const engine::DummyTensors weights(static_cast<uint64_t>(options.seed));
  auto made = engine::CpuExecutor::create(spec, weights, wanted);
  if (!made) return made.error();
  return std::unique_ptr<sched::Executor>(std::move(made).value());
}

// Serves until a signal has drained it or the device failed; the exit code.
int serve(sched::Executor& executor, const token::Tokenizer& tokenizer, core::Clock& clock,
          const ServeOptions& options) {
  const token::ByteChatTemplate chat_template;
  net::EventLoop loop;
  server::ServiceOptions wanted;
  wanted.model_name = options.served_name.empty() ? options.model : options.served_name;
  wanted.version = kVersion;
  wanted.seed = static_cast<uint64_t>(options.seed);
  wanted.max_waiting = static_cast<int32_t>(options.max_waiting);
  wanted.http.host = options.host;
  wanted.http.port = static_cast<uint16_t>(options.port);
  wanted.scheduler = sched::options_for(executor);
  wanted.scheduler.prefix_caching = options.prefix_caching == "on";
  if (options.policy == "priority") wanted.scheduler.policy = sched::Policy::kPriority;

  int code = kExitOk;
  const auto end = [&](int exit_code) {
    code = exit_code;
    loop.stop();
  };
  auto service = server::Service::create(loop, executor, tokenizer, chat_template, clock, wanted,
                                         [&](const Error& error) {
                                           report_error("serve", error);
                                           end(kExitEnvironment);
                                         });
  if (!service) return report_error("serve", service.error());

  bool draining = false;
  net::Timer drain_limit(loop, [&] { end(kExitFailed); });
  const net::SignalWatch signals(loop, {SIGTERM, SIGINT}, [&](int) {
    if (std::exchange(draining, true)) return end(kExitFailed);  // asked twice
    drain_limit.arm(clock.now_ns() + kDrainLimitNs);
    (*service)->drain([&] { end(kExitOk); });
  });
  // An emulated step ends on time only if its answer also leaves on time.
  if (!emulated_hardware(options.device).empty()) core::prefer_thread();
  fmt::print(stderr, "listening on http://{}:{}\n", options.host, (*service)->port());
  loop.run();
  return code;
}

}  // namespace

int run_serve(const Arguments& arguments) {
  ServeOptions options;
  Flags flags("serve", "an OpenAI-compatible server over the embedded engine");
  declare(flags, options);
  const auto parsed = flags.parse(arguments);
  if (!parsed) return report_error("serve", parsed.error());
  if (*parsed == Flags::Outcome::kHelp) {
    fmt::print("{}", flags.help());
    return kExitOk;
  }
  if (const auto ok = check(options); !ok) return report_error("serve", ok.error());
  const auto spec = catalog::resolve_model(options.model);
  if (!spec) return report_error("serve", spec.error());
  if (spec->vocab < token::kByteVocabulary) {
    return report_error("serve", invalid_argument(fmt::format(
                                     "--model {}: found a vocabulary of {}, the byte tokenizer "
                                     "needs {}",
                                     options.model, spec->vocab, token::kByteVocabulary)));
  }
  core::MonotonicClock clock;
  const auto executor = make_executor(*spec, options, clock);
  if (!executor) return report_error("serve", executor.error());
  const token::ByteTokenizer tokenizer(spec->vocab);
  auto trace = ServeTrace::start(options.trace_file, **executor);
  if (!trace) return report_error("serve", trace.error());
  const int code = serve(**executor, tokenizer, clock, options);
  if (const auto done = trace->finish(); !done) return report_error("serve", done.error());
  return code;
}

}  // namespace prony::cli
