#include "prony/catalog/engine_profile.hpp"

#include <fmt/format.h>

#include "prony/catalog/entry_files.hpp"
#include "prony/catalog/yaml_map.hpp"

namespace prony::catalog {
namespace {

constexpr Unit kTimes[] = {{"us", 1e-6}, {"ms", 1e-3}};
constexpr Unit kRatios[] = {{"ratio", 1}};
constexpr Unit kSizes[] = {{"GiB", 1024.0 * 1024 * 1024}, {"MiB", 1024.0 * 1024}, {"GB", 1e9}};
constexpr Unit kCounts[] = {{"sequences", 1}, {"tokens", 1}};

void read_time(YamlMap map, const YamlMap& refs, EngineProfile& profile) {
  constexpr std::string_view kKinds[] = {"library", "custom"};
  const auto time = [&](std::string_view key) {
    return map.quantity(key, kTimes, 0, 1e6, refs).value;
  };
  const auto ratio = [&](std::string_view key) {
    return map.quantity(key, kRatios, 0.1, 10, refs).value;
  };
  profile.step_s = time("step");
  profile.sequence_s = time("sequence");
  profile.layer_s = time("layer");
  profile.eager_kernel_s = time("eager_kernel");
  profile.request_s = time("request");
  profile.gemm16 = ratio("gemm16");
  profile.gemm8 = ratio("gemm8");
  profile.gemm8_memory = ratio("gemm8_memory");
  if (map.has("few_heads")) {
    profile.few_heads = map.quantity("few_heads", kRatios, 0, 1, refs).value;
  }
  profile.overlap = map.quantity("overlap", kRatios, 0, 1, refs).value;
  profile.all_reduce = static_cast<AllReduceKind>(map.word("all_reduce", kKinds));
  profile.graph_batch_max =
      static_cast<int32_t>(map.quantity("graph_batch_max", kCounts, 0, 1e6, refs).value);
  profile.graph_prompts = map.flag("graph_prompts", false);
  map.done();
}

void read_scheduler(YamlMap map, const YamlMap& refs, EngineProfile& profile) {
  constexpr std::string_view kReservations[] = {"prompt", "whole"};
  const auto count = [&](std::string_view key) {
    return static_cast<int32_t>(map.quantity(key, kCounts, 1, 1e7, refs).value);
  };
  profile.max_sequences = count("max_sequences");
  profile.max_step_tokens = count("max_step_tokens");
  profile.block_tokens = count("block_tokens");
  profile.mixed_steps = map.flag("mixed_steps", true);
  profile.kv_follows_weights = map.flag("kv_follows_weights", false);
  profile.reservation = static_cast<Reservation>(map.word("reservation", kReservations));
  map.done();
}

void read_memory(YamlMap map, const YamlMap& refs, EngineProfile& profile) {
  const auto size = [&](std::string_view key) {
    return map.quantity(key, kSizes, 0, 1e12, refs).value;
  };
  profile.memory_share = map.quantity("share", kRatios, 0.01, 1, refs).value;
  constexpr std::string_view kShares[] = {"device", "free"};
  profile.share_of_free = map.word("share_of", kShares) == 1;
  profile.context_bytes = size("context");
  profile.graph_bytes = size("graphs");
  profile.communicator_bytes = size("communicator");
  profile.activation_factor = map.quantity("activation_factor", kRatios, 0, 100, refs).value;
  map.done();
}

}  // namespace

Result<EngineProfile> parse_engine_file(std::string_view text, std::string_view name) {
  constexpr std::string_view kSchemas[] = {"prony.engine/1"};
  const auto document = parse_yaml(text, name);
  if (!document) return document.error();
  YamlErrors errors(name);
  YamlMap top(*document, "", errors);
  EngineProfile profile;
  top.word("schema", kSchemas);
  profile.id = top.text("id");
  profile.name = top.text("name");
  profile.version = top.text("version");
  const YamlMap refs = top.refs("refs");
  read_time(top.map("time"), refs, profile);
  read_scheduler(top.map("scheduler"), refs, profile);
  read_memory(top.map("memory"), refs, profile);
  top.done();
  if (!errors.empty()) return errors.first();
  return profile;
}

Result<std::vector<std::string>> engine_ids() {
  return entry_ids("engines");
}

Result<EngineProfile> resolve_engine(std::string_view name) {
  if (name.ends_with(".yaml")) {
    auto text = entry_text(std::string(name));
    if (!text) return text.error();
    return parse_engine_file(*text, name);
  }
  auto file = entry_file("engines", name);
  if (!file) return file.error();
  auto profile = parse_engine_file(file->text, file->path);
  if (profile && profile->id != name) {
    return invalid_argument(
        fmt::format("{}: id is '{}', expected the file's name", file->path, profile->id));
  }
  return profile;
}

}  // namespace prony::catalog
