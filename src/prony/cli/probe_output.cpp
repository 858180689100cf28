#include "prony/cli/probe_output.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace prony::cli {
namespace {

using kernels::Dtype;

const char* name_of(Dtype dtype) {
  return dtype == Dtype::kF32 ? "fp32" : dtype == Dtype::kBf16 ? "bf16" : "int8";
}

core::Json attention_json(const probe::AttentionPoint& point) {
  return {{"sequences", point.sequences},
          {"tokens", point.tokens},
          {"context", point.context},
          {"seconds", point.seconds},
          {"ops_per_s", point.ops / point.seconds},
          {"kv_bytes_per_s", point.kv_bytes / point.seconds}};
}

}  // namespace

core::Json probe_json(const probe::CpuProbe& probe, const probe::Machine& machine,
                      const record::Environment& environment, const std::string& path) {
  core::Json json{{"schema", "prony.probe/1"},
                  {"taken_at", machine.taken_at},
                  {"file", path},
                  {"cpu", machine.cpu},
                  {"kernel", environment.kernel},
                  {"load_average", environment.load_average},
                  {"clock_mhz", machine.clock_hz / 1e6},
                  {"memory_bytes", machine.memory_bytes},
                  {"threads", probe.threads},
                  {"isa", kernels::isa_name(probe.isa)},
                  {"launch_s", probe.launch_s},
                  {"elementwise_bytes_per_s", probe.elementwise_bytes_per_s}};
  json["ceilings"] = {{"read_bytes_per_s", probe.ceilings.read_bytes},
                      {"fp32_ops_per_s", probe.ceilings.fp32_ops},
                      {"bf16_ops_per_s", probe.ceilings.bf16_ops},
                      {"int8_ops_per_s", probe.ceilings.int8_ops}};
  json["memory"] = core::Json::array();
  for (const auto& point : probe.memory) {
    json["memory"].push_back(
        {{"threads", point.threads}, {"read_bytes_per_s", point.read_bytes_per_s}});
  }
  json["products"] = core::Json::array();
  for (const auto& point : probe.gemms) {
    json["products"].push_back({{"dtype", name_of(point.dtype)},
                                {"rows", point.rows},
                                {"outputs", point.outputs},
                                {"inputs", point.inputs},
                                {"seconds", point.seconds},
                                {"ops_per_s", point.ops() / point.seconds},
                                {"weight_bytes_per_s", point.weight_bytes() / point.seconds}});
  }
  json["curves"] = core::Json::object();
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kI8}) {
    const auto fitted = probe::fit_curve(probe, dtype);
    json["curves"][name_of(dtype)] = {{"floor_s", fitted.curve.floor_s},
                                      {"compute", fitted.curve.compute},
                                      {"memory", fitted.curve.memory},
                                      {"sharpness", fitted.curve.sharpness},
                                      {"rms_error", fitted.error}};
  }
  json["attention"] = {{"decode", attention_json(probe.decode)},
                       {"prefill", attention_json(probe.prefill)}};
  json["sustained"] = core::Json::array();
  for (const auto& point : probe.sustained) {
    json["sustained"].push_back(
        {{"t_s", point.t_s}, {"ops_per_s", point.ops_per_s}, {"clock_mhz", point.clock_mhz}});
  }
  return json;
}

std::string probe_table(const probe::CpuProbe& probe, const probe::Machine& machine,
                        const std::string& path) {
  std::string out = fmt::format("{}, {} threads, {}\n\n", machine.cpu, probe.threads,
                                kernels::isa_name(probe.isa));
  const double bandwidth = probe.bandwidth();
  for (const auto& point : probe.memory) {
    out += fmt::format("memory read, {:>2} threads   {:8.1f} GB/s\n", point.threads,
                       point.read_bytes_per_s / 1e9);
  }
  out += fmt::format("launch of the team        {:8.2f} us\n", probe.launch_s * 1e6);
  for (const auto& [name, ops] : {std::pair{"fp32", probe.ceilings.fp32_ops},
                                  {"bf16", probe.ceilings.bf16_ops},
                                  {"int8", probe.ceilings.int8_ops}}) {
    out += fmt::format("arithmetic, {}          {:8.1f} GOP/s\n", name, ops / 1e9);
  }
  out += fmt::format(
      "\nproducts with weights [4096, 4096] from memory\n{:<6}{:>6}{:>12}{:>10}{:>10}"
      "{:>10}{:>10}\n",
      "dtype", "rows", "us", "GOP/s", "of peak", "GB/s", "of read");
  for (const auto& point : probe.gemms) {
    const double ops = point.ops() / point.seconds, bytes = point.weight_bytes() / point.seconds;
    out +=
        fmt::format("{:<6}{:>6}{:>12.1f}{:>10.1f}{:>9.0f}%{:>10.1f}{:>9.0f}%\n",
                    name_of(point.dtype), point.rows, point.seconds * 1e6, ops / 1e9,
                    100 * ops / probe.peak_ops(point.dtype), bytes / 1e9, 100 * bytes / bandwidth);
  }
  out +=
      fmt::format("\nattention, decode {} x {}   {:.1f} GB/s of the KV cache ({:.0f} % of read)\n",
                  probe.decode.sequences, probe.decode.context + 1,
                  probe.decode.kv_bytes / probe.decode.seconds / 1e9,
                  100 * probe.decode.kv_bytes / probe.decode.seconds / bandwidth);
  out += fmt::format("attention, prefill {}      {:.1f} GOP/s ({:.0f} % of fp32)\n",
                     probe.prefill.tokens, probe.prefill.ops / probe.prefill.seconds / 1e9,
                     100 * probe.prefill.ops / probe.prefill.seconds / probe.ceilings.fp32_ops);
  if (!probe.sustained.empty()) {
    const auto& first = probe.sustained.front();
    const auto& last = probe.sustained.back();
    out += fmt::format(
        "sustained, bf16 64 rows    {:.1f} GOP/s in the first second, {:.1f} after "
        "{:.0f} s\n",
        first.ops_per_s / 1e9, last.ops_per_s / 1e9, last.t_s);
  }
  out += fmt::format("\nwrote {}: prony predict --hardware {}\n", path,
                     path.ends_with("hardware-this.yaml") ? "this" : path);
  return out;
}

}  // namespace prony::cli
