// libFuzzer target of both model readers: config.json (first byte even) and catalogue files (odd).
// An accepted spec must keep the promises of check_model on which later arithmetic relies.
// Run: ./run fuzz, which starts from tests/data/catalog/hf and tests/data/catalog/broken.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "prony/catalog/hf_config.hpp"
#include "prony/catalog/model_file.hpp"
#include "prony/core/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto spec = data[0] % 2 == 0 ? prony::catalog::parse_hf_config(text.substr(1), "f.json")
                                     : prony::catalog::parse_model_file(text.substr(1), "f.yaml");
  if (spec.ok()) {
    PRONY_CHECK(spec->layers > 0 && spec->hidden > 0 && spec->head_dim > 0 && spec->vocab > 0);
    PRONY_CHECK(spec->kv_heads > 0 && spec->heads % spec->kv_heads == 0);
    for (int32_t layer = 0; layer < spec->layers; ++layer) {
      const auto window = prony::catalog::attention_window(*spec, layer);
      PRONY_CHECK(!window || *window > 0);
    }
    for (const int32_t id : spec->eos_ids) PRONY_CHECK(id >= 0 && id < spec->vocab);
  } else {
    PRONY_CHECK(spec.error().message.starts_with("f."));
  }
  return 0;
}
