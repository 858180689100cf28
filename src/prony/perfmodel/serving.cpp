#include "prony/perfmodel/serving.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prony/perfmodel/prompt_queue.hpp"

namespace prony::perfmodel {
namespace {

constexpr double kRequestsPerClient = 10;  // of the public closed-loop scripts
constexpr int kIterations = 60;
constexpr double kGiB = 1024.0 * 1024 * 1024;

class ServingModel {
 public:
  ServingModel(ServingSteps& steps, const ServingLoad& load)
      : steps_(steps),
        deployment_(steps.deployment()),
        load_(load),
        input_(static_cast<double>(load.input_tokens)),
        output_(static_cast<double>(load.output_tokens)) {
    const catalog::EngineProfile& engine = deployment_.engine;
    max_sequences_ = load.max_sequences.value_or(engine.max_sequences);
    step_tokens_ = load.max_step_tokens.value_or(engine.max_step_tokens);
    steps_.set(load.input_tokens, load.output_tokens, step_tokens_);
  }

  Result<ServingPrediction> run(Detail detail) {
    result_.memory = memory_plan(deployment_, steps_.rank(), memory_limits());
    if (!result_.memory.fits()) return does_not_fit();
    result_.capacity = capacity();
    if (result_.capacity < 1) return context_does_not_fit();
    if (load_.static_batch) {
      static_batch();
    } else if (load_.concurrency) {
      closed_loop();
    } else {
      open_loop();
    }
    finish(detail);
    return std::move(result_);
  }

 private:
  MemoryLimits memory_limits() const {
    return {.step_tokens = step_tokens_, .max_sequences = max_sequences_};
  }

  Error does_not_fit() const {
    const MemoryPlan& plan = result_.memory;
    return failed(fmt::format(
        "{} does not fit on {} x {}: {:.1f} GiB missing a device (weights {:.1f}, activations "
        "{:.1f}, overhead {:.1f}, usable {:.1f} GiB)",
        deployment_.model.id, deployment_.parallel.ranks(), deployment_.hardware.id,
        plan.missing_bytes / kGiB, plan.weight_bytes / kGiB, plan.activation_bytes / kGiB,
        plan.overhead_bytes / kGiB, plan.usable_bytes / kGiB));
  }

  Error context_does_not_fit() const {
    const double needed = steps_.rank().kv_bytes(load_.input_tokens + load_.output_tokens);
    return failed(
        fmt::format("one request of {} + {} tokens does not fit: {:.2f} GiB of KV cache needed, "
                    "{:.2f} GiB left "
                    "on {}",
                    load_.input_tokens, load_.output_tokens, needed / kGiB,
                    result_.memory.kv_bytes / kGiB, deployment_.hardware.id));
  }

  // Sequences that run at once, of all data-parallel groups.
  double capacity() const {
    const int64_t whole = load_.input_tokens + load_.output_tokens;
    // Without a reservation of the output, running sequences are on average half way through it.
    const bool reserved =
        deployment_.engine.reservation == catalog::Reservation::kWhole || load_.static_batch;
    const int64_t held = reserved ? whole : load_.input_tokens + (load_.output_tokens + 1) / 2;
    const int32_t block = deployment_.engine.block_tokens;
    if (sequences_that_fit(result_.memory, steps_.rank(), whole, block) < 1) return 0;
    const int64_t fit = sequences_that_fit(result_.memory, steps_.rank(), held, block);
    return deployment_.parallel.dp * static_cast<double>(std::min<int64_t>(fit, max_sequences_));
  }

  struct Point {
    double step = 0, stolen = 0, tpot = 0, own = 0;
  };

  // With `others` the share of the prompts that are another sequence's.
  Point point(double batch, double others) {
    Point p;
    p.step = steps_.decode(batch);
    const ServingSteps::Prompt prompt = steps_.prompt(batch);
    p.own = prompt.own_s;
    p.stolen = prompt.stolen_s;
    p.tpot = p.step / accepted_tokens(deployment_.speculation);
    // Every sequence of the batch ends after output - 1 further tokens and makes room for a prompt;
    // pipeline stages and data-parallel groups prefill side by side.
    if (output_ > 1) p.tpot += others * batch / steps_.groups() / (output_ - 1) * p.stolen;
    return p;
  }

  // Waiting for prompts that came before: M/G/1 over their stolen time, with nearly constant
  // service; `others` thins the arrivals.
  double wait(const Point& p, double request_rate, double others) const {
    const double rate = request_rate * others / steps_.groups();
    const double use = std::min(rate * p.own, 0.95);
    return p.own > 0 ? use * p.own / (2 * (1 - use)) : 0;
  }

  void set_ttft(const Point& p, double batch, double request_rate, double others) {
    const double residual = batch > 0 && others > 0 ? p.step / 2 : 0;
    result_.prefill_s = steps_.prompts(1);
    result_.queue_s = wait(p, request_rate, others) + others * residual;
    double own = p.own > 0 ? p.own : p.step;
    result_.ttft_s = deployment_.engine.request_s + own + result_.queue_s;
  }

