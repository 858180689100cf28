// The fields of a record, each named once: writer, reader and JSON Schema all walk these lists, so
// that they cannot differ. Order is the order in the file.
// A visitor has field(key, member, rule). Every field is required unless its rule says optional.
// Internal to record. Thread safety: pure functions.
#pragma once
#include "prony/record/record.hpp"

namespace prony::record {

struct Rule {
  std::optional<double> minimum, maximum;
  bool optional = false;  // may be absent
  bool array = false;     // of free form (Json members): an array instead of an object
  bool newer = false;     // always written, but records of earlier versions lack it
};
inline constexpr Rule kAny{};
inline constexpr Rule kNotNegative{.minimum = 0};
inline constexpr Rule kFraction{.minimum = 0, .maximum = 1};
inline constexpr Rule kNewer{.newer = true};

template <class M, class Visitor>
void visit_latency_fields(M& m, Visitor& v) {
  v.field("n", m.n, kNotNegative);
  v.field("mean", m.mean, kAny);
  v.field("sd", m.sd, kNotNegative);
  v.field("min", m.min, kAny);
  v.field("max", m.max, kAny);
  v.field("p50", m.p50, kAny);
  v.field("p75", m.p75, kAny);
  v.field("p90", m.p90, kAny);
  v.field("p95", m.p95, kAny);
  v.field("p99", m.p99, kAny);
  v.field("p999", m.p999, kAny);
  v.field("p9999", m.p9999, kNewer);
  v.field("ci95", m.ci95, kAny);
}

template <class M, class Visitor>
void visit_ci95_fields(M& m, Visitor& v) {
  v.field("p50", m.p50, kAny);
  v.field("p90", m.p90, kAny);
  v.field("p99", m.p99, kAny);
  v.field("mean", m.mean, kNewer);
  v.field("p95", m.p95, kNewer);
  v.field("p999", m.p999, kNewer);
  v.field("p9999", m.p9999, kNewer);
}

template <class M, class Visitor>
void visit_rate_ci95_fields(M& m, Visitor& v) {
  v.field("request_throughput", m.request_throughput, kAny);
  v.field("output_throughput", m.output_throughput, kAny);
  v.field("goodput", m.goodput, kAny);
  v.field("goodput_output_throughput", m.goodput_output_throughput, kAny);
  v.field("goodput_fraction", m.goodput_fraction, kAny);
  v.field("error_rate", m.error_rate, kAny);
}

template <class M, class Visitor>
void visit_little_fields(M& m, Visitor& v) {
  v.field("in_flight", m.in_flight, kNotNegative);
  v.field("rate", m.rate, kNotNegative);
  v.field("residence_s", m.residence_s, kNotNegative);
  v.field("discrepancy", m.discrepancy, kAny);
}

template <class M, class Visitor>
void visit_warm_up_fields(M& m, Visitor& v) {
  v.field("judged", m.judged, kAny);
  v.field("requests", m.requests, kNotNegative);
  v.field("seconds", m.seconds, kNotNegative);
  v.field("change", m.change, kAny);
  v.field("trimmed", m.trimmed, kAny);
}

template <class M, class Visitor>
void visit_error_slice_fields(M& m, Visitor& v) {
  v.field("begin_s", m.begin_s, kNotNegative);
  v.field("end_s", m.end_s, kNotNegative);
  v.field("attempted", m.attempted, kNotNegative);
  v.field("errors", m.errors, kNotNegative);
}

template <class M, class Visitor>
void visit_failure_run_fields(M& m, Visitor& v) {
  v.field("requests", m.requests, kNotNegative);
  v.field("begin_s", m.begin_s, kNotNegative);
  v.field("end_s", m.end_s, kNotNegative);
  v.field("errors", m.errors, kNotNegative);
}

template <class M, class Visitor>
void visit_group_fields(M& m, Visitor& v) {
  v.field("attempted", m.attempted, kNotNegative);
  v.field("completed", m.completed, kNotNegative);
  v.field("begin_s", m.begin_s, kNewer);
  v.field("end_s", m.end_s, kNewer);
  v.field("input_tokens_mean", m.input_tokens_mean, kNotNegative);
  v.field("output_tokens_mean", m.output_tokens_mean, kNewer);
  v.field("ttft_ms", m.ttft_ms, kAny);
  v.field("tpot_ms", m.tpot_ms, kAny);
  v.field("itl_ms", m.itl_ms, kAny);
  v.field("e2e_ms", m.e2e_ms, kAny);
}

template <class M, class Visitor>
void visit_turn_fields(M& m, Visitor& v) {
  v.field("turn", m.turn, kNotNegative);
  visit_group_fields(m, v);
}

template <class M, class Visitor>
void visit_stage_fields(M& m, Visitor& v) {
  v.field("stage", m.stage, kNotNegative);
  visit_group_fields(m, v);
}

template <class M, class Visitor>
void visit_tally_fields(M& m, Visitor& v) {
  v.field("requests", m.requests, kNotNegative);
  v.field("asked", m.asked, kNotNegative);
  v.field("got", m.got, kNotNegative);
  v.field("equal", m.equal, kNotNegative);
  v.field("fewer", m.fewer, kNotNegative);
  v.field("more", m.more, kNotNegative);
  v.field("unknown", m.unknown, kNotNegative);
}

template <class M, class Visitor>
void visit_metrics_fields(M& m, Visitor& v) {
  v.field("attempted", m.attempted, kNotNegative);
  v.field("completed", m.completed, kNotNegative);
  v.field("failed", m.failed, kNotNegative);
  v.field("errors", m.errors, kNotNegative);
  v.field("http_errors", m.http_errors, kNotNegative);
  v.field("window_s", m.window_s, kNotNegative);
  v.field("duration_s", m.duration_s, kNotNegative);
  v.field("request_throughput", m.request_throughput, kNotNegative);
  v.field("output_throughput", m.output_throughput, kNotNegative);
  v.field("output_throughput_run", m.output_throughput_run, kNotNegative);
  v.field("total_throughput", m.total_throughput, kNotNegative);
  v.field("goodput", m.goodput, kNotNegative);
  v.field("goodput_fraction", m.goodput_fraction, kFraction);
  v.field("ttft_ms", m.ttft_ms, kAny);
  v.field("tpot_ms", m.tpot_ms, kAny);
  v.field("itl_ms", m.itl_ms, kAny);
  v.field("icl_ms", m.icl_ms, kAny);
  v.field("e2e_ms", m.e2e_ms, kAny);
  v.field("ttft_intended_ms", m.ttft_intended_ms, kAny);
  v.field("e2e_intended_ms", m.e2e_intended_ms, kAny);
  v.field("send_lag_ms", m.send_lag_ms, kAny);
  v.field("read_lag_ms", m.read_lag_ms, kAny);
  v.field("queue_ms", m.queue_ms, kAny);
  v.field("ttfe_ms", m.ttfe_ms, kAny);
  v.field("ttfo_ms", m.ttfo_ms, kAny);
  v.field("ntpot_ms", m.ntpot_ms, kAny);
  v.field("tpot_vllm_ms", m.tpot_vllm_ms, kAny);
  v.field("connect_ms", m.connect_ms, kAny);
  v.field("user_tokens_per_s", m.user_tokens_per_s, kAny);
  v.field("window_rule", m.window_rule, kAny);
  v.field("request_throughput_run", m.request_throughput_run, kNotNegative);
  v.field("goodput_output_throughput", m.goodput_output_throughput, kNotNegative);
  v.field("goodput_slo", m.goodput_slo, kAny);
  v.field("input_tokens", m.input_tokens, kAny);
  v.field("output_tokens", m.output_tokens, kAny);
  v.field("token_sources", m.token_sources, kNotNegative);
  v.field("token_source_mixed", m.token_source_mixed, kAny);
  v.field("itl_basis", m.itl_basis, kAny);
  v.field("tpot_undefined", m.tpot_undefined, kNotNegative);
  v.field("bursty_streams", m.bursty_streams, kNotNegative);
  v.field("token_events", m.token_events, kNotNegative);
  v.field("merged_events", m.merged_events, kNotNegative);
  v.field("retries", m.retries, kNotNegative);
  v.field("requested_rate", m.requested_rate, kNotNegative);
  v.field("intended_rate", m.intended_rate, kNotNegative);
  v.field("sent_rate", m.sent_rate, kNotNegative);
  v.field("concurrency_mean", m.concurrency_mean, kNotNegative);
  v.field("concurrency_max", m.concurrency_max, kNotNegative);
  v.field("steady", m.steady, kAny);
  v.field("steady_change", m.steady_change, kAny);
  v.field("approximate", m.approximate, kAny);
  v.field("prefill_tokens_per_s", m.prefill_tokens_per_s, kNewer);
  v.field("warm_up", m.warm_up, kNewer);
  v.field("overloaded", m.overloaded, kNewer);
  v.field("queue_growth", m.queue_growth, kNewer);
  v.field("little", m.little, kNewer);
  v.field("ci95", m.ci95, kNewer);
  v.field("error_slices", m.error_slices, kNewer);
  v.field("longest_failure_run", m.longest_failure_run, kNewer);
  v.field("turns", m.turns, kNewer);
  v.field("stages", m.stages, kNewer);
}

template <class M, class Visitor>
void visit_system_fields(M& m, Visitor& v) {
  v.field("kind", m.kind, kAny);
  v.field("model", m.model, kAny);
  v.field("endpoint", m.endpoint, kAny);
  v.field("endpoint_type", m.endpoint_type, kAny);
  v.field("server", m.server, kAny);
  v.field("device", m.device, kAny);
  v.field("details", m.details, kAny);
}

template <class M, class Visitor>
void visit_workload_fields(M& m, Visitor& v) {
  v.field("description", m.description, kAny);
  v.field("dataset", m.dataset, kAny);
  v.field("arrival", m.arrival, kAny);
  v.field("request_rate", m.request_rate, kNotNegative);
  v.field("max_concurrency", m.max_concurrency, Rule{.minimum = 1});
  v.field("num_requests", m.num_requests, kNotNegative);
  v.field("seed", m.seed, kNotNegative);
  v.field("details", m.details, kAny);
}

template <class M, class Visitor>
void visit_environment_fields(M& m, Visitor& v) {
  v.field("commit", m.commit, kAny);
  v.field("version", m.version, kAny);
  v.field("cpu", m.cpu, kAny);
  v.field("cores", m.cores, kNotNegative);
  v.field("memory_bytes", m.memory_bytes, kNotNegative);
  v.field("kernel", m.kernel, kAny);
  v.field("compiler", m.compiler, kAny);
  v.field("load_average", m.load_average, kNotNegative);
  v.field("steal_fraction", m.steal_fraction, kFraction);
  v.field("gpus", m.gpus, Rule{.array = true});
}

template <class M, class Visitor>
void visit_validity_fields(M& m, Visitor& v) {
  v.field("valid", m.valid, kAny);
  v.field("reasons", m.reasons, kAny);
  v.field("warnings", m.warnings, kAny);
}

template <class M, class Visitor>
void visit_run_fields(M& m, Visitor& v) {
  v.field("started_at", m.started_at, kAny);
  v.field("command", m.command, kAny);
  v.field("label", m.label, kAny);
  v.field("interrupted", m.interrupted, kAny);
  v.field("metadata", m.metadata, kAny);
}

template <class M, class Visitor>
void visit_record_fields(M& m, Visitor& v) {
  constexpr Rule kSection{.optional = true};
  v.field("source", m.source, kAny);
  v.field("system", m.system, kAny);
  v.field("workload", m.workload, kAny);
  v.field("environment", m.environment, kAny);
  v.field("metrics", m.metrics, kAny);
  v.field("validity", m.validity, kAny);
  v.field("run", m.run, kAny);
  v.field("client", m.client, kSection);
  v.field("slo", m.slo, kSection);
  v.field("simulation", m.simulation, kSection);
  v.field("replications", m.replications, Rule{.optional = true, .array = true});
  v.field("prediction", m.prediction, kSection);
  v.field("telemetry", m.telemetry, kSection);
  v.field("compat", m.compat, kSection);
}

}  // namespace prony::record
