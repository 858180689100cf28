// KvStore: the pages of keys and values. A page holds 16 tokens of every layer, so a block id of
// the scheduler is a page number and moving a block is one contiguous copy. Layout inside a page:
// [layer][keys, then values], see kernels::KvLayout.
// Thread safety: different pages, or different tokens of a page, from different threads.
#pragma once
#include <cstdint>

#include "prony/catalog/model_spec.hpp"
#include "prony/core/result.hpp"
#include "prony/kernels/kernels.hpp"
#include "prony/kernels/memory.hpp"

namespace prony::engine {

/// Keys and values are fp32 beside fp32 weights, else bf16.
constexpr kernels::Dtype kv_dtype(kernels::Dtype weights) {
  return weights == kernels::Dtype::kF32 ? weights : kernels::Dtype::kBf16;
}

class KvStore {
 public:
  static int64_t page_bytes(const catalog::ModelSpec& spec, kernels::Dtype dtype);

  /// `touch`: see kernels::Pages. Error: kEnvironment if the memory cannot be had.
  static Result<KvStore> create(const catalog::ModelSpec& spec, kernels::Dtype dtype,
                                int32_t page_count, bool touch);

  int32_t page_count() const noexcept { return page_count_; }
  /// Where `layer` lies; valid as long as the store.
  kernels::KvLayout layer(int32_t layer) const noexcept;

 private:
  KvStore() = default;
  kernels::Pages pages_;
  kernels::KvLayout first_layer_;
  int64_t layer_bytes_ = 0;
  int32_t page_count_ = 0;
};

}  // namespace prony::engine