  void closed_loop() {
    const double clients = *load_.concurrency;
    const double running = std::min(clients, result_.capacity);
    const double others = (clients - 1) / clients;
    double batch = running;
    Point p;
    double ttft = 0;
    for (int i = 0; i < kIterations; ++i) {
      p = point(batch, others);
      const double decode = (output_ - 1) * p.tpot;
      const double rate = running / (ttft + decode + 1e-12);
      ttft = deployment_.engine.request_s + std::max(p.own, p.step) + wait(p, rate, others) +
             others * p.step / 2;
      // Little: of the sequences in the system, those that decode.
      const double next = output_ > 1 ? running * decode / (decode + ttft) : running;
      if (std::abs(next - batch) < 1e-4 * running) break;
      batch = (batch + next) / 2;
    }
    const double cycle = ttft + (output_ - 1) * p.tpot;
    result_.batch = batch;
    result_.itl_s = p.step / accepted_tokens(deployment_.speculation);
    result_.tpot_s = p.tpot;
    result_.request_throughput = running / cycle;
    if (load_.requests && *load_.requests > 0 && clients >= *load_.requests) {
      result_.request_throughput = finite_rate(*load_.requests, running);
    }
    result_.load_share = clients / result_.capacity;
    result_.max_request_throughput = maximum_rate();
    set_ttft(p, batch, result_.request_throughput, others);
    add_start(clients);
    if (clients > kSaturationLimit * result_.capacity) {
      no_ttft(
          fmt::format("{:.0f} clients are {:.0f} % of the {:.0f} sequences that fit: TTFT is "
                      "queueing there and not predictable from means",
                      clients, 100 * result_.load_share, result_.capacity));
    }
  }

  // All requests of the run arrive at once and have one length, so they run in rounds of what fits,
  // and the last round is seldom full.
  double finite_rate(double requests, double running) {
    const double full = std::floor(requests / running), rest = requests - full * running;
    const auto round = [this](double batch) {
      const Point p = point(batch, 1);
      return p.own + (output_ - 1) * p.tpot;
    };
    return requests / (full * round(running) + (rest >= 1 ? round(rest) : 0));
  }

  // The common start: all clients send at once, so the first prompts wait for each other.
  void add_start(double clients) {
    const double requests = load_.requests.value_or(kRequestsPerClient * clients);
    if (requests <= 0 || clients <= 1 || load_.input_tokens == 0) return;
    const double first = std::min(1.0, clients / requests);
    const double each = clients / steps_.groups();
    const double per_step =
        std::max(1.0, std::min(each, std::floor(static_cast<double>(step_tokens_) / input_)));
    const double waves = std::ceil(each / per_step);
    const double wave = steps_.prompts(per_step);
    const double mean = wave * (waves + 1) / 2;
    result_.start_s = first * std::max(0.0, mean - result_.prefill_s);
    *result_.ttft_s += result_.start_s;
  }

  void open_loop() {
    const double rate = *load_.request_rate;
    const double together = std::floor(static_cast<double>(step_tokens_) / std::max(input_, 1.0));
    result_.max_request_throughput = maximum_rate();
    result_.load_share = rate / result_.max_request_throughput;
    const double served = std::min(rate, result_.max_request_throughput);
    const double accepted = accepted_tokens(deployment_.speculation);
    double batch = std::min(result_.capacity, served * output_ * steps_.decode(1));
    double step = 0, tpot = 0;
    PromptQueue queue;
    for (int i = 0; i < kIterations; ++i) {
      batch = std::max(batch, 1e-9);
      queue = prompt_queue(steps_, served, batch, together);
      step = steps_.decode(batch);
      tpot = step / accepted;
      // Prompts that arrive while it decodes, and those that its own left behind.
      if (output_ > 1) {
        tpot += (batch / steps_.groups() + queue.left) / (output_ - 1) * queue.stolen_s;
      }
      const double next = std::min(result_.capacity, served * (output_ - 1) * tpot);
      if (std::abs(next - batch) < 1e-4 * std::max(batch, 1.0)) break;
      batch = (batch + next) / 2;
    }
    result_.batch = batch;
    result_.itl_s = step / accepted;
    result_.tpot_s = tpot;
    result_.request_throughput = served;
    result_.prefill_s = steps_.prompts(1);
    result_.queue_s = queue.first_s() - result_.prefill_s;
    result_.place_s = place_wait(served, result_.max_request_throughput, result_.capacity);
    result_.ttft_s = deployment_.engine.request_s + queue.first_s() + result_.place_s;
    if (result_.load_share > kSaturationLimit) {
      no_ttft(
          fmt::format("{:.3g} requests/s are {:.0f} % of the {:.3g} that it can carry: TTFT is "
                      "not predictable within 10 % of saturation",
                      rate, 100 * result_.load_share, result_.max_request_throughput));
    }
  }

  // Completions per second with every slot taken.
  double maximum_rate() {
    const Point p = point(result_.capacity, 1);
    if (output_ <= 1) return steps_.groups() / std::max(p.own, p.step);
    return result_.capacity / ((output_ - 1) * p.tpot + p.own);
  }

