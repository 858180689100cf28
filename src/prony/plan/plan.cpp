#include "prony/plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prony/plan/reasons.hpp"
#include "prony/record/slo_verdict.hpp"

namespace prony::plan {
namespace {

using perfmodel::Deployment;
using perfmodel::ServingLoad;
using perfmodel::ServingPrediction;
using perfmodel::ServingPredictor;

constexpr double kMs = 1e3;

// By how much a value misses its bound; above 1 where it does.
double miss(const core::SloTerm& term, double value) {
  const bool most = term.comparison == core::SloComparison::kLess ||
                    term.comparison == core::SloComparison::kLessEqual;
  if (most) return term.bound > 0 ? value / term.bound : value;
  return value > 0 ? term.bound / value : term.bound;
}

class Search {
 public:
  explicit Search(const Question& question) : question_(question) {
    for (const core::SloTerm& term : question.slo.terms) terms_.push_back(core::slo_text(term));
  }

  Result<Answer> run() {
    const Space& space = question_.space;
    for (size_t device = 0; device < space.devices.size(); ++device) {
      for (const auto weights : space.weights) {
        for (const int32_t dp : space.dp) {
          if (dp > 1 && !question_.model.moe) continue;
          for (const bool spread : space.experts_spread) {
            if (spread && !question_.model.moe) continue;
            for (const int32_t tp : space.tp) {
              if (spread && tp * dp == 1) continue;  // the same as without
              for (const int32_t pp : space.pp) {
                Choice choice;
                choice.device = device;
                choice.weights = weights;
                choice.parallel = {.tp = tp, .pp = pp, .ep = spread ? tp * dp : 1, .dp = dp};
                if (auto done = shape(choice); !done) return done.error();
              }
            }
          }
        }
      }
    }
    if (answer_.configurations == 0) {
      return invalid_argument(
          fmt::format("no configuration to look at: every split needs more than {} devices, or "
                      "experts that {} does not have",
                      space.devices_max, question_.model.id));
    }
    return finish();
  }

 private:
  const Device& device(const Choice& choice) const {
    return question_.space.devices[choice.device];
  }

  // All batches and numbers of replicas of one split.
  Result<void> shape(Choice choice) {
    const Space& space = question_.space;
    const int32_t ranks = choice.parallel.ranks();
    if (ranks > std::min(space.devices_max, space.replica_devices_max)) return {};
    const int32_t replicas = space.devices_max / ranks;
    const int64_t each = replicas;
    answer_.configurations += each * static_cast<int64_t>(space.max_sequences.size());
    Deployment deployment;
    deployment.model = question_.model;
    deployment.hardware = device(choice).hardware;
    deployment.engine = question_.engine;
    deployment.parallel = choice.parallel;
    deployment.weights = choice.weights;
    deployment.calibration = device(choice).calibration;
    deployment.kv = automatic_kv(question_.engine, question_.model, choice.weights);
    auto predictor = ServingPredictor::make(deployment);
    if (!predictor) {
      const int64_t all = each * static_cast<int64_t>(space.max_sequences.size());
      const std::string& message = predictor.error().message;
      reasons_.add(Cause::kImpossible, message.substr(0, message.find(':')), all, choice, 1,
                   [&] { return message; });
      return {};
    }
    for (const int32_t sequences : space.max_sequences) {
      choice.max_sequences = sequences;
      if (auto done = batch(choice, *predictor, replicas); !done) return done;
    }
    return {};
  }

  Result<void> batch(Choice choice, ServingPredictor& predictor, int32_t replicas) {
    for (choice.replicas = 1; choice.replicas <= replicas; ++choice.replicas) {
      ServingLoad load = question_.load;
      load.max_sequences = choice.max_sequences;
      if (load.request_rate) *load.request_rate /= choice.replicas;
      if (load.concurrency) {
        *load.concurrency /= choice.replicas;
        if (*load.concurrency < 1) {
          reasons_.add(Cause::kIdle, "fewer clients than replicas", replicas - choice.replicas + 1,
                       choice, choice.replicas, [&] {
                         return fmt::format("{} replicas for {:.0f} clients", choice.replicas,
                                            *question_.load.concurrency);
                       });
          return {};
        }
      }
      const auto prediction = predictor.predict(load, perfmodel::Detail::kFigures);
      if (!prediction) {
        if (prediction.error().code != ErrorCode::kFailed) return prediction.error();
        // More replicas do not help what does not fit.
        reasons_.add(Cause::kMemory, "does not fit", replicas, choice,
                     predictor.missing_bytes(load), [&] { return prediction.error().message; });
        return {};
      }
      ++answer_.predicted;
      judge(choice, *prediction);
    }
    return {};
  }

