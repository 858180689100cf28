#include "prony/kernels/cuda/ceilings.cuh"

#include <algorithm>
#include <array>

#include "prony/kernels/cuda/device.cuh"
#include "prony/kernels/cuda/gemm.cuh"

namespace prony::kernels::cuda {
namespace {

constexpr int64_t kReadBytes = int64_t{8} << 30;  // 160 times the second-level cache
constexpr int64_t kScratchBytes = int64_t{32} << 20;
constexpr int kGemmSize = 8192;
constexpr int kRepeats = 9;

// Bits of normal bf16 numbers in (-2, 2): zeros would make the product faster.
__global__ void fill_kernel(uint32_t* out, int64_t words) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words;
       i += int64_t{gridDim.x} * blockDim.x) {
    auto x = static_cast<uint32_t>(i) * 2654435761u;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    out[i] = (x & 0x807F807Fu) | 0x3F803F80u;
  }
}

__global__ void read_kernel(const uint4* in, int64_t count, uint32_t* out) {
  constexpr int kAtOnce = 8;
  uint32_t sum = 0;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i + (kAtOnce - 1) * step < count; i += kAtOnce * step) {
    uint4 v[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) v[j] = load_stream(in + i + j * step);
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) sum += v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
  }
  for (; i < count; i += step) sum += in[i].x;
  if (sum == 0x12345678u) *out = sum;  // so that the reads are needed
}

// Median milliseconds of what `body` enqueues; below 0: a call failed.
template <class Body>
float median_ms(const Body& body) {
  cudaEvent_t begin = nullptr, end = nullptr;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  std::array<float, kRepeats> times{};
  body();  // warm
  for (float& time : times) {
    cudaEventRecord(begin);
    body();
    cudaEventRecord(end);
    if (cudaEventSynchronize(end) != cudaSuccess) time = -1;
    if (time == 0) cudaEventElapsedTime(&time, begin, end);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::sort(times.begin(), times.end());
  return times[0] < 0 ? -1 : times[kRepeats / 2];
}

}  // namespace

std::string measure_ceilings(Ceilings& out) {
  char *first = nullptr, *second = nullptr;
  if (cudaMalloc(&first, kReadBytes) != cudaSuccess ||
      cudaMalloc(&second, kReadBytes) != cudaSuccess) {
    cudaFree(first);
    cudaGetLastError();
    return "not enough device memory to measure the ceilings";
  }
  int blocks = 0;
  cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, 0);
  for (char* memory : {first, second}) {
    fill_kernel<<<blocks * 8, 256>>>(reinterpret_cast<uint32_t*>(memory), kReadBytes / 4);
  }
  const float read_ms = median_ms([&] {
    read_kernel<<<blocks * 8, 256>>>(reinterpret_cast<const uint4*>(first), kReadBytes / 16,
                                     reinterpret_cast<uint32_t*>(second));
  });
  const float copy_ms = median_ms(
      [&] { cudaMemcpyAsync(second, first, kReadBytes, cudaMemcpyDeviceToDevice, nullptr); });
  std::string failed;
  float gemm_ms = 0;
  {
    Gemm gemm;
    constexpr int64_t kMatrix = int64_t{kGemmSize} * kGemmSize * 2;
    failed = gemm.open(first + 4 * kMatrix, kScratchBytes);
    if (failed.empty()) {
      gemm_ms = median_ms([&] {
        failed = gemm.product(first, first + kMatrix, kGemmSize, kGemmSize, kGemmSize, Store::kBf16,
                              first + 2 * kMatrix, nullptr);
      });
    }
  }
  const cudaError_t last = cudaGetLastError();
  cudaFree(first);
  cudaFree(second);
  if (!failed.empty()) return failed;
  if (last != cudaSuccess || std::min({read_ms, copy_ms, gemm_ms}) <= 0) {
    return std::string("measuring: ") + cudaGetErrorString(last);
  }
  constexpr double kBytesPerMsOfGb = 1e6;
  out.read_gb_s = static_cast<double>(kReadBytes) / read_ms / kBytesPerMsOfGb;
  out.copy_gb_s = 2 * static_cast<double>(kReadBytes) / copy_ms / kBytesPerMsOfGb;
  out.gemm_tflop_s = 2.0 * kGemmSize * kGemmSize * kGemmSize / gemm_ms / 1e9;
  return {};
}

}  // namespace prony::kernels::cuda
