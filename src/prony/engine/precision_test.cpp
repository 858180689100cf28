// What low precision costs on weights that learned something: the house model reads held-out text
// with the engine's number formats, and its next-token distributions are compared with those of its
// own fp32 run at every 16th position. docs/engine.md quotes the properties recorded here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "prony/catalog/catalog.hpp"
#include "prony/core/file.hpp"
#include "prony/engine/checkpoint.hpp"
#include "prony/engine/forward.hpp"
#include "prony/kernels/thread_pool.hpp"
#include "prony/token/hf_tokenizer.hpp"

namespace prony::engine {
namespace {

using kernels::Dtype;

const std::string kFolder = std::string(PRONY_SOURCE_DIR) + "/data/models/prony-12m";
constexpr int32_t kContext = 512, kStep = 16, kTexts = 4;

std::vector<int32_t> held_out_tokens() {
  const auto tokenizer = token::HfTokenizer::open(kFolder + "/tokenizer.json").value();
  const std::string text = core::read_file(kFolder + "/eval-32k.txt").value();
  std::vector<int32_t> tokens = tokenizer->encode(text.substr(0, 20'000));
  EXPECT_GE(tokens.size(), size_t{kTexts * kContext});
  return tokens;
}

/// Logarithms of the probabilities at every kept position of every text.
std::vector<std::vector<double>> distributions(Dtype dtype, bool bf16_rows) {
  const catalog::ModelSpec spec = catalog::load_model_folder(kFolder).value();
  const auto checkpoint = Checkpoint::open(kFolder).value();
  kernels::ThreadPool pool(2);
  const Model model = Model::load(spec, dtype, *checkpoint, pool).value();
  const KvStore kv = KvStore::create(spec, kv_dtype(dtype), kContext / 16, false).value();
  Forward forward =
      Forward::create(model, kv, kernels::kernels_for(kernels::supported_isas().back()), pool,
                      {.max_tokens = kStep, .max_rows = 1, .max_context = kContext},
                      {.bf16_rows = bf16_rows})
          .value();
  std::vector<int32_t> pages;
  for (int32_t page = 0; page < kContext / 16; ++page) pages.push_back(page);
  const std::vector<int32_t> tokens = held_out_tokens();
  std::vector<std::vector<double>> all;
  for (int32_t text = 0; text < kTexts; ++text) {
    for (int32_t first = 0; first < kContext; first += kStep) {
      const auto part =
          std::span(tokens).subspan(static_cast<size_t>(text * kContext + first), kStep);
      const std::vector<ForwardRow> rows = {
          {.tokens = part, .first_position = first, .pages = pages, .wants_logits = true}};
      forward.run(rows);
      forward.compute_logits(0, 1);
      const std::span<const float> logits(forward.logits(0), static_cast<size_t>(spec.vocab));
      const auto largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
      double sum = 0;
      for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
      std::vector<double>& row = all.emplace_back();
      for (const float logit : logits) {
        row.push_back(static_cast<double>(logit) - largest - std::log(sum));
      }
    }
  }
  return all;
}

struct Cost {
  double mean_kl = 0, worst_kl = 0, same_top = 0;
};

Cost cost_of(const std::vector<std::vector<double>>& exact,
             const std::vector<std::vector<double>>& got) {
  Cost cost;
  const auto best = [](const std::vector<double>& row) {
    return std::max_element(row.begin(), row.end()) - row.begin();
  };
  for (size_t i = 0; i < exact.size(); ++i) {
    double kl = 0;
    for (size_t k = 0; k < exact[i].size(); ++k) {
      kl += std::exp(exact[i][k]) * (exact[i][k] - got[i][k]);
    }
    cost.mean_kl += kl / static_cast<double>(exact.size());
    cost.worst_kl = std::max(cost.worst_kl, kl);
    cost.same_top +=
        (best(exact[i]) == best(got[i]) ? 1.0 : 0.0) / static_cast<double>(exact.size());
  }
  return cost;
}

// 1e-4 is what is asked of bf16; seen on 128 positions: 2.1e-5, with bf16 rows 5.8e-5, and 4.1e-3
// in int8. What costs more is a change of the arithmetic.
TEST(Precision, OfTheHouseModelCostsWhatTheDocsSay) {
  const auto exact = distributions(Dtype::kF32, false);
  const struct {
    const char* name;
    Dtype dtype;
    bool bf16_rows;
    double most_mean_kl, least_same_top;
  } cases[] = {{"bf16", Dtype::kBf16, false, 1e-4, 0.97},
               {"bf16_rows", Dtype::kBf16, true, 1e-4, 0.97},
               {"int8", Dtype::kI8, false, 1e-2, 0.9}};
  for (const auto& c : cases) {
    const Cost cost = cost_of(exact, distributions(c.dtype, c.bf16_rows));
    EXPECT_LE(cost.mean_kl, c.most_mean_kl) << c.name;
    EXPECT_GE(cost.same_top, c.least_same_top) << c.name;
    RecordProperty(std::string(c.name) + "_mean_kl_e6", std::to_string(cost.mean_kl * 1e6));
    RecordProperty(std::string(c.name) + "_worst_kl_e6", std::to_string(cost.worst_kl * 1e6));
    RecordProperty(std::string(c.name) + "_same_top", std::to_string(cost.same_top));
  }
}

}  // namespace
}  // namespace prony::engine
