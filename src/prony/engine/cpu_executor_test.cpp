// The executor's contract: capacity, refusals with their messages, sampling limits, logprobs, and
// no allocation in steady state.
#include "prony/engine/cpu_executor.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "prony/engine/allocation_count_testing.hpp"
#include "prony/engine/dummy_tensors.hpp"
#include "prony/engine/serving_testing.hpp"
#include "prony/engine/specs_testing.hpp"
#include "prony/kernels/test_support.hpp"

namespace prony::engine {
namespace {

using kernels::Dtype;

CpuExecutorOptions small_options() {
  CpuExecutorOptions options;
  options.max_tokens_per_step = 64;
  options.max_sequences = 8;
  options.max_context = 512;
  options.block_count = 100;
  return options;
}

std::unique_ptr<CpuExecutor> small_executor(const CpuExecutorOptions& options = small_options()) {
  return CpuExecutor::create(small_spec(), DummyTensors(1), options).value();
}

std::string refusal(const catalog::ModelSpec& spec, const CpuExecutorOptions& options) {
  const auto executor = CpuExecutor::create(spec, DummyTensors(1), options);
  return executor.ok() ? "" : executor.error().message;
}

/// One sequence in pages 0, 1, ...; plans by hand.
class Hand {
 public:
  explicit Hand(CpuExecutor& executor) : executor_(executor) {
    for (int32_t i = 0; i < 40; ++i) pages_.push_back(i);
  }
  void start(const sched::RequestInput& input) {
    known_ = static_cast<int32_t>(input.prompt.size());
    computed_ = 0;
    executor_.start(0, input);
  }
  /// Computes all that is known; the sampled token.
  Result<sched::SampledToken> step() {
    plan_.step = step_++;
    plan_.rows.assign(1, {.handle = 0,
                          .first_position = computed_,
                          .token_count = known_ - computed_,
                          .samples = true,
                          .blocks = pages_});
    computed_ = known_++;
    executor_.submit(plan_);
    const Result<sched::StepResult> result = executor_.wait();
    if (!result.ok()) return result.error();
    EXPECT_EQ(result->step, plan_.step);
    EXPECT_EQ(result->tokens.size(), 1u);
    return result->tokens[0];
  }

