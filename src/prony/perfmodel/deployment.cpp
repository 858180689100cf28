#include "prony/perfmodel/deployment.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace prony::perfmodel {
namespace {

constexpr std::array<std::pair<std::string_view, WeightDtype>, 8> kWeightNames = {{
    {"bf16", WeightDtype::kBf16},
    {"fp8", WeightDtype::kFp8},
    {"fp8-block", WeightDtype::kFp8Block},
    {"int8", WeightDtype::kInt8},
    {"int4", WeightDtype::kInt4},
    {"fp4", WeightDtype::kFp4},
    {"mxfp4", WeightDtype::kMxfp4},
    {"fp16", WeightDtype::kBf16},
}};
constexpr std::array<std::pair<std::string_view, KvDtype>, 4> kKvNames = {{
    {"bf16", KvDtype::kBf16},
    {"fp8", KvDtype::kFp8},
    {"int8", KvDtype::kInt8},
    {"fp16", KvDtype::kBf16},
}};

constexpr double kInt4Group128Bytes = 0.5 + 2.0 / 128;
constexpr double kNvfp4Bytes = 0.5 + 1.0 / 16;

template <class Value, size_t count>
Result<Value> parse(const std::array<std::pair<std::string_view, Value>, count>& names,
                    std::string_view name, std::string_view flag) {
  std::string known;
  for (const auto& [text, value] : names) {
    if (text == name) return value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", text);
  }
  return invalid_argument(fmt::format("{}: found '{}', expected one of {}", flag, name, known));
}

template <class Value, size_t count>
std::string_view name_of(const std::array<std::pair<std::string_view, Value>, count>& names,
                         Value value) {
  for (const auto& [text, each] : names) {
    if (each == value) return text;
  }
  return "unknown";
}

}  // namespace

Result<WeightDtype> parse_weight_dtype(std::string_view name) {
  return parse(kWeightNames, name, "--weight-dtype");
}
std::string_view weight_dtype_name(WeightDtype dtype) {
  return name_of(kWeightNames, dtype);
}
Result<KvDtype> parse_kv_dtype(std::string_view name) {
  return parse(kKvNames, name, "--kv-dtype");
}
std::string_view kv_dtype_name(KvDtype dtype) {
  return name_of(kKvNames, dtype);
}

double accepted_tokens(const Speculation& speculation) {
  double sum = 1, power = 1;
  for (int32_t i = 0; i < speculation.draft_tokens; ++i) {
    power *= speculation.acceptance;
    sum += power;
  }
  return sum;
}

KvDtype automatic_kv(const catalog::EngineProfile& engine, const catalog::ModelSpec& model,
                     WeightDtype weights) {
  const bool small = weights == WeightDtype::kFp8 || weights == WeightDtype::kFp8Block ||
                     weights == WeightDtype::kInt8 || weights == WeightDtype::kFp4;
  return engine.kv_follows_weights && small && !model.mla ? KvDtype::kFp8 : KvDtype::kBf16;
}

Precision precision_of(const Deployment& deployment) {
  Precision precision = uniform_precision(2);
  switch (deployment.weights) {
    case WeightDtype::kBf16:
      break;
    case WeightDtype::kFp8:
    case WeightDtype::kInt8:
      precision.linear = precision.expert = 1;
      break;
    case WeightDtype::kFp8Block:
      precision.linear = precision.expert = kFp8Block128Bytes;
      break;
    case WeightDtype::kInt4:
      precision.linear = precision.expert = kInt4Group128Bytes;
      break;
    case WeightDtype::kFp4:
      precision.linear = precision.expert = kNvfp4Bytes;
      break;
    case WeightDtype::kMxfp4:
      precision.expert = kMxfp4Bytes;
      break;
  }
  precision.kv = deployment.kv == KvDtype::kBf16 ? 2 : 1;
  return precision;
}

Result<void> check_deployment(const Deployment& deployment) {
  const auto& [tp, pp, ep, dp] = deployment.parallel;
  const catalog::ModelSpec& model = deployment.model;
  const catalog::HardwareSpec& hardware = deployment.hardware;
  if (tp < 1 || pp < 1 || ep < 1 || dp < 1 || tp > 4096 || pp > 4096 || ep > 4096 || dp > 4096) {
    return invalid_argument("--tp, --pp, --ep, --dp: expected numbers from 1 to 4096");
  }
  if (model.heads % tp != 0) {
    return invalid_argument(fmt::format("--tp: found {}, expected a divisor of the {} heads of {}",
                                        tp, model.heads, model.id));
  }
  if (!model.mla && model.kv_heads % tp != 0 && tp % model.kv_heads != 0) {
    return invalid_argument(
        fmt::format("--tp: found {}, expected a divisor or a multiple of the {} KV heads of {}", tp,
                    model.kv_heads, model.id));
  }
  if (pp > model.layers) {
    return invalid_argument(fmt::format("--pp: found {}, expected at most the {} layers of {}", pp,
                                        model.layers, model.id));
  }
  if (!model.moe && (ep > 1 || dp > 1)) {
    return invalid_argument(
        fmt::format("--ep, --dp: {} has no experts, expected 1 (run replicas instead)", model.id));
  }
  if (model.moe && (tp * dp % ep != 0 || model.moe->experts % ep != 0)) {
    return invalid_argument(
        fmt::format("--ep: found {}, expected a divisor of tp x dp = {} and of the {} experts", ep,
                    tp * dp, model.moe->experts));
  }
  const bool eight =
      deployment.weights == WeightDtype::kFp8 || deployment.weights == WeightDtype::kFp8Block;
  if (eight && hardware.peak_fp8 == 0) {
    return invalid_argument(fmt::format("--weight-dtype: {} has no fp8 arithmetic", hardware.id));
  }
  if (deployment.weights == WeightDtype::kInt8 && hardware.peak_int8 == 0) {
    return invalid_argument(fmt::format("--weight-dtype: {} has no int8 arithmetic", hardware.id));
  }
  if (deployment.weights == WeightDtype::kFp4 && hardware.peak_fp4 == 0) {
    return invalid_argument(fmt::format("--weight-dtype: {} has no fp4 arithmetic", hardware.id));
  }
  if (tp * dp > 1 && hardware.topology == catalog::LinkTopology::kNone &&
      hardware.host_bandwidth == 0) {
    return invalid_argument(
        fmt::format("--tp: {} has no link to other devices, expected 1", hardware.id));
  }
  const Speculation& speculation = deployment.speculation;
  if (speculation.draft_tokens < 0 || speculation.draft_tokens > 64 ||
      !(speculation.acceptance >= 0 && speculation.acceptance <= 1) ||
      !(speculation.draft_cost >= 0 && speculation.draft_cost <= 1)) {
    return invalid_argument(
        "--draft-tokens, --acceptance, --draft-cost: expected 0 to 64, 0 to 1, 0 to 1");
  }
  return {};
}

}  // namespace prony::perfmodel
