#include "prony/cli/plan_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "prony/catalog/catalog.hpp"
#include "prony/cli/calibrations.hpp"
#include "prony/cli/predict_options.hpp"
#include "prony/plan/prices.hpp"

namespace prony::cli {
namespace {

// Values of a list flag, also joined by commas.
std::vector<std::string> pieces_of(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const std::string& text : texts) {
    for (size_t begin = 0; begin <= text.size();) {
      const size_t comma = std::min(text.find(',', begin), text.size());
      out.push_back(text.substr(begin, comma - begin));
      begin = comma + 1;
    }
  }
  return out;
}

Result<std::vector<int32_t>> numbers_of(const char* flag, const std::vector<std::string>& texts) {
  std::vector<int32_t> out;
  for (const std::string& text : pieces_of(texts)) {
    int32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
      return invalid_argument(fmt::format("{}: found '{}', expected whole numbers", flag, text));
    }
    out.push_back(value);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Result<int32_t> small(const char* flag, int64_t value) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (value >= 0 && value <= kMax) return static_cast<int32_t>(value);
  return invalid_argument(fmt::format("{}: found {}, expected at most {}", flag, value, kMax));
}

}  // namespace

Result<plan::Question> question_of(const PlanOptions& o) {
  if (o.model.empty()) return invalid_argument("--model: missing, expected a name");
  plan::Question q;
  auto model = catalog::resolve_model(o.model);
  if (!model) return model.error();
  q.model = *std::move(model);
  auto engine = catalog::resolve_engine(o.engine);
  if (!engine) return engine.error();
  q.engine = *std::move(engine);
  q.load = {.input_tokens = o.input_len,
            .output_tokens = o.output_len,
            .concurrency = o.concurrency,
            .request_rate = o.request_rate,
            .requests = o.num_prompts};
  if (o.max_batched_tokens) {
    const auto value = small("--max-num-batched-tokens", *o.max_batched_tokens);
    if (!value) return value.error();
    if (*value < 1) return invalid_argument("--max-num-batched-tokens: expected 1 or more");
    q.load.max_step_tokens = *value;
  }
  if (!o.slo.empty()) {
    auto slo = core::parse_slo(o.slo);
    if (!slo) return slo.error();
    q.slo = *std::move(slo);
  }
  auto devices = plan::priced_devices(pieces_of(o.hardware), o.prices);
  if (!devices) return devices.error();
  q.space.devices = *std::move(devices);
  const auto calibrations = load_calibrations(o.calibration);
  if (!calibrations) return calibrations.error();
  size_t used = 0;
  for (plan::Device& device : q.space.devices) {
    const auto* own = find_calibration(*calibrations, device.hardware.id, q.engine.id);
    if (own == nullptr) continue;
    device.calibration = own->factors;
    ++used;
  }
  if (used < calibrations->size()) {
    return invalid_argument(
        fmt::format("--calibration: only {} of {} files are of {} on one of the devices", used,
                    calibrations->size(), q.engine.id));
  }
  for (const std::string& name : pieces_of(o.weights)) {
    auto dtype = name == "auto" ? Result(published_dtype(q.model.weight_format))
                                : perfmodel::parse_weight_dtype(name);
    if (!dtype) return dtype.error();
    if (std::count(q.space.weights.begin(), q.space.weights.end(), *dtype) == 0) {
      q.space.weights.push_back(*dtype);
    }
  }
  for (const auto& [flag, texts, target] :
       {std::tuple{"--tp", &o.tp, &q.space.tp}, std::tuple{"--pp", &o.pp, &q.space.pp},
        std::tuple{"--dp", &o.dp, &q.space.dp},
        std::tuple{"--max-num-seqs", &o.max_num_seqs, &q.space.max_sequences}}) {
    auto values = numbers_of(flag, *texts);
    if (!values) return values.error();
    *target = *std::move(values);
  }
  if (o.ep != "on") q.space.experts_spread.push_back(false);
  if (o.ep != "off") q.space.experts_spread.push_back(true);
  for (const auto& [flag, value, target] :
       {std::tuple{"--max-devices", o.max_devices, &q.space.devices_max},
        std::tuple{"--spares", o.spares, &q.spares}}) {
    const auto number = small(flag, value);
    if (!number) return number.error();
    *target = *number;
  }
  q.space.replica_devices_max = q.space.devices_max;
  if (o.lines < 1)
    return invalid_argument(fmt::format("--lines: found {}, expected 1 or more", o.lines));
  return q;
}

}  // namespace prony::cli
