#include "prony/engine/support.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "prony/core/file.hpp"
#include "prony/core/units.hpp"
#include "prony/kernels/kernels.hpp"

namespace prony::engine {
namespace {

// The first thing about `spec` that the forward pass does not do; empty if it does all.
std::string missing_feature(const catalog::ModelSpec& spec) {
  if (spec.rope.type == catalog::RopeType::kNone) return "attention without rope";
  if (spec.attention_sinks) return "attention sinks";
  if (spec.activation == catalog::Activation::kSwigluClamp) return "clamped swiglu";
  if (spec.moe && spec.moe->expert_bias) return "biases of experts";
  const int32_t value_dim = spec.mla ? spec.mla->kv_lora_rank : spec.head_dim;
  if (value_dim > kernels::kMaxValueDim) {
    return fmt::format("a value width of {} (at most {})", value_dim, kernels::kMaxValueDim);
  }
  return {};
}

// The number after `key` in text of lines "key value ..."; with an empty key the whole text.
std::optional<int64_t> number_after(std::string_view text, std::string_view key) {
  const size_t at = key.empty() ? 0 : text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(at + key.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  int64_t value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error != std::errc{} || end == rest.data()) return std::nullopt;
  return value;
}

std::optional<int64_t> number_in_file(const std::string& path) {
  const Result<std::string> text = core::read_file(path);
  return text.ok() ? number_after(*text, "") : std::nullopt;  // "max" is no number: no limit
}

// What the control group leaves, of version 2 or 1; nullopt without a limit.
std::optional<int64_t> control_group_bytes() {
  constexpr const char* kPaths[][2] = {
      {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes",
       "/sys/fs/cgroup/memory/memory.usage_in_bytes"}};
  for (const auto& [limit_path, used_path] : kPaths) {
    const auto limit = number_in_file(limit_path);
    const auto used = number_in_file(used_path);
    if (limit && used) return std::max<int64_t>(0, *limit - *used);
  }
  return std::nullopt;
}

}  // namespace

Result<void> check_supported(const catalog::ModelSpec& spec) {
  const std::string missing = missing_feature(spec);
  if (!missing.empty()) {
    return invalid_argument(
        fmt::format("model {}: found {}, expected a decoder of the families llama, mistral, "
                    "mixtral, qwen, gemma-2 or deepseek on cpu",
                    spec.id, missing));
  }
  const bool shape_is_sane = spec.layers > 0 && spec.hidden > 0 && spec.heads > 0 &&
                             spec.kv_heads > 0 && spec.head_dim > 0 &&
                             (spec.intermediate > 0 || spec.moe) && spec.vocab > 0 &&
                             spec.max_context > 0;
  if (!shape_is_sane) {
    return invalid_argument(fmt::format(
        "model {}: found a size of zero or less, expected positive layers, hidden, heads, "
        "kv_heads, head_dim, intermediate, vocab and max_context",
        spec.id));
  }
  if (spec.heads % spec.kv_heads != 0) {
    return invalid_argument(
        fmt::format("model {}: found {} heads, expected a multiple of {} kv_heads", spec.id,
                    spec.heads, spec.kv_heads));
  }
  const int32_t rotated = spec.mla ? spec.mla->qk_rope_head_dim : spec.head_dim;
  if (rotated % 2 != 0) {
    return invalid_argument(
        fmt::format("model {}: found head_dim {}, expected an even number", spec.id, rotated));
  }
  if (spec.moe && (spec.moe->groups < 1 || spec.moe->experts % spec.moe->groups != 0 ||
                   spec.moe->experts_per_token >
                       spec.moe->experts / spec.moe->groups * spec.moe->groups_per_token)) {
    return invalid_argument(fmt::format(
        "model {}: found {} experts a token, expected no more than {} of {} equal groups of "
        "{} experts hold",
        spec.id, spec.moe->experts_per_token, spec.moe->groups_per_token, spec.moe->groups,
        spec.moe->experts));
  }
  return {};
}

Result<int64_t> available_memory_bytes() {
  const Result<std::string> text = core::read_file("/proc/meminfo");
  const auto kib = text.ok() ? number_after(*text, "MemAvailable:") : std::nullopt;
  const auto group = control_group_bytes();
  if (kib && group) return std::min(*kib * 1024, *group);
  if (kib) return *kib * 1024;
  if (group) return *group;
  return environment_error("cannot read the available memory from /proc/meminfo");
}

Result<void> check_memory(const MemoryNeed& need, int64_t available_bytes,
                          const std::string& model_id) {
  if (need.total_bytes() <= available_bytes) return {};
  const auto gb = [](int64_t bytes) { return static_cast<double>(bytes) / core::kGB; };
  return environment_error(fmt::format(
      "model {} needs {:.2f} GB of memory (weights {:.2f}, KV cache {:.2f}, workspace {:.2f}), "
      "available are {:.2f} GB",
      model_id, gb(need.total_bytes()), gb(need.weights_bytes), gb(need.kv_bytes),
      gb(need.workspace_bytes), gb(available_bytes)));
}

}  // namespace prony::engine
