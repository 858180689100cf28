#include "prony/certify/player.hpp"

#include <algorithm>
#include <utility>

#include "prony/core/usage.hpp"
#include "prony/load/endpoint.hpp"
#include "prony/workload/prompt_builder.hpp"

namespace prony::certify {

load::BenchOptions quick_run(int64_t requests, int64_t tokens) {
  load::BenchOptions options;
  options.request_rate = "inf";
  options.max_concurrency = requests;
  options.num_prompts = requests;
  options.input_len = "8";
  options.output_len = std::to_string(tokens);
  options.save_detailed = true;
  return options;
}

Result<Played> play(const Host& host, std::vector<std::string> mock_arguments,
                    const load::BenchOptions& options) {
  const std::string stamps = host.scratch + "/stamps.jsonl";
  mock_arguments.insert(mock_arguments.begin(), {"mock", "--port", "0", "--stamps", stamps});
  auto mock = host.start_mock(mock_arguments);
  if (!mock) return mock.error();

  load::EndpointOptions target;
  target.base_url = mock.value()->url();
  target.type = "openai-chat";
  target.model = "mock";
  const auto endpoint = load::open_endpoint(
      target, [](std::string_view) {}, host.interrupt);
  if (!endpoint) return endpoint.error();
  auto prompts = workload::PromptBuilder::create(nullptr, {.seed = options.seed});
  if (!prompts) return prompts.error();

  Played played;
  played.resident_before_bytes = played.resident_most_bytes = core::resident_bytes();
  load::BenchHooks hooks;
  hooks.interrupt = host.interrupt;
  hooks.progress = [&played](const load::LiveTotals&) {
    const auto now = core::resident_bytes();
    if (now && played.resident_most_bytes) {
      played.resident_most_bytes = std::max(*now, *played.resident_most_bytes);
    }
  };
  auto run = load::run_bench(
      options, endpoint.value(),
      std::make_shared<const workload::PromptBuilder>(std::move(prompts).value()), hooks);
  mock.value()->stop();
  if (!run) return run.error();
  if (run.value().record.run.interrupted) return failed("interrupted by the user");
  played.session.run = std::move(run).value();
  played.session.rows = record::all_rows(played.session.run.rows);
  auto served = mock::read_stamps(stamps);
  if (!served) return served.error();
  // Readiness and whole answers of other paths are no requests of the run.
  played.session.served = std::move(served).value();
  return played;
}

}  // namespace prony::certify
