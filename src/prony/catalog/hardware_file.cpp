#include "prony/catalog/hardware_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prony/catalog/catalog.hpp"
#include "prony/catalog/entry_files.hpp"
#include "prony/catalog/yaml_map.hpp"
#include "prony/core/file.hpp"
#include "prony/core/system.hpp"

namespace prony::catalog {
namespace {

constexpr double kTera = 1e12, kGiga = 1e9, kGibi = 1024.0 * 1024 * 1024;
constexpr Unit kRates[] = {
    {"TFLOP/s dense", kTera}, {"PFLOP/s dense", 1e15}, {"TOP/s dense", kTera}};
constexpr Unit kBandwidths[] = {{"GB/s", kGiga}, {"TB/s", kTera}};
constexpr Unit kLinks[] = {{"GB/s one-way", kGiga}, {"GB/s both ways", kGiga / 2}};
constexpr Unit kCapacities[] = {{"GB", kGiga}, {"GiB", kGibi}};
constexpr Unit kCaches[] = {{"MB", 1e6}, {"MiB", 1024.0 * 1024}};
constexpr Unit kWatts[] = {{"W", 1}};
constexpr Unit kClocks[] = {{"MHz", 1e6}, {"GHz", kGiga}};
constexpr Unit kFlopsPerCycle[] = {{"FLOP/cycle dense", 1}};
constexpr Unit kUnits[] = {{"SM", 1}, {"CU", 1}, {"core", 1}};
constexpr Unit kDevices[] = {{"devices", 1}};
constexpr double kMicro = 1e-6;

struct Reader {
  const YamlValue& document;
  const YamlMap& refs;
  YamlErrors& errors;

