// The forward pass against transformers: every folder of tests/data/checkpoints, which another
// library wrote and whose logits another implementation computed (SOURCE.md there). In fp32 the
// Kullback-Leibler divergence of the next-token distributions is at most 1e-8 at every position, in
// bf16 its mean is at most 1e-4, or what transformers' own bf16 run is off by where a model of
// random weights is less stable than that; greedy continuations are the same token by token.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "prony/catalog/catalog.hpp"
#include "prony/core/file.hpp"
#include "prony/engine/checkpoint.hpp"
#include "prony/engine/forward.hpp"
#include "prony/kernels/thread_pool.hpp"

namespace prony::engine {
namespace {

namespace fs = std::filesystem;
using kernels::Dtype;

const fs::path kFolder = fs::path(PRONY_SOURCE_DIR) / "tests/data/checkpoints";

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (entry.is_directory()) all.push_back(entry.path().filename().string());
  }
  std::sort(all.begin(), all.end());
  return all;
}

template <class T>
std::vector<T> values_of(const SafetensorsFile& file, const std::string& name) {
  for (const auto& tensor : file.tensors()) {
    if (tensor.name != name) continue;
    std::vector<T> values(tensor.bytes.size() / sizeof(T));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }
  ADD_FAILURE() << "no " << name;
  return {};
}

std::vector<double> log_softmax(std::span<const float> logits) {
  const auto largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  std::vector<double> result;
  for (const float logit : logits) {
    result.push_back(static_cast<double>(logit) - largest - std::log(sum));
  }
  return result;
}

/// KL(expected || got) of two rows of logits.
double divergence(std::span<const float> expected, std::span<const float> got) {
  const auto p = log_softmax(expected), q = log_softmax(got);
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) sum += std::exp(p[i]) * (p[i] - q[i]);
  return sum;
}

class Rig {
 public:
  Rig(const std::string& name, Dtype dtype)
      : spec_(catalog::load_model_folder((kFolder / name).string()).value()),
        checkpoint_(Checkpoint::open((kFolder / name).string()).value()),
        pool_(2),
        model_(Model::load(spec_, dtype, *checkpoint_, pool_).value()),
        kv_(KvStore::create(spec_, dtype, 16, false).value()),
        forward_(Forward::create(model_, kv_,
                                 kernels::kernels_for(kernels::supported_isas().back()), pool_,
                                 {.max_tokens = 64, .max_rows = 1, .max_context = 256})
                     .value()) {
    for (int32_t page = 15; page >= 0; --page) pages_.push_back(page);
  }

  /// Logits of the last of `count` tokens, after those before it were computed.
  std::vector<float> step(std::span<const int32_t> tokens, int32_t first) {
    const std::vector<ForwardRow> rows = {
        {.tokens = tokens, .first_position = first, .pages = pages_, .wants_logits = true}};
    forward_.run(rows);
    forward_.compute_logits(0, 1);
    return {forward_.logits(0), forward_.logits(0) + spec_.vocab};
  }
  const catalog::ModelSpec& spec() const { return spec_; }
  const Checkpoint& checkpoint() const { return *checkpoint_; }

 private:
  catalog::ModelSpec spec_;
  std::unique_ptr<Checkpoint> checkpoint_;
  kernels::ThreadPool pool_;
  Model model_;
  KvStore kv_;
  Forward forward_;
  std::vector<int32_t> pages_;
};

class OracleTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Checkpoints, OracleTest, testing::ValuesIn(names()),
                         [](const auto& param) {
                           std::string name = param.param;
                           for (char& c : name)
                             c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           return name;
                         });

struct Divergence {
  double worst = 0, mean = 0;
};
// Over every kept position of every prompt; the prompt goes in in pieces
// that end at the kept positions, so chunked prefill and decode are compared as well.
Divergence divergence_of(Rig& rig, const SafetensorsFile& oracle) {
  Divergence result;
  double count = 0;
  for (int i = 0; i < 4; ++i) {
    const std::string suffix = std::to_string(i);
    const auto prompt = values_of<int32_t>(oracle, "prompt_" + suffix);
    const auto positions = values_of<int32_t>(oracle, "positions_" + suffix);
    const auto logits = values_of<float>(oracle, "logits_" + suffix);
    const auto vocab = static_cast<size_t>(rig.spec().vocab);
    EXPECT_EQ(logits.size(), positions.size() * vocab);
    int32_t first = 0;
    for (size_t row = 0; row < positions.size(); ++row) {
      const int32_t end = positions[row] + 1;
      const auto got = rig.step(
          std::span(prompt).subspan(static_cast<size_t>(first), static_cast<size_t>(end - first)),
          first);
      const double here = divergence({logits.data() + row * vocab, vocab}, got);
      result.worst = std::max(result.worst, here);
      result.mean += here;
      ++count;
      first = end;
    }
  }
  result.mean /= count;
  return result;
}

// KL of the model in bf16 and in fp32, both by transformers: the largest mean over a prompt.
double bf16_divergence_of_transformers(const std::string& name) {
  const auto text = core::read_file((kFolder / name / "oracle.safetensors").string()).value();
  const std::string header = text.substr(8, 4096);
  const size_t at = header.find("kl_bf16");
  EXPECT_NE(at, std::string::npos);
  double largest = 0;
  const char* next = header.c_str() + header.find('[', at) + 1;
  for (int i = 0; i < 4; ++i) {
    char* end = nullptr;
    largest = std::max(largest, std::strtod(next, &end));
    EXPECT_NE(end, next);
    next = end + 1;
  }
  return largest;
}

TEST_P(OracleTest, LogitsAreThoseOfTransformers) {
  const auto oracle = SafetensorsFile::open((kFolder / GetParam() / "oracle.safetensors").string());
  ASSERT_TRUE(oracle.ok()) << oracle.error().message;
  Rig exact(GetParam(), Dtype::kF32);
  const auto complete = exact.checkpoint().check_all_read(exact.spec());
  EXPECT_TRUE(complete.ok()) << complete.error().message;
  const Divergence fp32 = divergence_of(exact, *oracle);
  EXPECT_LE(fp32.worst, 1e-8);
  Rig rounded(GetParam(), Dtype::kBf16);
  const Divergence bf16 = divergence_of(rounded, *oracle);
  EXPECT_LE(bf16.mean, std::max(1e-4, bf16_divergence_of_transformers(GetParam())));
  RecordProperty("kl_fp32_worst_e12", std::to_string(fp32.worst * 1e12));
  RecordProperty("kl_bf16_mean_e6", std::to_string(bf16.mean * 1e6));
}

TEST_P(OracleTest, GreedyTokensAreThoseOfTransformers) {
  const auto oracle = SafetensorsFile::open((kFolder / GetParam() / "oracle.safetensors").string());
  ASSERT_TRUE(oracle.ok()) << oracle.error().message;
  Rig rig(GetParam(), Dtype::kF32);
  auto tokens = values_of<int32_t>(*oracle, "prompt_1");
  auto position = static_cast<int32_t>(tokens.size());
  std::vector<float> logits = rig.step(tokens, 0);
  for (const int32_t expected : values_of<int32_t>(*oracle, "greedy")) {
    const auto best =
        static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    ASSERT_EQ(best, expected) << "position " << position;
    logits = rig.step(std::vector<int32_t>{best}, position++);
  }
}

}  // namespace
}  // namespace prony::engine
