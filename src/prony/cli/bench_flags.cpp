#include "prony/cli/bench_flags.hpp"

#include "prony/cli/bench_compat.hpp"

namespace prony::cli {
namespace {

void declare_target(Flags& flags, BenchFlags& o) {
  flags.group("Endpoint")
      .text("--base-url", o.base_url, "server, with or without /v1; none: starts `prony serve`")
      .text("--endpoint", o.endpoint, "path of the requests, instead of the dialect's")
      .text("--endpoint-type,--backend", o.endpoint_type,
            "auto (asks the server), openai-chat, openai-completions, openai-responses, sglang, "
            "llamacpp, tgi, ollama, vllm-generate, triton, trtllm, lightllm")
      .text("--model", o.model, "model to ask for; none: the first that the server names")
      .text("--tokenizer", o.tokenizer, "to make prompts of an exact length: byte")
      .integer("--vocab-size", o.vocab_size, "for --prompt-format ids without a tokenizer")
      .list("--header", o.headers, "K=V, sent with every request; the key is OPENAI_API_KEY")
      .text("--extra-body", o.extra_body, "JSON object merged into every request's body")
      .toggle("--insecure", o.insecure, "accept any TLS certificate")
      .number("--ready-timeout", o.ready_timeout_s, "wait for the server to answer [s]; 0: do not")
      .choice("--device", o.device, {"cpu"}, "of the server that is started without --base-url");
}

void declare_load(Flags& flags, BenchFlags& o) {
  auto& b = o.bench;
  flags.group("Load")
      .choice("--preset", o.preset, {"none", "single-stream"},
              "single-stream: one user, 3 warm-ups, greedy, 128 tokens, prompt and answer apart")
      .text("--request-rate", b.request_rate, "requests/s, or inf; none: a closed loop")
      .number("--burstiness", b.burstiness, "1 Poisson, below burstier, inf constant gaps")
      .integer("--max-concurrency,--concurrency", b.max_concurrency, "most requests in flight")
      .integer("--num-prompts", b.num_prompts, "requests (200, unless --duration)")
      .number("--duration", b.duration_s, "send for so long [s]")
      .integer("--num-warmups", b.num_warmups, "requests before, not measured")
      .integer("--seed", o.seed, "of everything random");
  declare_arrivals(flags, o);
}

void declare_requests(Flags& flags, BenchFlags& o) {
  auto& b = o.bench;
  flags.group("Requests")
      .toggle("--ignore-eos", b.ignore_eos,
              "answers of the asked length (vLLM, SGLang, Prony; always for own dummies)")
      .number("--temperature", b.temperature, "none: the server's default")
      .choice("--usage", b.usage, {"auto", "none", "final", "continuous", "token-ids"},
              "token counts to ask for; continuous and token-ids count every event")
      .number("--connect-timeout", o.connect_timeout_s, "[s]")
      .number("--first-token-timeout", o.first_token_timeout_s, "from the send [s]")
      .number("--stall-timeout", o.stall_timeout_s, "silence after the first token [s]")
      .number("--total-timeout", o.total_timeout_s, "from the send [s]")
      .number("--drain-timeout", b.drain_s, "after the last arrival [s]; 0: the others bound it");
  flags.group("Client")
      .integer("--threads", b.threads, "event loops, one thread each")
      .text("--pin-cores", o.pin_cores, "pin loops to these cores: 0,2,3")
      .integer("--preconnect", b.preconnect, "connections opened ahead; none: as needed")
      .text("--spin-us", o.spin_us, "poll so long before each send [us]; auto learns it")
      .choice("--scheduling", b.scheduling, {"auto", "normal"},
              "auto: before ordinary threads, if we may and a core is left for them");
}

void declare_results(Flags& flags, BenchFlags& o) {
  auto& b = o.bench;
  flags.group("Telemetry")
      .text("--server-metrics", b.server_metrics, "auto (<root>/metrics), off, or its URL")
      .number("--metrics-interval", b.metrics_interval_s, "of server, host and GPU readings [s]")
      .choice("--gpu-telemetry", b.gpu_telemetry, {"auto", "off"}, "of this host's GPUs (NVML)");
  flags.group("Result")
      .list("--goodput", o.goodput, "bounds of a good request [ms]: ttft:200 tpot:50 e2el:5000")
      .text("--until-ci", o.until_ci,
            "go on until ttft_p50, or METRIC=2%, is known to 2% (at most --num-prompts: 10000)")
      .choice("--steady-state", b.steady_state, {"auto", "off"},
              "auto: leave out warm-up and, in a closed loop, the tail")
      .text("--slo", o.slo, "must hold, else exit 1: ttft_p99<=500ms,tpot_p99<=50ms")
      .text("--fail-if", o.fail_if, "must not hold, else exit 1: error_rate>1%")
      .number("--max-error-rate", b.max_error_rate, "fraction of failed requests, else exit 1")
      .choice("--on-invalid", o.on_invalid, {"fail", "warn"},
              "exit code of a run spoilt by the client")
      .text("--out", o.out, "folder for record.json, requests.jsonl, report.html")
      .toggle("--json", o.json, "print the record as JSON instead of a table")
      .toggle("--save-detailed", b.save_detailed, "every token event in requests.jsonl")
      .toggle("--save-text", b.save_text, "the answers in requests.jsonl")
      .toggle("--save-csv", o.save_csv, "requests.csv in --out as well")
      .toggle("--save-hdr", o.save_hdr, "latencies.hlog in --out: an HdrHistogram log")
      .toggle("--save-trace", o.save_trace, "trace.json in --out, for ui.perfetto.dev")
      .text("--label", b.label, "name of the run")
      .list("--metadata", o.metadata, "K=V, kept in the record")
      .choice("--progress", o.progress, {"auto", "on", "off"},
              "live line on stderr; auto: on a tty");
}

}  // namespace

void declare(Flags& flags, BenchFlags& options) {
  declare_target(flags, options);
  declare_load(flags, options);
  declare_workload(flags, options);
  declare_requests(flags, options);
  declare_results(flags, options);
  declare_compat(flags, options);
  declare_sweep(flags, options.sweep);
}

}  // namespace prony::cli
