#include "prony/catalog/presets.hpp"

#include "prony/catalog/catalog.hpp"

namespace prony::catalog {
namespace {

// Ids of the byte tokenizer: 256 bytes, then these, then markers of its chat template.
constexpr int32_t kByteBos = 256;
constexpr int32_t kByteEos = 257;
// 258 ids and the markers, rounded up to whole rows of every kernel's tile.
constexpr int32_t kByteVocab = 320;

struct Preset {
  const char* name;
  int32_t layers, hidden, heads, kv_heads, head_dim, intermediate, max_context;
};

// Parameters, with tied embeddings, two norms a layer and a final one:
//   test  94,528: 2 layers x (64*64*2 + 64*32*2 + 3*64*128 + 2*64) + 320*64 + 64
//   demo  9,565,056: 6 layers x (384*384*2 + 384*128*2 + 3*384*1024 + 2*384) + 320*384 + 384;
//         bf16 decode reads 19 MB a token: a few ms on one core at 5-10 GB/s
//   small 119,999,232: 12 layers x (768*768*2 + 768*256*2 + 3*768*3648 + 2*768) + 320*768 + 768
constexpr Preset kPresets[] = {
    {"demo", 6, 384, 6, 2, 64, 1024, 4096},
    {"small", 12, 768, 12, 4, 64, 3648, 8192},
    {"test", 2, 64, 4, 2, 16, 128, 2048},
};

}  // namespace

std::optional<ModelSpec> find_preset(std::string_view name) {
  for (const Preset& preset : kPresets) {
    if (name != preset.name) continue;
    ModelSpec spec;
    spec.id = std::string(kDummyPrefix) + preset.name;
    spec.architecture = "LlamaForCausalLM";
    spec.ref = "built-in preset: an invented shape";
    spec.layers = preset.layers;
    spec.hidden = preset.hidden;
    spec.heads = preset.heads;
    spec.kv_heads = preset.kv_heads;
    spec.head_dim = preset.head_dim;
    spec.intermediate = preset.intermediate;
    spec.vocab = kByteVocab;
    spec.max_context = preset.max_context;
    spec.tied_embeddings = true;
    spec.bos_id = kByteBos;
    spec.eos_ids = {kByteEos};
    return spec;
  }
  return std::nullopt;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

}  // namespace prony::catalog
