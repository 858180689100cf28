// Question: what shall be served, how well, and what may be chosen for it.
// Thread safety: values.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prony/catalog/engine_profile.hpp"
#include "prony/catalog/hardware_spec.hpp"
#include "prony/catalog/model_spec.hpp"
#include "prony/core/result.hpp"
#include "prony/core/slo.hpp"
#include "prony/perfmodel/deployment.hpp"
#include "prony/perfmodel/serving_load.hpp"

namespace prony::plan {

/// A device that may be bought, and what an hour of it costs.
struct Device {
  catalog::HardwareSpec hardware;
  std::optional<double> usd_per_hour;    // nullopt: no price is known
  std::string price;                     // where it is from, "BOOK/ID"
  perfmodel::Calibration calibration{};  // of the question's engine on it
};

/// Values of each axis; every combination is a configuration, times 1, 2, ... replicas.
struct Space {
  std::vector<Device> devices;
  std::vector<int32_t> tp, pp, dp;
  std::vector<bool> experts_spread;  // false: ep = 1, true: ep = tp x dp; mixtures only
  std::vector<perfmodel::WeightDtype> weights;
  std::vector<int32_t> max_sequences;  // that one engine runs at once
  int32_t devices_max = 64;            // of all replicas, without spares
  int32_t replica_devices_max = 64;    // of one
};

struct Question {
  catalog::ModelSpec model;
  catalog::EngineProfile engine;
  perfmodel::ServingLoad load;  // of the whole fleet; max_sequences is of the space
  core::Slo slo;                // empty: below saturation is enough
  int32_t spares = 1;           // replicas paid for beyond those that hold the load
  Space space;
};

/// What cannot be asked: no load, empty or absurd axes. Error: kInvalidArgument, naming the flag.
Result<void> check(const Question& question);

}  // namespace prony::plan
