#include "prony/probe/hardware_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "prony/core/math.hpp"

namespace prony::probe {
namespace {

using kernels::Dtype;

// floor + (compute^p + memory^p)^(1/p), as perfmodel's gemm_time without tiles.
double curve_seconds(const catalog::GemmCurve& curve, const GemmPoint& point, double peak,
                     double bandwidth) {
  const double compute = point.ops() / (peak * curve.compute);
  const double memory = point.weight_bytes() / (bandwidth * curve.memory);
  const double larger = std::max(compute, memory), smaller = std::min(compute, memory);
  using core::math::pow;
  return curve.floor_s +
         larger * pow(1 + pow(smaller / larger, curve.sharpness), 1 / curve.sharpness);
}

double error_of(const catalog::GemmCurve& curve, const std::vector<GemmPoint>& points, double peak,
                double bandwidth) {
  double sum = 0;
  for (const GemmPoint& point : points) {
    const double relative = curve_seconds(curve, point, peak, bandwidth) / point.seconds - 1;
    sum += relative * relative;
  }
  return core::math::sqrt(sum / static_cast<double>(points.size()));
}

std::string curve_line(const char* name, const FittedCurve& fitted) {
  const auto& c = fitted.curve;
  return fmt::format(
      "  {}: {{origin: measured, ref: probe, floor_us: {:.4g}, compute: {:.4g}, memory: {:.4g}, "
      "sharpness: {:.4g}, fill: 0, wave: 0, tile_rows: 1}}  # rms error {:.1f} %\n",
      name, c.floor_s * 1e6, c.compute, c.memory, c.sharpness, 100 * fitted.error);
}

double share(double value) {
  return std::clamp(value, 0.01, 1.0);
}

// Text inside quotes of a YAML file.
std::string in_quotes(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\') continue;
    out += c;
  }
  return out;
}

}  // namespace

// Coordinate search with shrinking steps: four numbers, a handful of points, no derivative worth
// it.
FittedCurve fit_curve(const CpuProbe& probe, Dtype dtype) {
  std::vector<GemmPoint> points;
  for (const GemmPoint& point : probe.gemms) {
    if (point.dtype == dtype) points.push_back(point);
  }
  FittedCurve best;
  best.error = 1e30;
  if (points.empty()) return best;
  const double peak = probe.peak_ops(dtype), bandwidth = probe.bandwidth();
  for (const double sharpness : {1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0}) {
    FittedCurve now;
    now.curve = {.floor_s = probe.launch_s, .compute = 0.8, .memory = 0.8, .sharpness = sharpness};
    now.error = error_of(now.curve, points, peak, bandwidth);
    for (double step = 0.3; step > 1e-4; step /= 1.5) {
      for (int turn = 0; turn < 4; ++turn) {
        for (double catalog::GemmCurve::*number :
             {&catalog::GemmCurve::compute, &catalog::GemmCurve::memory,
              &catalog::GemmCurve::floor_s}) {
          for (const double factor : {1 + step, 1 / (1 + step)}) {
            auto tried = now.curve;
            tried.*number *= factor;
            tried.compute = share(tried.compute);
            tried.memory = share(tried.memory);
            tried.floor_s = std::max(tried.floor_s, 1e-8);
            const double error = error_of(tried, points, peak, bandwidth);
            if (error < now.error) now = {tried, error};
          }
        }
      }
    }
    if (now.error < best.error) best = now;
  }
  return best;
}

std::string hardware_text(const CpuProbe& probe, const Machine& machine) {
  const double clock_hz = machine.clock_hz > 0 ? machine.clock_hz : 1e9;
  const double peak = probe.peak_ops(Dtype::kBf16), bandwidth = probe.bandwidth();
  const double launch_us = probe.launch_s * 1e6;
  std::string out = fmt::format(
      "schema: prony.hardware/1\nid: this\nname: \"{}, {} threads, {}\"\nvendor: this machine\n"
      "refs:\n  probe: \"prony probe on this machine, {}\"\n",
      in_quotes(machine.cpu), probe.threads, kernels::isa_name(probe.isa), machine.taken_at);
  const auto number = [](const char* key, double value, const char* unit) {
    return fmt::format("  {}: {{value: {:.6g}, unit: {}, origin: measured, ref: probe}}\n", key,
                       value, unit);
  };
  out += "compute:\n";
  out += number("units", probe.threads, "core");
  out += number("clock", clock_hz / 1e6, "MHz");
  out += number("bf16_per_cycle", peak / clock_hz / probe.threads, "FLOP/cycle dense");
  out += number("bf16", peak / 1e12, "TFLOP/s dense");
  out += number("int8", probe.peak_ops(Dtype::kI8) / 1e12, "TOP/s dense");
  out += "memory:\n";
  out += number("capacity", machine.memory_bytes / 1e9, "GB");
  out += number("bandwidth", bandwidth / 1e9, "GB/s");
  out += "link:\n  topology: none\nefficiency:\n";
  out +=
      fmt::format("  kernel: {{origin: measured, ref: probe, floor_us: {:.4g}, memory: {:.4g}}}\n",
                  launch_us, share(probe.elementwise_bytes_per_s / bandwidth));
  out += curve_line("gemm16", fit_curve(probe, Dtype::kBf16));
  out += curve_line("gemm8", fit_curve(probe, Dtype::kI8));
  const double decode = probe.decode.kv_bytes / probe.decode.seconds / bandwidth;
  const double plateau = probe.prefill.ops / probe.prefill.seconds / peak;
  out += fmt::format(
      "  attention: {{origin: measured, ref: probe, prefill_floor_us: {:.4g}, plateau: {:.4g}, "
      "half_tokens: 0, fill: 0, decode_floor_us: {:.4g}, decode_memory: {:.4g}, "
      "decode_memory_8bit: {:.4g}}}\n",
      launch_us, share(plateau), launch_us, share(decode), share(decode));
  return out;
}

}  // namespace prony::probe
