// HardwareSpec: one accelerator (or host) as data: dense peaks, memory, links, power, and the
// efficiency curves that turn peaks into what kernels reach. All numbers come from data/hardware,
// where each has a unit, an origin and a reference.
// FLOP/s are dense, bandwidths one-way, memory in bytes.
// Thread safety: values and pure functions.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace prony::catalog {

/// How the devices of one node reach each other.
enum class LinkTopology { kNone, kSwitch, kMesh, kBridge, kTorus };

/// Time of a GEMM: floor + ((flops / (peak compute q))^p + (bytes / (bandwidth memory))^p)^(1/p),
/// q the share of units that have a tile: tiles/units below one wave (to the power `fill`, because
/// split-K recovers part of it), waves/ceil(waves) (to the power `wave`) above.
struct GemmCurve {
  double floor_s = 0;
  double compute = 1;    // fraction of the dense peak that large products reach
  double memory = 1;     // fraction of the bandwidth that reading weights reaches
  double sharpness = 2;  // p: 1 adds both times, infinity takes the larger
  double fill = 0.5;
  double wave = 0;
  double tile_rows = 64;  // products of fewer rows cost as much arithmetic; 1: none is wasted
  bool operator==(const GemmCurve&) const = default;
};

/// Prefill: floor + flops / (peak plateau s/(s + half_tokens)), less while blocks do not fill the
/// device. Decode: floor + bytes/(bandwidth decode_memory) + flops/peak.
struct AttentionCurve {
  double prefill_floor_s = 0;
  double plateau = 0.65;
  double half_tokens = 1500;
  double fill = 0.6;
  double decode_floor_s = 0;
  double decode_memory = 0.9;       // KV cache of 16 bits
  double decode_memory_8bit = 0.8;  // of 8 bits: conversion costs part of the gain
  bool operator==(const AttentionCurve&) const = default;
};

/// Collectives: latency of the small ones and the fraction of the one-way link that large ones
/// reach.
struct LinkCurve {
  double library_hop_s = 0;  // NCCL: added per rank
  double library_base_s = 0;
  double custom_s = 0;  // one-shot kernels of the engines
  double custom_hop_s = 0;
  double bandwidth = 0.8;         // of the one-way link, library
  double custom_bandwidth = 0.6;  // of the one-way link, engine kernels
  double in_switch = 0;           // gain of reduction in the switch over a ring; 0: none
  bool operator==(const LinkCurve&) const = default;
};

/// A hardware partition (MIG profile): shares of the whole.
struct Slice {
  std::string name;  // "1g.10gb"
  double compute = 1;
  double memory = 1;
  bool operator==(const Slice&) const = default;
};

struct HardwareSpec {
  std::string id, name, vendor;
  double units = 0;                // SMs, CUs, cores
  double clock_hz = 0;             // at which the peaks hold
  double bf16_flop_per_cycle = 0;  // dense, per unit
  // Dense peaks [FLOP/s or OP/s]; 0: the device has no such path.
  double peak_bf16 = 0, peak_fp8 = 0, peak_int8 = 0, peak_int4 = 0, peak_fp4 = 0;
  double memory_bytes = 0;
  double memory_bandwidth = 0;
  double l2_bytes = 0;  // 0: not published
  LinkTopology topology = LinkTopology::kNone;
  double link_bandwidth = 0;     // scale-up, per device, one way; 0: none
  int32_t link_devices = 1;      // that one scale-up domain joins
  double host_bandwidth = 0;     // PCIe or chip-to-chip, one way
  double network_bandwidth = 0;  // per device, one way, between nodes
  double tdp_w = 0, idle_w = 0;  // 0: not published
  double kernel_s = 0;           // least time of any kernel inside a CUDA graph
  double vector_memory = 0.8;    // fraction of the bandwidth that elementwise kernels reach
  GemmCurve gemm16, gemm8, gemm8_block, gemm4;
  AttentionCurve attention;
  LinkCurve link;
  std::vector<Slice> slices;
  bool operator==(const HardwareSpec&) const = default;
};

/// The slice as a device of its own: its share of units, peaks, bandwidth and memory, no links.
HardwareSpec sliced(const HardwareSpec& whole, const Slice& slice);

/// The device held at another clock: peaks scale, memory and links do not. Requires clock_hz > 0.
HardwareSpec at_clock(const HardwareSpec& spec, double clock_hz);

}  // namespace prony::catalog
