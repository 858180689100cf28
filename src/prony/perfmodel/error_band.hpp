// ErrorBand: how wrong predictions of a kind have been against public measurements, so that every
// answer carries the error of its class. Figures: validation/report.md, which its script rewrites.
// Thread safety: pure functions.
#pragma once
#include <cstdint>
#include <string_view>

#include "prony/perfmodel/serving.hpp"

namespace prony::perfmodel {

/// Fractions; negative `mape` means that nothing was measured.
struct MetricError {
  double mape = -1, bias = 0, p90 = -1;
  bool known() const { return mape >= 0; }
};

struct ErrorBand {
  std::string_view name;  // of the validation class
  int32_t rows = 0;
  MetricError tpot, ttft, throughput;
};

ErrorBand error_band(const Deployment& deployment, const ServingLoad& load);

}  // namespace prony::perfmodel
