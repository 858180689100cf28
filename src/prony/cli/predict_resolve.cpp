#include "prony/cli/predict_options.hpp"

#include <fmt/format.h>

#include <limits>

#include "prony/catalog/catalog.hpp"
#include "prony/catalog/hardware_file.hpp"
#include "prony/cli/calibrations.hpp"

namespace prony::cli {
namespace {

using perfmodel::KvDtype;
using perfmodel::WeightDtype;

Result<int32_t> ranks(const char* flag, int64_t value) {
  if (value >= 1 && value <= 4096) return static_cast<int32_t>(value);
  return invalid_argument(fmt::format("{}: found {}, expected 1 to 4096", flag, value));
}

}  // namespace

WeightDtype published_dtype(catalog::WeightFormat format) {
  switch (format) {
    case catalog::WeightFormat::kFp8Block128:
      return WeightDtype::kFp8Block;
    case catalog::WeightFormat::kMxfp4Experts:
      return WeightDtype::kMxfp4;
    case catalog::WeightFormat::kF32:
    case catalog::WeightFormat::kF16:
    case catalog::WeightFormat::kBf16:
      break;
  }
  return WeightDtype::kBf16;
}

Result<perfmodel::Deployment> deployment_of(const PredictOptions& o) {
  if (o.model.empty()) return invalid_argument("--model: missing, expected a name");
  if (o.hardware.empty()) return invalid_argument("--hardware: missing, expected a name");
  perfmodel::Deployment d;
  auto model = catalog::resolve_model(o.model);
  if (!model) return model.error();
  d.model = *std::move(model);
  auto hardware = catalog::resolve_hardware(o.hardware);
  if (!hardware) return hardware.error();
  d.hardware = *std::move(hardware);
  if (o.clock_mhz) {
    if (!(*o.clock_mhz > 0 && *o.clock_mhz <= 10000)) {
      return invalid_argument(
          fmt::format("--clock-mhz: found {}, expected 0 to 10000", *o.clock_mhz));
    }
    d.hardware = catalog::at_clock(d.hardware, *o.clock_mhz * 1e6);
  }
  auto engine = catalog::resolve_engine(o.engine);
  if (!engine) return engine.error();
  d.engine = *std::move(engine);
  const std::pair<const char*, int64_t> splits[] = {
      {"--tp", o.tp}, {"--pp", o.pp}, {"--ep", o.ep}, {"--dp", o.dp}};
  int32_t* const targets[] = {&d.parallel.tp, &d.parallel.pp, &d.parallel.ep, &d.parallel.dp};
  for (size_t i = 0; i < 4; ++i) {
    const auto value = ranks(splits[i].first, splits[i].second);
    if (!value) return value.error();
    *targets[i] = *value;
  }
  d.weights = published_dtype(d.model.weight_format);
  if (o.weight_dtype != "auto") {
    const auto dtype = perfmodel::parse_weight_dtype(o.weight_dtype);
    if (!dtype) return dtype.error();
    d.weights = *dtype;
  }
  d.kv = perfmodel::automatic_kv(d.engine, d.model, d.weights);
  if (o.kv_dtype != "auto") {
    const auto dtype = perfmodel::parse_kv_dtype(o.kv_dtype);
    if (!dtype) return dtype.error();
    d.kv = *dtype;
  }
  d.cuda_graphs = !o.eager;
  if (!(o.expert_skew >= 1 && o.expert_skew <= 64)) {
    return invalid_argument(
        fmt::format("--expert-skew: found {}, expected 1 to 64", o.expert_skew));
  }
  d.expert_skew = o.expert_skew;
  if (o.draft_tokens < 0 || o.draft_tokens > 64) {
    return invalid_argument(
        fmt::format("--draft-tokens: found {}, expected 0 to 64", o.draft_tokens));
  }
  if (!o.calibration.empty()) {
    const auto calibrations = load_calibrations(o.calibration);
    if (!calibrations) return calibrations.error();
    const auto* own = find_calibration(*calibrations, d.hardware.id, d.engine.id);
    if (own == nullptr) {
      return invalid_argument(fmt::format("--calibration: {} is of {} on {}, expected {} on {}",
                                          calibrations->front().path, calibrations->front().engine,
                                          calibrations->front().hardware, d.engine.id,
                                          d.hardware.id));
    }
    d.calibration = own->factors;
  }
  d.speculation = {static_cast<int32_t>(o.draft_tokens), o.acceptance, o.draft_cost};
  return d;
}

Result<perfmodel::ServingLoad> load_of(const PredictOptions& o) {
  perfmodel::ServingLoad load;
  load.input_tokens = o.input_len;
  load.output_tokens = o.output_len;
  load.concurrency = o.concurrency;
  load.request_rate = o.request_rate;
  if (!o.concurrency && !o.request_rate) load.concurrency = 1;
  load.static_batch = o.static_batch;
  load.requests = o.num_prompts;
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  for (const auto& [flag, value, target] :
       {std::tuple{"--max-num-seqs", o.max_num_seqs, &load.max_sequences},
        std::tuple{"--max-num-batched-tokens", o.max_batched_tokens, &load.max_step_tokens}}) {
    if (!value) continue;
    if (*value < 1 || *value > kMax) {
      return invalid_argument(fmt::format("{}: found {}, expected 1 or more", flag, *value));
    }
    *target = static_cast<int32_t>(*value);
  }
  return load;
}

}  // namespace prony::cli
