// A probe as a catalogue entry: the peaks that were reached and the curves fitted to the points,
// each number marked measured, with date and machine as its reference. What `predict --hardware
// this` reads. Thread safety: pure functions.
#pragma once
#include <string>

#include "prony/catalog/hardware_spec.hpp"
#include "prony/probe/cpu_probe.hpp"

namespace prony::probe {

/// What the entry says about the machine beside the figures.
struct Machine {
  std::string cpu;
  double memory_bytes = 0;
  double clock_hz = 0;   // 0: not told, then 1 GHz and a rate per cycle that makes up for it
  std::string taken_at;  // "2026-12-01T04:30:00Z"
};

/// A curve of the products of one format: floor, shares of the peak and of the bandwidth by least
/// squares of relative errors (GemmCurve); `error` is their root mean square.
struct FittedCurve {
  catalog::GemmCurve curve;
  double error = 0;
};
FittedCurve fit_curve(const CpuProbe& probe, kernels::Dtype dtype);

/// data/hardware format, id "this".
std::string hardware_text(const CpuProbe& probe, const Machine& machine);

}  // namespace prony::probe
