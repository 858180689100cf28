// Tests of the CUDA executor's host side, without a GPU: against a library of functions that keeps
// what it is given and answers from it, so every number that would reach the device is seen. What
// the device makes of them is checked by tests/gpu.
#include "prony/engine/cuda_executor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <mutex>

#include "prony/engine/cuda_plugin.hpp"
#include "prony/engine/cuda_weights.hpp"
#include "prony/engine/dummy_tensors.hpp"
#include "prony/engine/specs_testing.hpp"
#include "prony/kernels/cuda/layout.hpp"
#include "prony/quant/bf16.hpp"

namespace prony::engine {
namespace {

using kernels::cuda::Api;
using kernels::cuda::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The "device": the next token of a sample is its last token plus one.
struct Fake {
  std::mutex mutex;
  std::map<std::pair<Tensor, int32_t>, std::map<int64_t, int64_t>> pieces;  // first -> count
  std::vector<int32_t> tokens, positions, slots, kv_tokens, samples, row_start;
  std::vector<int32_t> answers, finite;
  std::vector<float> logprobs;
  int32_t decode_rows = 0, engines = 0, polls_left = 0;
  int32_t compute_major = 9;
  int64_t free_bytes = int64_t{100} << 30;
  const char* submit_error = nullptr;
  bool hangs = false, not_finite = false;
};
Fake* fake = nullptr;

int say(const char* text, char* error, uint32_t size) {
  std::strncpy(error, text, size - 1);
  return 1;
}

int fake_device(kernels::cuda::DeviceInfo* out, char* error, uint32_t size) {
  if (fake->compute_major == 0) return say("no CUDA-capable device is detected", error, size);
  std::strcpy(out->name, "Fake GPU");
  out->total_bytes = int64_t{140} << 30;
  out->free_bytes = fake->free_bytes;
  out->compute_major = fake->compute_major;
  return 0;
}
int fake_create(const kernels::cuda::ModelShape*, const kernels::cuda::EngineLimits*,
                kernels::cuda::Engine** out, char*, uint32_t) {
  ++fake->engines;
  *out = reinterpret_cast<kernels::cuda::Engine*>(fake);
  return 0;
}
void fake_destroy(kernels::cuda::Engine*) {
  --fake->engines;
}
int fake_upload(kernels::cuda::Engine*, Tensor tensor, int32_t layer, int64_t first, int64_t count,
                const void*, char*, uint32_t) {
  const std::lock_guard lock(fake->mutex);
  fake->pieces[{tensor, layer}][first] = count;
  return 0;
}
int fake_submit(kernels::cuda::Engine*, const kernels::cuda::StepBatch* b, char* error,
                uint32_t size) {
  if (fake->submit_error != nullptr) return say(fake->submit_error, error, size);
  fake->tokens.assign(b->token_ids, b->token_ids + b->tokens);
  fake->positions.assign(b->positions, b->positions + b->tokens);
  fake->slots.assign(b->slots, b->slots + b->tokens);
  fake->kv_tokens.assign(b->kv_tokens, b->kv_tokens + b->rows);
  fake->row_start.assign(b->row_start, b->row_start + b->rows);
  fake->samples.assign(b->sample_tokens, b->sample_tokens + b->samples);
  fake->decode_rows = b->decode_rows;
  fake->answers.clear();
  for (const int32_t at : fake->samples) {
    fake->answers.push_back(fake->tokens[static_cast<size_t>(at)] + 1);
  }
  fake->logprobs.assign(fake->answers.size(), -0.5f);
  fake->finite.assign(fake->answers.size(), fake->not_finite ? 0 : 1);
  fake->polls_left = 3;
  return 0;
}
int fake_poll(kernels::cuda::Engine*, kernels::cuda::StepOutput* out, char*, uint32_t) {
  if (fake->hangs || fake->polls_left-- > 0) return 2;
  *out = {fake->answers.data(), fake->logprobs.data(), fake->finite.data()};
  return 0;
}
int fake_logits(kernels::cuda::Engine*, int32_t sample, float* out, char*, uint32_t) {
  out[0] = out[1] = 0;
  out[2] = 50 + static_cast<float>(sample);
  for (int i = 3; i < 101; ++i) out[i] = 0;
  return 0;
}
constexpr Api kFake{.version = kernels::cuda::kAbiVersion,
                    .device = fake_device,
                    .create = fake_create,
                    .destroy = fake_destroy,
                    .upload = fake_upload,
                    .submit = fake_submit,
                    .poll = fake_poll,
                    .logits = fake_logits,
                    .measure = nullptr};

catalog::ModelSpec spec_for_cuda() {
  catalog::ModelSpec spec = small_spec();
  spec.head_dim = 16;
  spec.qkv_bias = true;
  return spec;
}

class CudaExecutorTest : public testing::Test {
 protected:
  void SetUp() override { fake = &state_; }
  void TearDown() override { fake = nullptr; }
  static Result<std::unique_ptr<CudaExecutor>> make(CudaExecutorOptions options = {}) {
    if (!options.block_count && !options.kv_cache_bytes) options.block_count = 100;
    return CudaExecutor::create(kFake, spec_for_cuda(), DummyTensors(1), options);
  }
  static void start(CudaExecutor& executor, sched::Handle handle, std::vector<int32_t> prompt,
                    sched::Sampling sampling = {}) {
    executor.start(
        handle,
        {.prompt = std::move(prompt), .sampling = std::move(sampling), .max_new_tokens = 8});
  }
  Fake state_;
};

TEST_F(CudaExecutorTest, UploadsEveryElementOnce) {
  CudaExecutorOptions options;
  options.threads = 3;
  ASSERT_TRUE(make(options).ok());
  const auto spec = spec_for_cuda();
  const int64_t qkv = (spec.heads + 2 * spec.kv_heads) * int64_t{spec.head_dim};
  const std::map<Tensor, int64_t> expected = {
      {Tensor::kEmbedding, int64_t{spec.vocab} * spec.hidden},
      {Tensor::kHead, int64_t{spec.vocab} * spec.hidden},
      {Tensor::kFinalNorm, spec.hidden},
      {Tensor::kCosine, int64_t{spec.max_context} * spec.head_dim / 2},
      {Tensor::kSine, int64_t{spec.max_context} * spec.head_dim / 2},
      {Tensor::kInputNorm, spec.hidden},
      {Tensor::kMlpNorm, spec.hidden},
      {Tensor::kQkv, qkv * spec.hidden},
      {Tensor::kQkvBias, qkv},
      {Tensor::kO, int64_t{spec.hidden} * spec.heads * spec.head_dim},
      {Tensor::kGateUp, int64_t{2} * spec.intermediate * spec.hidden},
      {Tensor::kDown, int64_t{spec.hidden} * spec.intermediate}};
  for (const auto& [tensor, size] : expected) {
    const bool of_layer = tensor >= Tensor::kInputNorm;
    for (int32_t layer = 0; layer < (of_layer ? spec.layers : 1); ++layer) {
      int64_t end = 0;
      for (const auto& [first, count] : state_.pieces[{tensor, layer}]) {
        EXPECT_EQ(first, end);
        end = first + count;
      }
      EXPECT_EQ(end, size) << static_cast<int>(tensor) << " of layer " << layer;
    }
  }
  EXPECT_EQ(state_.pieces.size(), 5U + 7U * static_cast<size_t>(spec.layers));
  EXPECT_EQ(state_.engines, 0) << "the engine is given back";
}

TEST_F(CudaExecutorTest, DecodeRowsComeFirstAndSamplesFindTheirRows) {
  const auto executor = make().value();
  start(*executor, 0, {10, 11, 12});
  start(*executor, 1, {20});
  start(*executor, 2, std::vector<int32_t>(40, 30));
  const std::vector<int32_t> a = {7}, b = {3}, c = {9, 4, 5};
  sched::StepPlan plan;
  plan.rows = {
      {.handle = 0, .first_position = 0, .token_count = 3, .samples = true, .blocks = a},
      {.handle = 1, .first_position = 0, .token_count = 1, .samples = true, .blocks = b},
      {.handle = 2, .first_position = 14, .token_count = 4, .samples = false, .blocks = c}};
  plan.token_count = 8;
  executor->submit(plan);
  const auto result = executor->wait();
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(state_.decode_rows, 1);
  EXPECT_THAT(state_.tokens, ElementsAre(20, 10, 11, 12, 30, 30, 30, 30));
  EXPECT_THAT(state_.positions, ElementsAre(0, 0, 1, 2, 14, 15, 16, 17));
  EXPECT_THAT(state_.slots, ElementsAre(48, 112, 113, 114, 158, 159, 64, 65));
  EXPECT_THAT(state_.kv_tokens, ElementsAre(1, 3, 18));
  EXPECT_THAT(state_.row_start, ElementsAre(0, 1, 4));
  EXPECT_THAT(state_.samples, ElementsAre(0, 3));
  ASSERT_EQ(result->tokens.size(), 2U);  // in the plan's order, not the device's
  EXPECT_EQ(result->tokens[0].handle, 0U);
  EXPECT_EQ(result->tokens[0].token, 13);
  EXPECT_EQ(result->tokens[1].handle, 1U);
  EXPECT_EQ(result->tokens[1].token, 21);
  // What was sampled is the input of the next step.
  plan.rows = {{.handle = 1, .first_position = 1, .token_count = 1, .samples = true, .blocks = b}};
  executor->submit(plan);
  ASSERT_TRUE(executor->wait().ok());
  EXPECT_THAT(state_.tokens, ElementsAre(21));
}

TEST_F(CudaExecutorTest, DrawsAndAlternativesComeFromTheLogits) {
  const auto executor = make().value();
  start(*executor, 0, {5}, {.temperature = 1, .seed = 3});
  start(*executor, 1, {6}, {.logprobs = 2});
  start(*executor, 2, {7}, {.logprobs = 0});
  const std::vector<int32_t> block = {0};
  sched::StepPlan plan;
  for (sched::Handle h = 0; h < 3; ++h) {
    plan.rows.push_back({.handle = h, .token_count = 1, .samples = true, .blocks = block});
  }
  plan.token_count = 3;
  executor->submit(plan);
  const auto result = executor->wait();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->tokens[0].token, 2);
  EXPECT_EQ(result->tokens[1].token, 2);
  ASSERT_EQ(result->tokens[1].top.size(), 2U);
  EXPECT_EQ(result->tokens[1].top[1].token, 0);
  EXPECT_EQ(result->tokens[2].token, 8) << "greedy with its own logprob stays on the device";
  EXPECT_EQ(result->tokens[2].logprob, -0.5f);
}

TEST_F(CudaExecutorTest, FailuresAreOneLine) {
  const std::vector<int32_t> block = {0};
  sched::StepPlan plan;
  plan.rows = {{.handle = 0, .token_count = 1, .samples = true, .blocks = block}};
  plan.token_count = 1;
  const auto failure = [&](core::Nanos limit_ns) {
    CudaExecutorOptions options;
    options.step_limit_ns = limit_ns;
    const auto executor = make(options).value();
    start(*executor, 0, {5});
    executor->submit(plan);
    return executor->wait().error();
  };
  state_.submit_error = "an illegal memory access was encountered";
  EXPECT_EQ(failure(core::kNanosPerSecond).message,
            "cuda: an illegal memory access was encountered");
  state_.submit_error = nullptr;
  state_.not_finite = true;
  EXPECT_THAT(failure(core::kNanosPerSecond).message, HasSubstr("logits are not finite"));
  state_.hangs = true;
  const Error hung = failure(20 * core::kNanosPerMilli);
  EXPECT_EQ(hung.code, ErrorCode::kEnvironment);
  EXPECT_THAT(hung.message, HasSubstr("a step did not end within"));
}

TEST_F(CudaExecutorTest, RefusalsNameWhatIsThere) {
  state_.compute_major = 8;
  EXPECT_THAT(make().error().message, HasSubstr("found Fake GPU of compute capability 8.0"));
  state_.compute_major = 0;
  EXPECT_THAT(make().error().message, HasSubstr("no CUDA-capable device"));
  EXPECT_EQ(make().error().code, ErrorCode::kEnvironment);
  state_.compute_major = 9;
  state_.free_bytes = 1 << 20;
  EXPECT_THAT(make().error().message, HasSubstr("GB of memory"));
  const auto refused = [](const catalog::ModelSpec& spec) {
    return check_supported_by_cuda(spec).error().message;
  };
  auto spec = spec_for_cuda();
  spec.head_dim = 96;
  EXPECT_THAT(refused(spec), HasSubstr("a head_dim of 96 (16, 32, 64 or 128)"));
  spec = spec_for_cuda();
  spec.sliding_window = 4;
  EXPECT_THAT(refused(spec), HasSubstr("sliding windows"));
}

TEST_F(CudaExecutorTest, BlocksFillWhatTheModelLeaves) {
  CudaExecutorOptions options;
  options.kv_cache_bytes = 1 << 20;
  const auto executor = make(options).value();
  const auto shape = cuda_shape(spec_for_cuda());
  EXPECT_EQ(executor->capacity().block_count, (1 << 20) / kernels::cuda::page_bytes(shape));
  EXPECT_EQ(executor->memory().kv_bytes,
            (executor->capacity().block_count + 1) * kernels::cuda::page_bytes(shape));
}

TEST(CudaPlugin, OfAnotherVersionIsRefused) {
  Api other = kFake;
  other.version = 99;
  EXPECT_EQ(check_cuda_api(&other, "lib.so").error().message,
            "lib.so: found interface version 99, expected 1");
  EXPECT_FALSE(check_cuda_api(nullptr, "lib.so").ok());
}

TEST(CudaLayout, BucketsAndSplits) {
  using kernels::cuda::decode_bucket;
  using kernels::cuda::decode_splits;
  for (int32_t rows = 1; rows <= 300; ++rows) {
    const int32_t bucket = decode_bucket(rows);
    EXPECT_GE(bucket, rows);
    EXPECT_LT(bucket - rows, rows <= 8 ? 4 : 8);
    EXPECT_EQ(decode_bucket(bucket), bucket) << "a bucket is its own";
    for (const int32_t kv_heads : {1, 8, 32}) {
      const int64_t parts = int64_t{rows} * kv_heads * decode_splits(rows, kv_heads);
      EXPECT_LE(parts, kernels::cuda::kDecodeBlocksWanted + rows * kv_heads) << "fits its buffer";
    }
  }
}

}  // namespace
}  // namespace prony::engine