  void judge(const Choice& choice, const ServingPrediction& p) {
    if (!p.ttft_s) {
      reasons_.add(Cause::kSaturated, "at or within 10 % of saturation", 1, choice, p.load_share,
                   [&p] { return p.ttft_reason; });
      return;
    }
    set_latencies(p, question_.load.output_tokens, metrics_);
    metrics_.request_throughput = p.request_throughput * choice.replicas;
    metrics_.output_throughput = p.output_throughput * choice.replicas;
    for (size_t i = 0; i < terms_.size(); ++i) {
      const core::SloTerm& term = question_.slo.terms[i];
      const auto value = record::slo_value(term, metrics_);
      if (!value) {
        reasons_.add(Cause::kUnknown, terms_[i], 1, choice, 0, [&p] {
          return p.tails.reason.empty() ? "no prediction has this statistic" : p.tails.reason;
        });
        return;
      }
      if (!term.holds(*value)) {
        reasons_.add(Cause::kSlo, terms_[i], 1, choice, miss(term, *value),
                     [&] { return fmt::format("{:.4g} against {:.4g}", *value, term.bound); });
        return;
      }
    }
    ++answer_.feasible;
    feasible_.push_back({choice, figures(choice, p)});
  }

  Figures figures(const Choice& choice, const ServingPrediction& p) {
    Figures f;
    f.ttft_s = *p.ttft_s;
    f.tpot_s = p.tpot_s;
    f.e2e_s = *p.e2e_s;
    f.ttft_p99_s = p.tails.ttft_s;
    f.tpot_p99_s = p.tails.tpot_s;
    f.itl_p99_s = p.tails.itl_s;
    f.e2e_p99_s = p.tails.e2e_s;
    f.load_share = p.load_share;
    f.output_throughput = p.output_throughput * choice.replicas;
    f.user_speed = 1 / p.tpot_s;
    f.device_speed = f.output_throughput / choice.devices();
    f.paid_devices = (choice.replicas + question_.spares) * choice.parallel.ranks();
    const auto& hour = device(choice).usd_per_hour;
    if (!hour) {
      ++answer_.without_price;
      return f;
    }
    const double per_second = *hour * f.paid_devices / 3600;
    f.usd_per_hour = *hour * f.paid_devices;
    f.usd_per_million_output = per_second / f.output_throughput * 1e6;
    const double tokens =
        static_cast<double>(question_.load.input_tokens + question_.load.output_tokens);
    f.usd_per_million_total = per_second / (*metrics_.request_throughput * tokens) * 1e6;
    return f;
  }

  Answer finish() {
    const auto cheaper = [](const Candidate& a, const Candidate& b) {
      const auto &x = a.figures, &y = b.figures;
      if (*x.usd_per_hour != *y.usd_per_hour) return *x.usd_per_hour < *y.usd_per_hour;
      return x.user_speed > y.user_speed;
    };
    std::vector<std::optional<Candidate>> best(question_.space.devices.size());
    for (const Candidate& each : feasible_) {
      if (!each.figures.usd_per_hour) continue;
      auto& slot = best[each.choice.device];
      if (!slot || cheaper(each, *slot)) slot = each;
    }
    for (const auto& each : best) {
      if (each) answer_.cheapest_by_device.push_back(*each);
    }
    std::stable_sort(answer_.cheapest_by_device.begin(), answer_.cheapest_by_device.end(), cheaper);
    if (!answer_.cheapest_by_device.empty()) answer_.cheapest = answer_.cheapest_by_device.front();
    answer_.front = pareto_front(std::move(feasible_));
    answer_.reasons = std::move(reasons_).sorted();
    return std::move(answer_);
  }

  const Question& question_;
  std::vector<std::string> terms_;
  record::Metrics metrics_;  // reused: objectives are judged as those of a measured run
  std::vector<Candidate> feasible_;
  Reasons reasons_;
  Answer answer_;
};

}  // namespace

void set_latencies(const ServingPrediction& p, int64_t output_tokens, record::Metrics& metrics) {
  const auto set = [](record::LatencyStats& stats, const std::optional<double>& mean,
                      const std::optional<double>& tail) {
    stats.mean = mean ? std::optional(*mean * kMs) : std::nullopt;
    stats.p99 = mean && tail ? std::optional(*tail * kMs) : std::nullopt;
  };
  const bool several = output_tokens > 1;
  const std::optional<double> tpot = several ? std::optional(p.tpot_s) : std::nullopt;
  set(metrics.ttft_ms, p.ttft_s, p.tails.ttft_s);
  set(metrics.tpot_ms, tpot, p.tails.tpot_s);
  set(metrics.itl_ms, tpot, p.tails.itl_s);
  set(metrics.e2e_ms, p.e2e_s, p.tails.e2e_s);
}

Result<Answer> search(const Question& question) {
  if (auto checked = check(question); !checked) return checked.error();
  return Search(question).run();
}

}  // namespace prony::plan
