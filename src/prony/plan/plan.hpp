// plan: searches every configuration of a space for those that serve a load within its objectives:
// which is the cheapest, what can be traded against what, and why the others fail.
//
// A configuration is a device, a split, a weight format, a largest batch and a number of replicas.
// Each is predicted by perfmodel as `prony predict` would, with its replica's share of the load;
// what one replica's steps take is computed once for all batches and replicas of that shape.
// Prices count the spares; every other figure is of the fleet that holds the load without them.
// Thread safety: pure functions.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/perfmodel/serving.hpp"
#include "prony/plan/question.hpp"
#include "prony/record/metrics.hpp"

namespace prony::plan {

struct Choice {
  size_t device = 0;  // of the space
  perfmodel::Parallelism parallel;
  perfmodel::WeightDtype weights = perfmodel::WeightDtype::kBf16;
  int32_t max_sequences = 0;
  int32_t replicas = 1;
  int32_t devices() const { return replicas * parallel.ranks(); }
};

/// Seconds; NaN-free. Money with the spares.
struct Figures {
  double ttft_s = 0, tpot_s = 0, e2e_s = 0;  // means
  std::optional<double> ttft_p99_s, tpot_p99_s, itl_p99_s, e2e_p99_s;
  double load_share = 0;         // of one replica's saturation
  double output_throughput = 0;  // tokens/s of the fleet
  double user_speed = 0;         // tokens/s of one user, 1/TPOT
  double device_speed = 0;       // output tokens/s of one device in service
  int32_t paid_devices = 0;      // spares included
  std::optional<double> usd_per_hour, usd_per_million_output, usd_per_million_total;
};

struct Candidate {
  Choice choice;
  Figures figures;
};

/// Why configurations fail; each is counted once, under the first that applies.
enum class Cause {
  kImpossible,  // the split or the format cannot be
  kMemory,      // weights, or not even one request, fit
  kSaturated,   // beyond what a replica can carry, or within 10 % of it
  kIdle,        // fewer clients than replicas
  kSlo,         // an objective is broken
  kUnknown,     // an objective has no model for this load
};
const char* cause_name(Cause cause);

struct Reason {
  Cause cause = Cause::kImpossible;
  std::string what;  // the term of the objective, or what cannot be
  int64_t count = 0;
  // The configuration that came nearest, and by how much it missed: bytes missing for memory, the
  // load over the highest, the value over the bound (or bound over value). 1 is the border.
  std::optional<Choice> nearest;
  double missed = 0;
  std::string detail;  // of the nearest, as a sentence
};

struct Answer {
  int64_t configurations = 0, predicted = 0, feasible = 0, without_price = 0;
  std::optional<Candidate> cheapest;
  std::vector<Candidate> cheapest_by_device;  // one a device that has a feasible one, by price
  std::vector<Candidate> front;               // fastest for one user first
  std::vector<Reason> reasons;                // most configurations first
};

/// Error: kInvalidArgument, from check() or the load itself.
Result<Answer> search(const Question& question);

/// Those that no other one beats in user speed, price of a million output tokens and speed of a
/// device at once; candidates without a price are left out. Sorted by falling user speed.
std::vector<Candidate> pareto_front(std::vector<Candidate> candidates);

/// Latencies of a prediction as a record has them: means, and 99th percentiles where there is a
/// model.
void set_latencies(const perfmodel::ServingPrediction& prediction, int64_t output_tokens,
                   record::Metrics& metrics);

}  // namespace prony::plan
