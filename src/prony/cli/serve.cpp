// prony serve: an OpenAI-compatible server over the embedded engine. docs/server.md is its manual.
#include <fmt/format.h>

#include <csignal>
#include <memory>
#include <utility>

#include "prony/cli/commands.hpp"
#include "prony/cli/flags.hpp"
#include "prony/cli/serve_emulated.hpp"
#include "prony/cli/serve_model.hpp"
#include "prony/cli/serve_options.hpp"
#include "prony/cli/serve_trace.hpp"
#include "prony/core/clock.hpp"
#include "prony/core/scheduling.hpp"
#include "prony/net/event_loop.hpp"
#include "prony/net/signals.hpp"
#include "prony/server/service.hpp"
#include "prony/version.hpp"

namespace prony::cli {
namespace {

constexpr core::Nanos kDrainLimitNs = 30 * core::kNanosPerSecond;

// Serves until a signal has drained it or the device failed; the exit code.
int serve(ServedModel& model, core::Clock& clock, const ServeOptions& options) {
  sched::Executor& executor = *model.executor;
  net::EventLoop loop;
  server::ServiceOptions wanted;
  wanted.model_name = options.served_name.empty() ? model.name : options.served_name;
  wanted.version = kVersion;
  wanted.sampling = model.sampling;
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
  auto service = server::Service::create(loop, executor, *model.tokenizer, *model.chat_template,
                                         clock, wanted, [&](const Error& error) {
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
  core::MonotonicClock clock;
  auto model = load_served_model(options, clock);
  if (!model) return report_error("serve", model.error());
  auto trace = ServeTrace::start(options.trace_file, *model->executor);
  if (!trace) return report_error("serve", trace.error());
  const int code = serve(*model, clock, options);
  if (const auto done = trace->finish(); !done) return report_error("serve", done.error());
  return code;
}

}  // namespace prony::cli