  double need(YamlMap& map, std::string_view key, std::span<const Unit> units, double max) const {
    return map.quantity(key, units, 0, max, refs).value;
  }
  double maybe(YamlMap& map, std::string_view key, std::span<const Unit> units, double max) const {
    return map.has(key) ? need(map, key, units, max) : 0;
  }
  // Of a curve: its numbers have their units in their names, one origin and reference for all.
  void curve_head(YamlMap& map) const {
    constexpr std::string_view kOrigins[] = {"datasheet", "measured", "assumed"};
    map.word("origin", kOrigins);
    map.ref(refs);
  }
};

GemmCurve read_gemm(YamlMap map, const Reader& reader) {
  GemmCurve curve;
  reader.curve_head(map);
  curve.floor_s = kMicro * map.number("floor_us", 0, 1e6);
  curve.compute = map.number("compute", 0.01, 1);
  curve.memory = map.number("memory", 0.01, 1);
  curve.sharpness = map.number("sharpness", 1, 100);
  curve.fill = map.number("fill", 0, 2);
  curve.wave = map.number("wave", 0, 3);
  if (map.has("tile_rows")) curve.tile_rows = map.number("tile_rows", 1, 1024);
  map.done();
  return curve;
}

void read_attention(YamlMap map, const Reader& reader, AttentionCurve& curve) {
  reader.curve_head(map);
  curve.prefill_floor_s = kMicro * map.number("prefill_floor_us", 0, 1e6);
  curve.plateau = map.number("plateau", 0.01, 1);
  curve.half_tokens = map.number("half_tokens", 0, 1e5);
  curve.fill = map.number("fill", 0, 2);
  curve.decode_floor_s = kMicro * map.number("decode_floor_us", 0, 1e6);
  curve.decode_memory = map.number("decode_memory", 0.01, 1);
  curve.decode_memory_8bit = map.number("decode_memory_8bit", 0.01, 1);
  map.done();
}

void read_link_curve(YamlMap map, const Reader& reader, LinkCurve& curve) {
  reader.curve_head(map);
  curve.library_base_s = kMicro * map.number("library_base_us", 0, 1e6);
  curve.library_hop_s = kMicro * map.number("library_hop_us", 0, 1e6);
  curve.custom_s = kMicro * map.number("custom_us", 0, 1e6);
  curve.custom_hop_s = kMicro * map.number("custom_hop_us", 0, 1e6);
  curve.bandwidth = map.number("bandwidth", 0.01, 1);
  curve.custom_bandwidth = map.number("custom_bandwidth", 0.01, 1);
  curve.in_switch = map.maybe_number("in_switch", 1, 2).value_or(0);
  map.done();
}

void read_compute(YamlMap map, const Reader& reader, HardwareSpec& spec) {
  spec.units = reader.need(map, "units", kUnits, 1e6);
  spec.clock_hz = reader.need(map, "clock", kClocks, 1e11);
  spec.bf16_flop_per_cycle = reader.need(map, "bf16_per_cycle", kFlopsPerCycle, 1e6);
  spec.peak_bf16 = reader.need(map, "bf16", kRates, 1e18);
  // Consumer cards halve the rate with FP32 sums; their integer rates belong to the full one.
  const double full = std::max(spec.peak_bf16, reader.maybe(map, "fp16_fp16_sums", kRates, 1e18));
  spec.peak_fp8 = reader.maybe(map, "fp8", kRates, 1e18);
  // What was measured is no vendor's sparse figure: VNNI makes int8 four times as fast as fp32.
  const Quantity int8 =
      map.has("int8") ? map.quantity("int8", kRates, 0, 1e18, reader.refs) : Quantity();
  spec.peak_int8 = int8.value;
  spec.peak_int4 = reader.maybe(map, "int4", kRates, 1e18);
  spec.peak_fp4 = reader.maybe(map, "fp4", kRates, 1e18);
  const int line = map.line();
  map.done();
  // Vendors print rates "with sparsity" that are twice what dense products can do. The clock, the
  // units and what one unit does in a cycle give the dense figure again.
  const double derived = spec.units * spec.clock_hz * spec.bf16_flop_per_cycle;
  if (spec.peak_bf16 <= 0 || std::abs(spec.peak_bf16 / derived - 1) > 0.15) {
    reader.errors.add(line, fmt::format("compute.bf16 is {:.4g} TFLOP/s, expected within 15 % of "
                                        "units x clock x bf16_per_cycle = {:.4g} (is it a sparse "
                                        "figure?)",
                                        spec.peak_bf16 / kTera, derived / kTera));
  }
  const auto at_most = [&](std::string_view key, double peak, double factor) {
    if (peak > factor * 1.05 * full) {
      reader.errors.add(line,
                        fmt::format("compute.{} is {:.4g} T/s, expected at most {} x 16 bits = "
                                    "{:.4g} (is it a sparse figure?)",
                                    key, peak / kTera, factor, factor * full / kTera));
    }
  };
  at_most("fp8", spec.peak_fp8, 2);
  if (int8.origin != Origin::kMeasured) at_most("int8", spec.peak_int8, 2);
  at_most("int4", spec.peak_int4, 4);
  at_most("fp4", spec.peak_fp4, 4);
}

void read_link(YamlMap map, const Reader& reader, HardwareSpec& spec) {
  constexpr std::string_view kTopologies[] = {"none", "switch", "mesh", "bridge", "torus"};
  spec.topology = static_cast<LinkTopology>(map.word("topology", kTopologies));
  if (spec.topology != LinkTopology::kNone) {
    spec.link_bandwidth = reader.need(map, "bandwidth", kLinks, 1e13);
    spec.link_devices = static_cast<int32_t>(reader.need(map, "domain", kDevices, 65536));
  }
  spec.host_bandwidth = reader.maybe(map, "host", kLinks, 1e13);
  spec.network_bandwidth = reader.maybe(map, "network", kLinks, 1e13);
  map.done();
}

void read_slices(YamlMap map, const Reader& reader, HardwareSpec& spec) {
  map.ref(reader.refs);
  const YamlEntry* entry = reader.document.find("slices");
  for (const YamlEntry& each : entry->value.entries) {
    if (each.key == "ref") continue;
    auto slice = map.maybe_map(each.key);
    if (!slice) continue;
    Slice read{.name = each.key};
    read.compute = slice->number("compute", 0.01, 1);
    read.memory = slice->number("memory", 0.01, 1);
    slice->done();
    spec.slices.push_back(std::move(read));
  }
  map.done();
}

Result<HardwareSpec> this_hardware() {
  const std::string path = this_hardware_path();
  auto text = core::read_file(path);
  if (!text) {
    return invalid_argument(
        fmt::format("hardware 'this': found no {}, expected what `prony probe` writes", path));
  }
  return parse_hardware_file(*text, path);
}

}  // namespace

Result<HardwareSpec> parse_hardware_file(std::string_view text, std::string_view name) {
  constexpr std::string_view kSchemas[] = {"prony.hardware/1"};
  const auto document = parse_yaml(text, name);
  if (!document) return document.error();
  YamlErrors errors(name);
  YamlMap top(*document, "", errors);
  HardwareSpec spec;
  top.word("schema", kSchemas);
  spec.id = top.text("id");
  spec.name = top.text("name");
  spec.vendor = top.text("vendor");
  const YamlMap refs = top.refs("refs");
  const Reader reader{*document, refs, errors};
  read_compute(top.map("compute"), reader, spec);
  {
    YamlMap map = top.map("memory");
    spec.memory_bytes = reader.need(map, "capacity", kCapacities, 1e14);
    spec.memory_bandwidth = reader.need(map, "bandwidth", kBandwidths, 1e14);
    spec.l2_bytes = reader.maybe(map, "l2", kCaches, 1e12);
    map.done();
  }
  read_link(top.map("link"), reader, spec);
  if (auto map = top.maybe_map("power")) {
    spec.tdp_w = reader.need(*map, "tdp", kWatts, 1e5);
    spec.idle_w = reader.maybe(*map, "idle", kWatts, 1e5);
    map->done();
  }
  {
    YamlMap map = top.map("efficiency");
    YamlMap kernel = map.map("kernel");
    reader.curve_head(kernel);
    spec.kernel_s = kMicro * kernel.number("floor_us", 0, 1e6);
    spec.vector_memory = kernel.number("memory", 0.01, 1);
    kernel.done();
    spec.gemm16 = read_gemm(map.map("gemm16"), reader);
    spec.gemm8 = map.has("gemm8") ? read_gemm(map.map("gemm8"), reader) : spec.gemm16;
    spec.gemm8_block =
        map.has("gemm8_block") ? read_gemm(map.map("gemm8_block"), reader) : spec.gemm8;
    spec.gemm4 = map.has("gemm4") ? read_gemm(map.map("gemm4"), reader) : spec.gemm8;
    read_attention(map.map("attention"), reader, spec.attention);
    if (auto link = map.maybe_map("link")) read_link_curve(*link, reader, spec.link);
    map.done();
  }
  if (auto map = top.maybe_map("slices")) read_slices(*map, reader, spec);
  top.done();
  if (errors.empty() && (spec.memory_bytes <= 0 || spec.memory_bandwidth <= 0)) {
    errors.add(document->find("memory")->line, "memory is empty, expected more than 0");
  }
  if (!errors.empty()) return errors.first();
  return spec;
}

Result<std::vector<std::string>> hardware_ids() {
  return entry_ids("hardware");
}

std::string this_hardware_path() {
  const auto base = core::environment_variable("XDG_DATA_HOME");
  if (base && !base->empty()) return *base + "/prony/hardware-this.yaml";
  const auto home = core::environment_variable("HOME");
  return (home && !home->empty() ? *home : std::string("/root")) +
         "/.local/share/prony/hardware-this.yaml";
}

Result<HardwareSpec> resolve_hardware(std::string_view name) {
  if (name.ends_with(".yaml")) {
    auto text = entry_text(std::string(name));
    if (!text) return text.error();
    return parse_hardware_file(*text, name);
  }
  if (name == kThisHardware) return this_hardware();
  const size_t colon = name.find(':');
  const std::string_view id = name.substr(0, colon);
  auto file = entry_file("hardware", id);
  if (!file) return file.error();
  auto spec = parse_hardware_file(file->text, file->path);
  if (!spec) return spec;
  if (spec->id != id) {
    return invalid_argument(
        fmt::format("{}: id is '{}', expected the file's name", file->path, spec->id));
  }
  if (colon == std::string_view::npos) return spec;
  const std::string_view wanted = name.substr(colon + 1);
  std::vector<std::string> names;
  for (const Slice& slice : spec->slices) {
    if (slice.name == wanted) return sliced(*spec, slice);
    names.push_back(slice.name);
  }
  return invalid_argument(
      fmt::format("unknown slice '{}' of {}, expected one of: {}", wanted, id,
                  names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

}  // namespace prony::catalog
