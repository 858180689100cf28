#include "prony/engine/operator_trace.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "prony/engine/kv_store.hpp"

namespace prony::engine {
namespace {

using kernels::Dtype;
using perfmodel::OperatorKind;

// What the engine stores: see Model and KvStore. Activations and norm weights are floats.
perfmodel::Precision precision_of(const catalog::ModelSpec& spec, Dtype weights) {
  const auto bytes = static_cast<double>(kernels::dtype_bytes(weights));
  perfmodel::Precision precision = perfmodel::uniform_precision(bytes);
  precision.activation = precision.other = 4;
  precision.kv = static_cast<double>(kernels::dtype_bytes(kv_dtype(weights)));
  if (weights == Dtype::kI8 && !spec.tied_embeddings) precision.embedding = 2;
  return precision;
}

bool is_attention(OperatorKind kind) {
  return kind == OperatorKind::kAttentionPrefill || kind == OperatorKind::kAttentionDecode ||
         kind == OperatorKind::kMlaKvUp;
}

// Products whose weights int8 is not for, see Model.
bool is_absorbed(OperatorKind kind) {
  return kind == OperatorKind::kMlaAbsorbQuery || kind == OperatorKind::kMlaAbsorbValue;
}

constexpr std::pair<OperatorTrace::Phase, const char*> kPhases[] = {
    {OperatorTrace::Phase::kPrefill, "prefill"}, {OperatorTrace::Phase::kDecode, "decode"}};

// Kinds of a phase that took any time, the longest first.
std::vector<OperatorKind> by_time(const OperatorTrace::PhaseTotal& phase) {
  std::vector<OperatorKind> kinds;
  for (size_t i = 0; i < phase.operators.size(); ++i) {
    if (phase.operators[i].calls > 0) kinds.push_back(static_cast<OperatorKind>(i));
  }
  std::stable_sort(kinds.begin(), kinds.end(), [&](OperatorKind a, OperatorKind b) {
    return phase.operators[static_cast<size_t>(a)].time_ns >
           phase.operators[static_cast<size_t>(b)].time_ns;
  });
  return kinds;
}

// Of whole steps: sampling, preparing rows, and what no span covers.
core::Nanos other_ns(const OperatorTrace::PhaseTotal& phase) {
  core::Nanos rest = phase.time_ns;
  for (const OperatorTrace::Total& total : phase.operators) rest -= total.time_ns;
  return rest;
}

}  // namespace

OperatorTrace::OperatorTrace(const catalog::ModelSpec& spec, const Numbers& numbers,
                             size_t max_events)
    : numbers_(numbers),
      model_(spec, precision_of(spec, numbers.weights)),
      max_events_(max_events) {
  events_.reserve(max_events);
}

void OperatorTrace::begin_step() {
  shape_.clear();
  step_ = {};
  prefill_ = false;
  step_begin_ns_ = core::monotonic_ns();
}

void OperatorTrace::add_row(const TracedRow& row) {
  shape_.add({.context = row.context, .new_tokens = row.tokens, .samples = row.samples});
  prefill_ = prefill_ || row.tokens > 1;
}

OperatorKind OperatorTrace::folded(OperatorKind kind) const {
  if (kind == OperatorKind::kQkNorm) return OperatorKind::kRopeStore;
  if (!is_attention(kind)) return kind;
  return prefill_ ? OperatorKind::kAttentionPrefill : OperatorKind::kAttentionDecode;
}

void OperatorTrace::record(OperatorKind kind, int32_t layer, core::Nanos begin, core::Nanos end) {
  kind = folded(kind);
  Total& total = step_[static_cast<size_t>(kind)];
  ++total.calls;
  total.time_ns += end - begin;
  if (events_.size() == max_events_) {
    ++dropped_events_;
    return;
  }
  events_.push_back(
      {.begin_ns = begin,
       .duration_ns = static_cast<uint32_t>(std::min<core::Nanos>(end - begin, UINT32_MAX)),
       .layer = static_cast<int16_t>(layer),
       .kind = kind});
}

void OperatorTrace::end_step() {
  if (shape_.empty()) return;
  PhaseTotal& phase = phases_[static_cast<size_t>(prefill_ ? Phase::kPrefill : Phase::kDecode)];
  ++phase.steps;
  phase.tokens += shape_.tokens();
  phase.time_ns += core::monotonic_ns() - step_begin_ns_;
  model_.operators(shape_, &work_);
  for (const perfmodel::Operator& op : work_) {
    Total& total = step_[static_cast<size_t>(folded(op.kind))];
    total.flops += op.count * op.flops;
    total.bytes += op.count * op.bytes();
  }
  for (size_t i = 0; i < step_.size(); ++i) {
    phase.operators[i].calls += step_[i].calls;
    phase.operators[i].time_ns += step_[i].time_ns;
    phase.operators[i].flops += step_[i].flops;
    phase.operators[i].bytes += step_[i].bytes;
  }
}

double OperatorTrace::bound_s(OperatorKind kind, const Total& total,
                              const kernels::Ceilings& ceilings) const {
  double ops = ceilings.fp32_ops;  // attention, router, and products that read fp32 rows
  if (!is_attention(kind) && !is_absorbed(kind) && kind != OperatorKind::kRouter) {
    if (numbers_.weights == Dtype::kI8) ops = ceilings.int8_ops;
    if (numbers_.bf16_rows) ops = ceilings.bf16_ops;
  }
  return std::max(total.bytes / ceilings.read_bytes, total.flops / ops);
}

std::string OperatorTrace::table(const kernels::Ceilings& ceilings) const {
  std::string text = fmt::format(
      "ceilings measured now: memory read {:.1f} GB/s; products {:.0f} GFLOP/s in fp32, {:.0f} in "
      "bf16, {:.0f} GOP/s in int8\n",
      ceilings.read_bytes * 1e-9, ceilings.fp32_ops * 1e-9, ceilings.bf16_ops * 1e-9,
      ceilings.int8_ops * 1e-9);
  for (const auto& [which, name] : kPhases) {
    const PhaseTotal& all = phase(which);
    if (all.steps == 0) continue;
    const double seconds = core::to_seconds(all.time_ns);
    text += fmt::format("{}: {} steps, {} tokens, {:.3f} s, {:.1f} tokens/s\n", name, all.steps,
                        all.tokens, seconds, static_cast<double>(all.tokens) / seconds);
    text += fmt::format("  {:<20}{:>9}{:>12}{:>8}{:>10}{:>11}{:>12}\n", "operator", "calls",
                        "us a call", "time", "GB/s", "GFLOP/s", "of ceiling");
    for (const OperatorKind kind : by_time(all)) {
      const Total& total = all.operators[static_cast<size_t>(kind)];
      const double own = core::to_seconds(std::max<core::Nanos>(total.time_ns, 1));
      text += fmt::format("  {:<20}{:>9}{:>12.2f}{:>7.1f}%{:>10.2f}{:>11.2f}{:>11.0f}%\n",
                          perfmodel::operator_name(kind), total.calls,
                          own * 1e6 / static_cast<double>(total.calls), 100 * own / seconds,
                          total.bytes * 1e-9 / own, total.flops * 1e-9 / own,
                          100 * bound_s(kind, total, ceilings) / own);
    }
    text += fmt::format("  {:<20}{:>9}{:>12}{:>7.1f}%\n", "sampling and rest", "", "",
                        100 * core::to_seconds(other_ns(all)) / seconds);
  }
  return text;
}

core::Json OperatorTrace::phase_json(Phase which, const kernels::Ceilings& ceilings) const {
  const PhaseTotal& all = phase(which);
  core::Json json = {{"steps", all.steps},
                     {"tokens", all.tokens},
                     {"time_ns", all.time_ns},
                     {"other_ns", other_ns(all)},
                     {"operators", core::Json::array()}};
  for (const OperatorKind kind : by_time(all)) {
    const Total& total = all.operators[static_cast<size_t>(kind)];
    json["operators"].push_back({{"operator", std::string(perfmodel::operator_name(kind))},
                                 {"calls", total.calls},
                                 {"time_ns", total.time_ns},
                                 {"bytes", total.bytes},
                                 {"flops", total.flops},
                                 {"bound_ns", bound_s(kind, total, ceilings) * 1e9}});
  }
  return json;
}

core::Json OperatorTrace::chrome(const kernels::Ceilings& ceilings) const {
  core::Json events = core::Json::array();
  const core::Nanos start = events_.empty() ? 0 : events_.front().begin_ns;
  for (const Event& event : events_) {
    events.push_back({{"name", std::string(perfmodel::operator_name(event.kind))},
                      {"ph", "X"},
                      {"ts", static_cast<double>(event.begin_ns - start) * 1e-3},
                      {"dur", static_cast<double>(event.duration_ns) * 1e-3},
                      {"pid", 1},
                      {"tid", 1}});
    if (event.layer >= 0) events.back()["args"] = {{"layer", event.layer}};
  }
  core::Json totals = {{"schema", "prony.trace/1"},
                       {"model", model_.spec().id},
                       {"dropped_events", dropped_events_},
                       {"ceilings",
                        {{"read_bytes_per_s", ceilings.read_bytes},
                         {"fp32_ops_per_s", ceilings.fp32_ops},
                         {"bf16_ops_per_s", ceilings.bf16_ops},
                         {"int8_ops_per_s", ceilings.int8_ops}}}};
  for (const auto& [which, name] : kPhases) totals[name] = phase_json(which, ceilings);
  return {
      {"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}, {"prony", std::move(totals)}};
}

}  // namespace prony::engine
