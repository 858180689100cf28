// A deployment made of round numbers, for tests that compute by hand: 1 TFLOP/s, 1 TB/s, no floors,
// no overheads, efficiencies of one. Only for tests.
// Thread safety: pure functions.
#pragma once
#include "prony/perfmodel/deployment.hpp"

namespace prony::perfmodel {

inline catalog::ModelSpec small_model() {
  catalog::ModelSpec model;
  model.id = "small";
  model.layers = 4;
  model.hidden = 1024;
  model.heads = 16;
  model.kv_heads = 4;
  model.head_dim = 64;
  model.intermediate = 4096;
  model.vocab = 32000;
  model.max_context = 65536;
  return model;
}

inline catalog::ModelSpec small_mixture() {
  catalog::ModelSpec model = small_model();
  model.moe = catalog::Moe{.experts = 8, .experts_per_token = 2, .intermediate = 2048};
  return model;
}

inline catalog::HardwareSpec ideal_hardware() {
  catalog::HardwareSpec hardware;
  hardware.id = "ideal";
  hardware.units = 100;
  hardware.clock_hz = 1e9;
  hardware.peak_bf16 = 1e12;
  hardware.peak_fp8 = hardware.peak_int8 = 2e12;
  hardware.memory_bytes = 16e9;
  hardware.memory_bandwidth = 1e12;
  hardware.topology = catalog::LinkTopology::kSwitch;
  hardware.link_bandwidth = 100e9;
  hardware.link_devices = 8;
  hardware.host_bandwidth = 32e9;
  hardware.network_bandwidth = 10e9;
  hardware.vector_memory = 1;
  const catalog::GemmCurve perfect{.sharpness = 100, .fill = 0, .wave = 0};
  hardware.gemm16 = hardware.gemm8 = hardware.gemm8_block = hardware.gemm4 = perfect;
  hardware.attention = {
      .plateau = 1, .half_tokens = 0, .fill = 0, .decode_memory = 1, .decode_memory_8bit = 1};
  hardware.link = {.bandwidth = 1, .custom_bandwidth = 1};
  return hardware;
}

inline catalog::EngineProfile ideal_engine() {
  catalog::EngineProfile engine;
  engine.id = "ideal";
  engine.max_sequences = 256;
  engine.max_step_tokens = 8192;
  engine.graph_batch_max = 512;
  engine.memory_share = 1;
  engine.activation_factor = 0;
  return engine;
}

inline Deployment ideal_deployment() {
  Deployment deployment;
  deployment.model = small_model();
  deployment.hardware = ideal_hardware();
  deployment.engine = ideal_engine();
  return deployment;
}

}  // namespace prony::perfmodel
