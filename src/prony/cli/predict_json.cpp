#include <fmt/format.h>

#include <algorithm>

#include "prony/cli/predict_output.hpp"
#include "prony/perfmodel/error_band.hpp"
#include "prony/plan/render.hpp"

namespace prony::cli {
namespace {

using core::Json;
using perfmodel::ServingPrediction;

constexpr double kMs = 1e3;

Json maybe_ms(const std::optional<double>& seconds) {
  return seconds ? Json(*seconds * kMs) : Json(nullptr);
}

Json step_json(const perfmodel::StepCost& step) {
  Json json = Json::object();
  json["ms"] = step.seconds * kMs;
  json["device_share"] = step.seconds > 0 ? step.device_s / step.seconds : 0;
  json["link_share"] = step.seconds > 0 ? step.link_s / step.seconds : 0;
  json["engine_share"] = step.seconds > 0 ? step.engine_s / step.seconds : 0;
  Json lines = Json::array();
  for (const perfmodel::CostLine& line : step.lines) {
    lines.push_back({{"operator", line.name},
                     {"ms", line.seconds * kMs},
                     {"share", line.seconds / step.seconds},
                     {"bound", perfmodel::bound_name(line.bound)}});
  }
  json["operators"] = std::move(lines);
  return json;
}

// The operator that takes most of the step.
const perfmodel::CostLine* largest(const perfmodel::StepCost& step) {
  const auto it =
      std::max_element(step.lines.begin(), step.lines.end(),
                       [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  return it == step.lines.end() ? nullptr : &*it;
}

Json memory_json(const perfmodel::MemoryPlan& plan) {
  return {{"device_bytes", plan.device_bytes},
          {"usable_bytes", plan.usable_bytes},
          {"weight_bytes", plan.weight_bytes},
          {"activation_bytes", plan.activation_bytes},
          {"overhead_bytes", plan.overhead_bytes},
          {"kv_bytes", plan.kv_bytes},
          {"kv_bytes_per_token", plan.kv_bytes_per_token},
          {"kv_blocks", plan.kv_blocks},
          {"kv_tokens", plan.kv_tokens}};
}

// 99th percentiles; null where there is no model of the spread.
Json tails_json(const ServingPrediction& p, double request_s) {
  const perfmodel::ServingTails& tails = p.tails;
  const Json parts = {{"request", request_s * kMs},
                      {"prefill", (tails.fixed_s - request_s) * kMs},
                      {"prompts_before", tails.prompts_s * kMs},
                      {"free_place", tails.place_s * kMs},
                      {"common_start", tails.start_s * kMs}};
  return {{"ttft_ms", maybe_ms(tails.ttft_s)},
          {"ttft_parts_ms", tails.ttft_s ? parts : Json(nullptr)},
          {"tpot_ms", maybe_ms(tails.tpot_s)},
          {"itl_ms", maybe_ms(tails.itl_s)},
          {"e2e_ms", maybe_ms(tails.e2e_s)},
          {"gaps_with_prompt", tails.itl_s ? Json(tails.gaps_with_prompt) : Json(nullptr)},
          {"reason", tails.reason.empty() ? Json(nullptr) : Json(tails.reason)}};
}

}  // namespace

Json prediction_json(const perfmodel::Deployment& deployment, const perfmodel::ServingLoad& load,
                     const ServingPrediction& p) {
  Json json = Json::object();
  json["itl_decode_only_ms"] = p.itl_s * kMs;
  json["itl_with_prefill_ms"] = p.tpot_s * kMs;
  json["ttft_parts_ms"] = {{"prefill", p.prefill_s * kMs},
                           {"queue", p.queue_s * kMs},
                           {"free_place", p.place_s * kMs},
                           {"common_start", p.start_s * kMs},
                           {"request", deployment.engine.request_s * kMs}};
  json["ttft_reason"] = p.ttft_s ? Json(nullptr) : Json(p.ttft_reason);
  json["p99"] = tails_json(p, deployment.engine.request_s);
  json["batch"] = p.batch;
  json["capacity_sequences"] = p.capacity;
  json["load_share"] = p.load_share;
  json["distance_to_saturation"] = 1 - p.load_share;
  json["max_request_throughput"] = p.max_request_throughput;
  const auto* top = largest(p.decode);
  json["bottleneck"] = top ? Json{{"operator", top->name},
                                  {"share", top->seconds / p.decode.seconds},
                                  {"bound", perfmodel::bound_name(top->bound)}}
                           : Json(nullptr);
  json["decode_step"] = step_json(p.decode);
  json["prefill_step"] = p.prefill.seconds > 0 ? step_json(p.prefill) : Json(nullptr);
  json["memory"] = memory_json(p.memory);
  json["error_band"] = plan::error_band_json(perfmodel::error_band(deployment, load));
  return json;
}

Json prediction_row(const ServingPrediction& p) {
  return {{"ttft_ms", maybe_ms(p.ttft_s)},
          {"tpot_ms", p.tpot_s * kMs},
          {"itl_decode_only_ms", p.itl_s * kMs},
          {"prefill_ms", p.prefill_s * kMs},
          {"e2e_ms", maybe_ms(p.e2e_s)},
          {"ttft_p99_ms", maybe_ms(p.tails.ttft_s)},
          {"tpot_p99_ms", maybe_ms(p.tails.tpot_s)},
          {"request_throughput", p.request_throughput},
          {"output_throughput", p.output_throughput},
          {"max_request_throughput", p.max_request_throughput},
          {"batch", p.batch},
          {"capacity_sequences", p.capacity},
          {"load_share", p.load_share},
          {"kv_blocks", p.memory.kv_blocks}};
}

}  // namespace prony::cli