  void static_batch() {
    const double batch = *load_.concurrency;
    // Whoever fixes the batch gives the cache what the engine would keep back.
    const double most = result_.capacity / deployment_.engine.memory_share;
    const double running = std::min(batch, std::floor(most));
    const double rounds = std::ceil(batch / running);
    const double prefill = steps_.prompts(running / steps_.groups());
    const double step = steps_.decode(running);
    result_.batch = running;
    result_.prefill_s = steps_.prompts(1);
    result_.itl_s = result_.tpot_s = step / accepted_tokens(deployment_.speculation);
    result_.ttft_s = deployment_.engine.request_s + prefill;
    const double whole = prefill + (output_ - 1) * result_.tpot_s + deployment_.engine.request_s;
    result_.request_throughput = batch / (rounds * whole);
    result_.load_share = batch / result_.capacity;
    result_.max_request_throughput = result_.request_throughput;
    if (rounds > 1) {
      no_ttft(fmt::format("a batch of {:.0f} runs in {:.0f} rounds, {:.0f} sequences fit at once",
                          batch, rounds, result_.capacity));
    }
  }

  void no_ttft(std::string reason) {
    result_.ttft_s = std::nullopt;
    result_.ttft_reason = std::move(reason);
  }

  void finish(Detail detail) {
    if (result_.ttft_s) result_.e2e_s = *result_.ttft_s + (output_ - 1) * result_.tpot_s;
    result_.output_throughput = result_.request_throughput * output_;
    result_.tails = serving_tails(steps_, load_, facts());
    if (detail == Detail::kFigures) return;
    result_.decode = steps_.decode_cost(result_.batch);
    result_.prefill = steps_.prompt_cost();
  }

  ServingFacts facts() const {
    return {.batch = result_.batch,
            .capacity = result_.capacity,
            .request_throughput = result_.request_throughput,
            .max_request_throughput = result_.max_request_throughput,
            .itl_s = result_.itl_s,
            .tpot_s = result_.tpot_s,
            .place_s = result_.place_s,
            .ttft_s = result_.ttft_s,
            .reason = result_.ttft_reason};
  }

  ServingSteps& steps_;
  const Deployment& deployment_;
  const ServingLoad& load_;
  const double input_, output_;
  int64_t max_sequences_ = 0, step_tokens_ = 0;
  ServingPrediction result_;
};

Result<void> check_load(const Deployment& deployment, const ServingLoad& load) {
  if (load.input_tokens < 0 || load.output_tokens < 1 || load.input_tokens > (1 << 28) ||
      load.output_tokens > (1 << 28)) {
    return invalid_argument("--input-len, --output-len: expected at least 0 and 1 tokens");
  }
  const bool closed = load.concurrency.has_value(), open = load.request_rate.has_value();
  if (closed == open) {
    return invalid_argument("expected --concurrency or --request-rate, and not both");
  }
  if (closed && !(*load.concurrency >= 1 && *load.concurrency <= 1e6)) {
    return invalid_argument("--concurrency: expected 1 to 1000000");
  }
  if (open && !(*load.request_rate > 0 && *load.request_rate <= 1e9)) {
    return invalid_argument("--request-rate: expected more than 0");
  }
  if (load.static_batch && !closed) {
    return invalid_argument("--static: expected --concurrency, the size of the batch");
  }
  if (load.input_tokens + load.output_tokens > deployment.model.max_context) {
    return invalid_argument(fmt::format(
        "--input-len, --output-len: found {} + {} tokens, expected at most the context of {}: {}",
        load.input_tokens, load.output_tokens, deployment.model.id, deployment.model.max_context));
  }
  return {};
}

}  // namespace

Result<ServingPredictor> ServingPredictor::make(const Deployment& deployment) {
  if (const auto checked = check_deployment(deployment); !checked) return checked.error();
  return ServingPredictor(deployment);
}

Result<ServingPrediction> ServingPredictor::predict(const ServingLoad& load, Detail detail) {
  if (const auto checked = check_load(deployment(), load); !checked) return checked.error();
  return ServingModel(steps_, load).run(detail);
}

double ServingPredictor::missing_bytes(const ServingLoad& load) const {
  const catalog::EngineProfile& engine = deployment().engine;
  const MemoryPlan plan =
      memory_plan(deployment(), steps_.rank(),
                  {.step_tokens = load.max_step_tokens.value_or(engine.max_step_tokens),
                   .max_sequences = load.max_sequences.value_or(engine.max_sequences)});
  const double request = steps_.rank().kv_bytes(load.input_tokens + load.output_tokens);
  return plan.fits() ? std::max(0.0, request - plan.kv_bytes) : plan.missing_bytes + request;
}

Result<ServingPrediction> predict_serving(const Deployment& deployment, const ServingLoad& load) {
  auto predictor = ServingPredictor::make(deployment);
  if (!predictor) return predictor.error();
  return predictor->predict(load, Detail::kOperators);
}

}  // namespace prony::perfmodel
