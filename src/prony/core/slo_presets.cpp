#include "prony/core/slo_presets.hpp"

#include <array>

namespace prony::core {
namespace {

constexpr std::array kMlperf = {SloPreset{"llama3.1-8b-server", 2000, 100},
                                SloPreset{"llama3.1-8b-interactive", 500, 30},
                                SloPreset{"llama2-70b-server", 2000, 200},
                                SloPreset{"llama2-70b-interactive", 450, 40},
                                SloPreset{"llama3.1-405b-server", 6000, 175},
                                SloPreset{"llama3.1-405b-interactive", 4500, 80},
                                SloPreset{"mixtral-8x7b-server", 2000, 200},
                                SloPreset{"deepseek-r1-server", 2000, 80},
                                SloPreset{"deepseek-r1-interactive", 1500, 15},
                                SloPreset{"gpt-oss-120b-server", 3000, 80},
                                SloPreset{"gpt-oss-120b-interactive", 2000, 20}};

}  // namespace

std::span<const SloPreset> mlperf_slo_presets() {
  return kMlperf;
}

const SloPreset* find_mlperf_slo(std::string_view name) {
  for (const auto& preset : kMlperf) {
    if (name == preset.name) return &preset;
  }
  return nullptr;
}

}  // namespace prony::core
