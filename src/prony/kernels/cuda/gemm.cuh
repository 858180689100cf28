// y = x W^T by cuBLASLt for many rows. The algorithm of a shape is chosen once and kept, so a shape
// always gives the same bits. Thread safety: one thread.
#pragma once
#include <cublasLt.h>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "prony/kernels/cuda/ops.hpp"

namespace prony::kernels::cuda {

class Gemm {
 public:
  Gemm() = default;
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;
  ~Gemm();
  /// Empty, or why not.
  std::string open(void* scratch, int64_t scratch_bytes);
  /// Store::kSiluPair is not of this class. Empty, or what failed.
  std::string product(const void* x /* bf16 [m][k] */, const void* weight /* bf16 [n][k] */,
                      int32_t m, int32_t n, int32_t k, Store store, void* y /* [m][n] */,
                      cudaStream_t stream);

 private:
  struct Plan {
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t weight = nullptr, x = nullptr, y = nullptr;
    cublasLtMatmulAlgo_t algorithm{};
  };
  using Key = std::tuple<int32_t, int32_t, int32_t, Store>;
  std::string plan(const Key& key, Plan& out);

  cublasLtHandle_t handle_ = nullptr;
  void* scratch_ = nullptr;
  int64_t scratch_bytes_ = 0;
  std::map<Key, Plan> plans_;
};

}  // namespace prony::kernels::cuda
