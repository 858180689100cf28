#include "prony/perfmodel/error_band.hpp"

namespace prony::perfmodel {

ErrorBand error_band(const Deployment& deployment, const ServingLoad& load) {
  if (load.static_batch) return {.name = "static batch", .rows = 0};
  if (deployment.model.moe) return {.name = "mixture of experts", .rows = 0};
  return {.name = "dense", .rows = 0};
}

}  // namespace prony::perfmodel