 private:
  CpuExecutor& executor_;
  std::vector<int32_t> pages_;
  sched::StepPlan plan_;
  uint64_t step_ = 0;
  int32_t known_ = 0, computed_ = 0;
};

TEST(CpuExecutor, CapacityIsWhatTheOptionsSay) {
  CpuExecutorOptions options = small_options();
  sched::Executor::Capacity capacity = small_executor(options)->capacity();
  EXPECT_EQ(capacity.block_count, 100);
  EXPECT_EQ(capacity.max_tokens_per_step, 64);
  EXPECT_EQ(capacity.max_sequences, 8);
  EXPECT_EQ(capacity.max_context, 512);
  options.block_count = 5;  // fewer tokens than a context
  EXPECT_EQ(small_executor(options)->capacity().max_context, 80);
  options.block_count.reset();  // 8 sequences of 512 tokens are 256 blocks
  EXPECT_EQ(small_executor(options)->capacity().block_count, 256);
  // A block of bf16: 3 layers x 2 kv heads x 16 tokens x (12 key + 16 padded value) x 2 bytes.
  EXPECT_EQ(KvStore::page_bytes(small_spec(), Dtype::kBf16), 3 * 2 * 16 * (12 + 16) * 2);
  options.kv_cache_bytes = 10 * KvStore::page_bytes(small_spec(), Dtype::kBf16) + 1;
  EXPECT_EQ(small_executor(options)->capacity().block_count, 10);
  EXPECT_EQ(small_executor()->depth(), 1);
  EXPECT_EQ(small_executor()->device(), "cpu");
}

TEST(CpuExecutor, TheEnvironmentOrAnOptionForcesTheInstructionSet) {
  for (const kernels::Isa isa : kernels::supported_isas()) {
    ASSERT_EQ(setenv("PRONY_ISA", std::string(isa_name(isa)).c_str(), 1), 0);
    EXPECT_EQ(small_executor()->isa(), isa);
    CpuExecutorOptions options = small_options();
    options.isa = kernels::Isa::kGeneric;  // wins over the variable
    EXPECT_EQ(small_executor(options)->isa(), kernels::Isa::kGeneric);
  }
  ASSERT_EQ(setenv("PRONY_ISA", "sse9", 1), 0);
  EXPECT_EQ(refusal(small_spec(), small_options()),
            "PRONY_ISA: found 'sse9', expected generic, avx2, avx512, avx512vnni or amx");
  ASSERT_EQ(unsetenv("PRONY_ISA"), 0);
  EXPECT_EQ(small_executor()->isa(), kernels::supported_isas().back());
}

TEST(CpuExecutor, RefusesWhatItCannotRunByName) {
  catalog::ModelSpec spec = small_spec();
  spec.id = "some-model";
  const auto refused = [&](const char* feature) {
    return "model some-model: found " + std::string(feature) +
           ", expected a decoder of the families llama, mistral, mixtral, qwen, gemma-2 or "
           "deepseek on cpu";
  };
  spec.rope.type = catalog::RopeType::kNone;
  EXPECT_EQ(refusal(spec, small_options()), refused("attention without rope"));
  spec.rope.type = catalog::RopeType::kDefault;
  spec.attention_sinks = true;
  EXPECT_EQ(refusal(spec, small_options()), refused("attention sinks"));
  spec.attention_sinks = false;
  spec.activation = catalog::Activation::kSwigluClamp;
  EXPECT_EQ(refusal(spec, small_options()), refused("clamped swiglu"));
  spec.activation = catalog::Activation::kSilu;
  spec.moe = catalog::Moe{.experts = 6, .experts_per_token = 3, .intermediate = 8};
  spec.moe->expert_bias = true;
  EXPECT_EQ(refusal(spec, small_options()), refused("biases of experts"));
  spec.moe->expert_bias = false;
  spec.moe->groups = 3;
  EXPECT_EQ(
      refusal(spec, small_options()),
      "model some-model: found 3 experts a token, expected no more than 1 of 3 equal groups of "
      "6 experts hold");
  spec.moe.reset();
  spec.mla = catalog::Mla{.kv_lora_rank = 513, .qk_rope_head_dim = 8, .v_head_dim = 8};
  EXPECT_EQ(refusal(spec, small_options()), refused("a value width of 513 (at most 512)"));
  spec.mla.reset();
  EXPECT_EQ(refusal(spec, small_options()), "");
  spec.head_dim = 7;
  EXPECT_EQ(refusal(spec, small_options()),
            "model some-model: found head_dim 7, expected an even number");
}

TEST(CpuExecutor, RefusesOptionsByName) {
  CpuExecutorOptions options = small_options();
  options.threads = 0;
  EXPECT_EQ(refusal(small_spec(), options), "threads: found 0, expected 1 to 1024");
  options = small_options();
  options.max_context = 5000;
  EXPECT_EQ(refusal(small_spec(), options), "max_context: found 5000, expected 0 to 1024");
  options = small_options();
  options.sample_vocab = 102;
  EXPECT_EQ(refusal(small_spec(), options), "sample_vocab: found 102, expected 0 to 101");
  options = small_options();
  options.block_count.reset();
  options.kv_cache_bytes = 100;
  EXPECT_EQ(refusal(small_spec(), options),
            "kv_cache_bytes: found 100, expected at least 5376 for one block of model small");
}

TEST(CpuExecutor, RefusesWhatDoesNotFitBeforeAllocating) {
  catalog::ModelSpec spec = small_spec();
  spec.id = "huge";
  spec.layers = 80;
  spec.hidden = 8192;
  spec.heads = 64;
  spec.kv_heads = 8;
  spec.head_dim = 128;
  spec.intermediate = 28672;
  spec.vocab = 128256;
  CpuExecutorOptions options = small_options();
  options.memory_available_bytes = int64_t{20} << 30;
  const auto executor = CpuExecutor::create(spec, DummyTensors(1), options);
  ASSERT_FALSE(executor.ok());
  EXPECT_EQ(executor.error().code, ErrorCode::kEnvironment);
  // 70.55 G parameters of two bytes, 100 blocks of 80 layers x 8 heads x 16 tokens x 2 x 128 x 2 B.
  EXPECT_EQ(executor.error().message.rfind("model huge needs 141.", 0), 0u)
      << executor.error().message;
  EXPECT_NE(executor.error().message.find("(weights 141.11, KV cache 0.52, workspace "),
            std::string::npos)
      << executor.error().message;
  EXPECT_NE(executor.error().message.find("available are 21.47 GB"), std::string::npos);
  const Result<int64_t> available = available_memory_bytes();
  ASSERT_TRUE(available.ok());
  EXPECT_GT(*available, 0);
}

TEST(CpuExecutor, SamplesOnlyFromTheTokenizersVocabulary) {
  CpuExecutorOptions options = small_options();
  options.sample_vocab = 10;
  const auto executor = small_executor(options);
  Hand hand(*executor);
  sched::RequestInput input{.prompt = {50, 100, 3}, .max_new_tokens = 200};
  input.sampling.temperature = 3;
  input.sampling.logprobs = 20;  // more than there are
  hand.start(input);
  std::vector<bool> seen(10, false);
  for (int i = 0; i < 200; ++i) {
    const auto token = hand.step();
    ASSERT_TRUE(token.ok());
    ASSERT_LT(token->token, 10);
    seen[static_cast<size_t>(token->token)] = true;
    ASSERT_EQ(token->top.size(), 10u);
    double sum = 0;  // a distribution over those ten
    for (const sched::TokenLogprob& top : token->top)
      sum += std::exp(static_cast<double>(top.logprob));
    ASSERT_NEAR(sum, 1, 1e-5);
  }
  for (const bool was_seen : seen) EXPECT_TRUE(was_seen);
}

TEST(CpuExecutor, LogprobsOfSeveralRowsDoNotMix) {
  CpuExecutorOptions options = small_options();
  auto executor = small_executor(options);
  const auto scheduler = sched::Scheduler::create(sched::options_for(*executor)).value();
  for (int32_t i = 0; i < 3; ++i) {
    const auto handle = scheduler->add({.prompt_tokens = 4, .max_new_tokens = 3}).value();
    sched::RequestInput input{.prompt = random_tokens(4, 101, static_cast<uint64_t>(i)),
                              .max_new_tokens = 3};
    input.sampling.logprobs = i == 1 ? -1 : 2 + i;
    executor->start(handle, input);
  }
  executor->submit(scheduler->plan());
  const auto result = executor->wait();
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->tokens.size(), 3u);
  EXPECT_EQ(result->tokens[0].top.size(), 2u);
  EXPECT_EQ(result->tokens[1].top.size(), 0u);
  EXPECT_EQ(result->tokens[1].logprob, 0);
  EXPECT_EQ(result->tokens[2].top.size(), 4u);
  for (const size_t i : {size_t{0}, size_t{2}}) {  // greedy: the choice is the best alternative
    EXPECT_EQ(result->tokens[i].top[0].token, result->tokens[i].token);
    EXPECT_EQ(result->tokens[i].top[0].logprob, result->tokens[i].logprob);
    EXPECT_LT(result->tokens[i].logprob, 0);
  }
}

/// Dummy weights with one tensor replaced by NaN.
class BrokenTensors final : public TensorSource {
 public:
  Result<void> read(const TensorRows& wanted, float* out) const override {
    if (wanted.name == "missing") return invalid_argument("no such tensor");
    const Result<void> result = DummyTensors(1).read(wanted, out);
    if (wanted.name == "model.layers.1.mlp.down_proj.weight") {
      out[0] = std::numeric_limits<float>::quiet_NaN();
    }
    return result;
  }
};

TEST(CpuExecutor, RefusesToSampleFromNan) {
  auto executor = CpuExecutor::create(small_spec(), BrokenTensors(), small_options()).value();
  Hand hand(*executor);
  hand.start({.prompt = {1, 2, 3}, .max_new_tokens = 5});
  const auto token = hand.step();
  ASSERT_FALSE(token.ok());
  EXPECT_EQ(token.error().message, "model small: logits are not finite at position 2");
}

/// A source that lacks one tensor.
class IncompleteTensors final : public TensorSource {
 public:
  Result<void> read(const TensorRows& wanted, float* out) const override {
    if (wanted.name == "model.layers.2.self_attn.k_proj.weight") {
      return invalid_argument("tensor model.layers.2.self_attn.k_proj.weight is missing");
    }
    return DummyTensors(1).read(wanted, out);
  }
};

TEST(CpuExecutor, PassesOnWhatTheSourceSays) {
  for (const int threads : {1, 3}) {
    CpuExecutorOptions options = small_options();
    options.threads = threads;
    const auto executor = CpuExecutor::create(small_spec(), IncompleteTensors(), options);
    ASSERT_FALSE(executor.ok());
    EXPECT_EQ(executor.error().message, "tensor model.layers.2.self_attn.k_proj.weight is missing");
  }
}

TEST(CpuExecutor, AllocatesNothingInSteadyState) {
  for (const int threads : {1, 2}) {
    CpuExecutorOptions options = small_options();
    options.threads = threads;
    const auto executor = small_executor(options);
    Hand hand(*executor);
    sched::RequestInput input{.prompt = random_tokens(30, 101, 1), .max_new_tokens = 100};
    input.sampling.temperature = 1;
    input.sampling.top_p = 0.9f;
    input.sampling.logprobs = 5;
    hand.start(input);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(hand.step().ok());
    const int64_t before = allocation_count();
    for (int i = 0; i < 90; ++i) ASSERT_TRUE(hand.step().ok());
    EXPECT_EQ(allocation_count() - before, 0);
  }
}

TEST(CpuExecutor, HandlesAreReused) {
  const auto executor = small_executor();
  Hand hand(*executor);
  std::vector<int32_t> first, second;
  for (std::vector<int32_t>* tokens : {&first, &second}) {
    hand.start({.prompt = {7, 8, 9}, .max_new_tokens = 10});
    for (int i = 0; i < 10; ++i) tokens->push_back(hand.step()->token);
    executor->finish(0);
  }
  EXPECT_EQ(first, second);
  EXPECT_DEATH(executor->finish(0), "no such request");
  EXPECT_DEATH(executor->start(0, {.prompt = {101}}), "outside the vocabulary");
  EXPECT_DEATH(executor->start(0, {}), "empty prompt");
}

TEST(CpuExecutor, PlansAgainstTheContractAreBugs) {
  const auto executor = small_executor();
  executor->start(0, {.prompt = {1, 2, 3}, .max_new_tokens = 5});
  const std::vector<int32_t> pages = {0};
  sched::StepPlan plan;
  plan.rows = {
      {.handle = 0, .first_position = 0, .token_count = 4, .samples = true, .blocks = pages}};
  EXPECT_DEATH(
      {
        executor->submit(plan);
        (void)executor->wait();
      },
      "beyond the known tokens");
  plan.rows[0].token_count = 3;
  plan.rows[0].samples = false;
  EXPECT_DEATH(
      {
        executor->submit(plan);
        (void)executor->wait();
      },
      "last known token");
  EXPECT_DEATH((void)executor->wait(), "nothing was submitted");
  EXPECT_DEATH(
      {
        executor->submit(plan);
        executor->submit(plan);
      },
      "in flight");
}

}  // namespace
}  // namespace prony::engine
