// The operator trace: it changes no result, every operator of perfmodel's list is timed and nothing
// else, its work is that of the list, and its times lie within the steps.
#include "prony/engine/operator_trace.hpp"

#include <gtest/gtest.h>

#include <set>

#include "prony/engine/cpu_executor.hpp"
#include "prony/engine/dummy_tensors.hpp"
#include "prony/engine/specs_testing.hpp"

namespace prony::engine {
namespace {

using perfmodel::OperatorKind;
using Phase = OperatorTrace::Phase;

const kernels::Ceilings kCeilings{
    .read_bytes = 1e10, .fp32_ops = 1e11, .bf16_ops = 1e12, .int8_ops = 2e12};

std::unique_ptr<CpuExecutor> executor_of(const catalog::ModelSpec& spec, kernels::Dtype dtype) {
  CpuExecutorOptions options;
  options.dtype = dtype;
  options.block_count = 16;
  options.max_context = 128;
  return CpuExecutor::create(spec, DummyTensors(3), options).value();
}

// A prompt of 20 tokens, then three tokens one by one; the tokens sampled.
std::vector<int32_t> generate(CpuExecutor& executor) {
  const std::vector<int32_t> pages = {3, 1, 2};
  executor.start(0, {.prompt = random_tokens(20, executor.model().vocab, 4), .max_new_tokens = 8});
  sched::StepPlan plan;
  plan.rows = {
      {.handle = 0, .first_position = 0, .token_count = 20, .samples = true, .blocks = pages}};
  std::vector<int32_t> tokens;
  for (int step = 0; step < 4; ++step) {
    executor.submit(plan);
    tokens.push_back(executor.wait().value().tokens[0].token);
    plan.rows[0].first_position += plan.rows[0].token_count;
    plan.rows[0].token_count = 1;
  }
  executor.finish(0);
  return tokens;
}

class TraceTest : public testing::TestWithParam<NamedSpec> {};
INSTANTIATE_TEST_SUITE_P(Specs, TraceTest, testing::ValuesIn(small_specs()),
                         [](const auto& param) { return param.param.name; });
INSTANTIATE_TEST_SUITE_P(Families, TraceTest, testing::ValuesIn(family_specs()),
                         [](const auto& param) { return param.param.name; });

TEST_P(TraceTest, EveryOperatorOfTheListIsTimedAndNothingElse) {
  const catalog::ModelSpec& spec = GetParam().spec;
  const auto executor = executor_of(spec, kernels::Dtype::kBf16);
  const std::vector<int32_t> untraced = generate(*executor);
  OperatorTrace trace(spec, {.weights = kernels::Dtype::kBf16}, 10'000);
  executor->set_trace(&trace);
  EXPECT_EQ(generate(*executor), untraced);

  perfmodel::Precision precision = perfmodel::uniform_precision(2);
  precision.activation = precision.other = 4;
  const perfmodel::StepModel model(spec, precision);
  for (const Phase which : {Phase::kPrefill, Phase::kDecode}) {
    const bool prefill = which == Phase::kPrefill;
    const OperatorTrace::PhaseTotal& phase = trace.phase(which);
    ASSERT_EQ(phase.steps, prefill ? 1 : 3);
    EXPECT_EQ(phase.tokens, prefill ? 20 : 3);
    double flops = 0, bytes = 0;
    std::set<OperatorKind> listed;
    for (int64_t step = 0; step < phase.steps; ++step) {
      perfmodel::StepShape shape;
      shape.add({.context = prefill ? 0 : 20 + step, .new_tokens = prefill ? 20 : 1});
      for (const perfmodel::Operator& op : model.operators(shape)) {
        flops += op.count * op.flops;
        bytes += op.count * op.bytes();
        OperatorKind kind = op.kind;
        if (kind == OperatorKind::kQkNorm) kind = OperatorKind::kRopeStore;
        if (kind == OperatorKind::kMlaKvUp) kind = OperatorKind::kAttentionPrefill;
        listed.insert(kind);
      }
    }
    // Absorbed in prefill too, where the list expands the latent instead.
    if (spec.mla) listed.insert({OperatorKind::kMlaAbsorbQuery, OperatorKind::kMlaAbsorbValue});
    core::Nanos time_ns = 0;
    for (int i = 0; i < perfmodel::kOperatorKinds; ++i) {
      const auto kind = static_cast<OperatorKind>(i);
      const OperatorTrace::Total& total = phase.operators[static_cast<size_t>(i)];
      EXPECT_EQ(total.calls > 0, listed.contains(kind)) << perfmodel::operator_name(kind);
      time_ns += total.time_ns;
      flops -= total.flops;
      bytes -= total.bytes;
    }
    EXPECT_NEAR(flops, 0, 1e-3);
    EXPECT_NEAR(bytes, 0, 1e-3);
    EXPECT_GT(time_ns, 0);
    EXPECT_LE(time_ns, phase.time_ns);
  }
}

TEST(OperatorTrace, TheEventFileHoldsTheSpansInOrderAndTheTotals) {
  const catalog::ModelSpec spec = small_spec();
  const auto executor = executor_of(spec, kernels::Dtype::kI8);
  constexpr size_t kMost = 30;
  OperatorTrace trace(spec, {.weights = kernels::Dtype::kI8}, kMost);
  executor->set_trace(&trace);
  generate(*executor);
  int64_t calls = 0;
  for (const Phase phase : {Phase::kPrefill, Phase::kDecode}) {
    for (const auto& total : trace.phase(phase).operators) calls += total.calls;
  }
  const core::Json json = trace.chrome(kCeilings);
  const core::Json& events = json.at("traceEvents");
  ASSERT_EQ(events.size(), kMost);
  EXPECT_EQ(json.at("prony").at("dropped_events").get<int64_t>(), calls - int64_t{kMost});
  EXPECT_EQ(events.at(0).at("name"), "embed");
  EXPECT_EQ(events.at(0).at("ts").get<double>(), 0);
  EXPECT_FALSE(events.at(0).contains("args"));
  EXPECT_EQ(events.at(1).at("args").at("layer"), 0);
  double end = 0;
  for (const core::Json& event : events) {
    EXPECT_GE(event.at("ts").get<double>(), end - 1e-3);  // one after another
    end = event.at("ts").get<double>() + event.at("dur").get<double>();
  }
  const core::Json& decode = json.at("prony").at("decode");
  EXPECT_EQ(decode.at("steps"), 3);
  for (const core::Json& op : decode.at("operators")) {
    const double least = std::max(op.at("bytes").get<double>() / kCeilings.read_bytes,
                                  op.at("flops").get<double>() / kCeilings.fp32_ops);
    EXPECT_LE(op.at("bound_ns").get<double>(), least * 1e9 * 1.000001);
    EXPECT_GE(op.at("bound_ns").get<double>(), least * 1e9 / 20 * 0.999999);  // int8 at its rate
  }
  const std::string table = trace.table(kCeilings);
  for (const char* part : {"memory read 10.0 GB/s", "prefill: 1 steps, 20 tokens", "qkv", "head",
                           "attention-decode", "sampling and rest"}) {
    EXPECT_NE(table.find(part), std::string::npos) << part << "\n" << table;
  }
}

}  // namespace
}  // namespace prony::engine
