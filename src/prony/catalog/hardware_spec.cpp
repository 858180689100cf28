#include "prony/catalog/hardware_spec.hpp"

#include "prony/core/check.hpp"

namespace prony::catalog {
namespace {

void scale_peaks(HardwareSpec& spec, double factor) {
  spec.peak_bf16 *= factor;
  spec.peak_fp8 *= factor;
  spec.peak_int8 *= factor;
  spec.peak_int4 *= factor;
  spec.peak_fp4 *= factor;
}

}  // namespace

HardwareSpec sliced(const HardwareSpec& whole, const Slice& slice) {
  HardwareSpec part = whole;
  part.id = whole.id + ":" + slice.name;
  part.name = whole.name + " " + slice.name;
  part.units *= slice.compute;
  scale_peaks(part, slice.compute);
  part.memory_bytes *= slice.memory;
  part.memory_bandwidth *= slice.memory;  // a slice owns its share of the memory channels
  part.l2_bytes *= slice.memory;
  part.topology = LinkTopology::kNone;  // no peer access between slices
  part.link_bandwidth = 0;
  part.link_devices = 1;
  part.tdp_w *= slice.compute;
  part.idle_w *= slice.compute;
  part.slices.clear();
  return part;
}

HardwareSpec at_clock(const HardwareSpec& spec, double clock_hz) {
  PRONY_CHECK(clock_hz > 0 && spec.clock_hz > 0, "clock must be positive");
  HardwareSpec other = spec;
  scale_peaks(other, clock_hz / spec.clock_hz);
  other.clock_hz = clock_hz;
  return other;
}

}  // namespace prony::catalog
