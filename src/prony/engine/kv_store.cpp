#include "prony/engine/kv_store.hpp"

namespace prony::engine {
namespace {

kernels::KvLayout layout_of(const catalog::ModelSpec& spec, kernels::Dtype dtype) {
  kernels::KvLayout layout;
  layout.dtype = dtype;
  if (spec.mla) {  // one latent and one rotary key a token, which all heads share
    layout.kv_heads = 1;
    layout.head_dim = spec.mla->kv_lora_rank + spec.mla->qk_rope_head_dim;
    layout.value_dim = spec.mla->kv_lora_rank;
  } else {
    layout.kv_heads = spec.kv_heads;
    layout.head_dim = layout.value_dim = spec.head_dim;
  }
  layout.value_stride = kernels::round_up(layout.value_dim, kernels::kLanes);
  return layout;
}

int64_t layer_bytes(const kernels::KvLayout& layout) {
  return (layout.key_elements() + layout.value_elements()) * kernels::dtype_bytes(layout.dtype);
}

}  // namespace

int64_t KvStore::page_bytes(const catalog::ModelSpec& spec, kernels::Dtype dtype) {
  return spec.layers * layer_bytes(layout_of(spec, dtype));
}

Result<KvStore> KvStore::create(const catalog::ModelSpec& spec, kernels::Dtype dtype,
                                int32_t page_count, bool touch) {
  KvStore store;
  store.first_layer_ = layout_of(spec, dtype);
  store.first_layer_.page_bytes = page_bytes(spec, dtype);
  store.layer_bytes_ = layer_bytes(store.first_layer_);
  store.page_count_ = page_count;
  Result<kernels::Pages> pages =
      kernels::Pages::create(page_count * store.first_layer_.page_bytes, touch);
  if (!pages.ok()) return pages.error();
  store.pages_ = std::move(pages).value();
  store.first_layer_.layer = store.pages_.data();
  return store;
}

kernels::KvLayout KvStore::layer(int32_t layer) const noexcept {
  kernels::KvLayout layout = first_layer_;
  layout.layer += layer * layer_bytes_;
  return layout;
}

}  // namespace prony::engine
