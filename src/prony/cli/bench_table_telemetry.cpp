// The lines of the bench table that come from telemetry: server, GPUs, energy.
#include <fmt/format.h>

#include "prony/cli/bench_output.hpp"

namespace prony::cli {
namespace {

using core::Json;

const Json* find_series(const Json& telemetry, std::string_view name) {
  for (const auto& series : telemetry.at("series")) {
    if (series.at("name") == name) return &series;
  }
  return nullptr;
}

// "busy 75 %", or nothing where the value is unknown.
void percent(std::string& text, const char* what, const Json& value) {
  if (value.is_number()) text += fmt::format(", {} {:.1f} %", what, 100 * value.get<double>());
}

std::string server_line(const Json& telemetry) {
  const auto& server = telemetry.at("server");
  auto text = fmt::format("/metrics with the names of {}, {} scrapes",
                          server.at("names").get<std::string>(), server.at("scrapes").dump());
  for (const auto& [name, what] :
       {std::pair{"server.running", "running"}, {"server.waiting", "waiting"}}) {
    if (const auto* series = find_series(telemetry, name)) {
      text += fmt::format(", {} mean {:.1f} most {:g}", what, series->at("mean").get<double>(),
                          series->at("max").get<double>());
    }
  }
  if (const auto* usage = find_series(telemetry, "server.kv_usage")) {
    percent(text, "KV cache at most", usage->at("max"));
  }
  if (server.contains("prefix_cache")) {
    percent(text, "prefix hits", server.at("prefix_cache").at("hit_fraction"));
  }
  return text;
}

std::string gpu_line(const Json& gpu) {
  auto text = gpu.at("name").get<std::string>();
  percent(text, "busy time", gpu.at("busy_time_mean"));
  percent(text, "DRAM bandwidth", gpu.at("dram_bandwidth_mean"));
  percent(text, "tensor cores", gpu.at("tensor_active_mean"));
  if (const auto& power = gpu.at("power_mean_w"); power.is_number()) {
    text += fmt::format(", {:.0f} W", power.get<double>());
  }
  if (const auto& used = gpu.at("memory_used_max_bytes"); used.is_number()) {
    text += fmt::format(", {:.1f} GB used at most", used.get<double>() / 1e9);
  }
  for (const auto& [reason, fraction] : gpu.at("throttled_fraction").items()) {
    percent(text, ("held down by " + reason).c_str(), fraction);
  }
  return text;
}

std::string energy_line(const Json& energy) {
  std::string text;
  for (const auto& [key, what] : {std::pair{"gpu_j", "GPU"}, {"cpu_j", "CPU"}}) {
    if (!energy.at(key).is_number()) continue;
    if (!text.empty()) text += "; ";
    text += fmt::format("{} {:.0f} J", what, energy.at(key).get<double>());
    const auto& per_token = energy.at(std::string(key) + "_per_output_token");
    if (per_token.is_number()) {
      text += fmt::format(", {:.4g} J per output token", per_token.get<double>());
    }
    if (key != std::string_view("gpu_j")) continue;
    percent(text, "of it at rest", energy.at("gpu_idle_share"));
  }
  return text;
}

}  // namespace

std::string telemetry_lines(const core::Json& telemetry) {
  if (telemetry.is_null()) return "";
  std::string out;
  const auto line = [&](const std::string& name, const std::string& text) {
    if (!text.empty()) out += fmt::format("{:<12} {}\n", name, text);
  };
  if (telemetry.contains("server")) line("server", server_line(telemetry));
  if (telemetry.contains("gpu")) {
    const char* whose = telemetry.at("endpoint_is_local").get<bool>() ? "" : " here";
    for (const auto& gpu : telemetry.at("gpu")) {
      const auto slice = gpu.at("slice").is_null() ? "" : "/mig" + gpu.at("slice").dump();
      line(fmt::format("gpu{}{}{}", gpu.at("index").dump(), slice, whose), gpu_line(gpu));
    }
  }
  if (telemetry.contains("energy")) line("energy", energy_line(telemetry.at("energy")));
  return out;
}

}  // namespace prony::cli
