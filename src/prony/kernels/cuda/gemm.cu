#include "prony/kernels/cuda/gemm.cuh"

namespace prony::kernels::cuda {

Gemm::~Gemm() {
  for (auto& [key, plan] : plans_) {
    cublasLtMatmulDescDestroy(plan.operation);
    for (auto* layout : {plan.weight, plan.x, plan.y}) cublasLtMatrixLayoutDestroy(layout);
  }
  if (handle_ != nullptr) cublasLtDestroy(handle_);
}

std::string Gemm::open(void* scratch, int64_t scratch_bytes) {
  scratch_ = scratch;
  scratch_bytes_ = scratch_bytes;
  const cublasStatus_t status = cublasLtCreate(&handle_);
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  return std::string("cublasLtCreate: ") + cublasLtGetStatusString(status);
}

// Column by column, as the library sees memory: y^T [n][m] = W [n][k] x^T [k][m].
std::string Gemm::plan(const Key& key, Plan& out) {
  const auto [m, n, k, store] = key;
  const cudaDataType_t result = store == Store::kBf16 ? CUDA_R_16BF : CUDA_R_32F;
  const cublasOperation_t transposed = CUBLAS_OP_T;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  bool ok = cublasLtMatmulDescCreate(&out.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F) ==
            CUBLAS_STATUS_SUCCESS;
  ok = ok && cublasLtMatmulDescSetAttribute(out.operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                            sizeof(transposed)) == CUBLAS_STATUS_SUCCESS;
  const auto rows = [](int32_t value) { return static_cast<uint64_t>(value); };
  ok = ok && cublasLtMatrixLayoutCreate(&out.weight, CUDA_R_16BF, rows(k), rows(n), k) ==
                 CUBLAS_STATUS_SUCCESS;
  ok = ok && cublasLtMatrixLayoutCreate(&out.x, CUDA_R_16BF, rows(k), rows(m), k) ==
                 CUBLAS_STATUS_SUCCESS;
  ok = ok && cublasLtMatrixLayoutCreate(&out.y, result, rows(n), rows(m), n) ==
                 CUBLAS_STATUS_SUCCESS;
  ok = ok && cublasLtMatmulPreferenceCreate(&preference) == CUBLAS_STATUS_SUCCESS;
  const auto scratch = static_cast<uint64_t>(scratch_bytes_);
  ok = ok && cublasLtMatmulPreferenceSetAttribute(
                 preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &scratch,
                 sizeof(scratch)) == CUBLAS_STATUS_SUCCESS;
  ok = ok && cublasLtMatmulAlgoGetHeuristic(handle_, out.operation, out.weight, out.x, out.y, out.y,
                                            preference, 1, &best, &found) == CUBLAS_STATUS_SUCCESS;
  if (preference != nullptr) cublasLtMatmulPreferenceDestroy(preference);
  if (!ok || found == 0) {
    return "cublasLt has no algorithm for a product of " + std::to_string(m) + " x " +
           std::to_string(n) + " x " + std::to_string(k);
  }
  out.algorithm = best.algo;
  return {};
}

std::string Gemm::product(const void* x, const void* weight, int32_t m, int32_t n, int32_t k,
                          Store store, void* y, cudaStream_t stream) {
  const Key key{m, n, k, store};
  auto at = plans_.find(key);
  if (at == plans_.end()) {
    at = plans_.emplace(key, Plan{}).first;
    if (auto failed = plan(key, at->second); !failed.empty()) return failed;
  }
  const Plan& plan = at->second;
  const float one = 1, beta = store == Store::kAdd ? 1.0f : 0.0f;
  const cublasStatus_t status = cublasLtMatmul(
      handle_, plan.operation, &one, weight, plan.weight, x, plan.x, &beta, y, plan.y, y, plan.y,
      &plan.algorithm, scratch_, static_cast<size_t>(scratch_bytes_), stream);
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  return std::string("cublasLtMatmul: ") + cublasLtGetStatusString(status);
}

}  // namespace prony::kernels::cuda
