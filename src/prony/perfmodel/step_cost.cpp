#include "prony/perfmodel/step_cost.hpp"

#include <algorithm>

namespace prony::perfmodel {
namespace {

void add_line(StepCost& total, std::string_view name, double seconds, Bound bound,
              bool with_lines) {
  if (!with_lines || seconds <= 0) return;
  for (CostLine& line : total.lines) {
    if (line.name == name) {
      line.seconds += seconds;
      return;
    }
  }
  total.lines.push_back({name, seconds, bound});
}

}  // namespace

StepCoster::StepCoster(const Deployment& deployment) : deployment_(deployment), rank_(deployment) {}

double StepCoster::seconds(const StepShape& shape) {
  run(shape, scratch_, false);
  return scratch_.seconds;
}

StepCost StepCoster::cost(const StepShape& shape) {
  StepCost total;
  run(shape, total, true);
  return total;
}

void StepCoster::run(const StepShape& shape, StepCost& total, bool with_lines) {
  total.seconds = total.device_s = total.link_s = total.engine_s = 0;
  total.lines.clear();
  if (shape.empty()) return;
  const catalog::EngineProfile& engine = deployment_.engine;
  const Calibration& factor = deployment_.calibration;
  rank_.operators(shape, &operators_);
  double kernels = 0;
  for (const Operator& op : operators_) {
    const OperatorTime time = operator_time(deployment_, op, shape);
    const double seconds = factor.device * time.seconds * op.count;
    kernels += op.count;
    total.device_s += seconds;
    add_line(total, operator_name(op.kind), seconds, time.bound, with_lines);
  }
  const double layers = factor.engine * engine.layer_s * deployment_.model.layers;
  total.device_s += layers;
  add_line(total, "engine-layers", layers, Bound::kLatency, with_lines);
  links(shape, total, with_lines);

  // Without a graph the host launches every kernel; it runs ahead of the device, so only what is
  // longer than the device's own work is seen.
  const bool captured = shape.tokens() == shape.sequences() || engine.graph_prompts;
  const bool graph =
      deployment_.cuda_graphs && captured && shape.tokens() <= engine.graph_batch_max;
  if (!graph) {
    const double launch = factor.engine * engine.eager_kernel_s * kernels;
    const double exposed = std::max(0.0, launch - total.device_s - total.link_s);
    total.engine_s += exposed;
    add_line(total, "engine-launch", exposed, Bound::kLatency, with_lines);
  }
  const double step =
      factor.engine * (engine.step_s + engine.sequence_s * static_cast<double>(shape.sequences()));
  total.engine_s += step;
  add_line(total, "engine-step", step, Bound::kLatency, with_lines);
  total.seconds = total.device_s + total.link_s + total.engine_s;
}

void StepCoster::links(const StepShape& shape, StepCost& total, bool with_lines) const {
  const auto& [tp, pp, ep, dp] = deployment_.parallel;
  const catalog::ModelSpec& model = deployment_.model;
  const catalog::HardwareSpec& hardware = deployment_.hardware;
  const double exposed = 1 - deployment_.engine.overlap;
  const double tokens = static_cast<double>(shape.tokens());
  const double activations = tokens * model.hidden * rank_.precision().activation;
  const double layers = model.layers;
  const auto add = [&](std::string_view name, double seconds) {
    seconds *= deployment_.calibration.link;
    total.link_s += seconds;
    add_line(total, name, seconds, Bound::kLink, with_lines);
  };

  // Experts over data-parallel groups exchange tokens instead of summing partial results.
  const double mixture_layers = model.moe ? layers - model.moe->dense_layers : 0;
  const bool exchange = dp > 1 && ep > 1;
  if (tp > 1) {
    const double one = all_reduce(hardware, deployment_.engine.all_reduce, tp, activations).seconds;
    const double per_model = layers + (exchange ? layers - mixture_layers : layers) + 1;
    add("all-reduce", exposed * per_model * one);
    const double logits = static_cast<double>(shape.samples()) * model.vocab * 2;
    add("gather-logits", all_gather(hardware, tp, logits).seconds);
  }
  if (exchange) {
    const double copies = std::min<double>(model.moe->experts_per_token, ep);
    const double dispatch_bytes = deployment_.weights == WeightDtype::kBf16 ? 2 : 1;
    const double sent = tokens / tp * model.hidden * copies;
    const double both = all_to_all(hardware, ep, sent * dispatch_bytes).seconds +
                        all_to_all(hardware, ep, sent * 2).seconds;
    add("all-to-all", exposed * mixture_layers * both);
  }
  if (pp > 1) {
    const bool same_node = tp * dp * pp <= std::max<int32_t>(8, hardware.link_devices);
    add("stage-send", (pp - 1) * send(hardware, activations, same_node).seconds);
  }
}

}  // namespace prony::perfmodel
