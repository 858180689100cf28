// y = x W^T for one or two rows of x: a stream of W, so bound by reading it. Each warp of a block
// takes every fourth piece of 512 inputs of the same four outputs, so a piece of x in registers
// serves four rows of W. The first piece of W is asked for before the predecessor has ended
// (programmatic launch), which hides its tail, its small neighbours and our ramp.
// The order of the sums is fixed, so results repeat bit by bit.
#include "prony/kernels/cuda/device.cuh"
#include "prony/kernels/cuda/ops.hpp"

namespace prony::kernels::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kRows = 4;    // of W in a block
constexpr int kChunks = 2;  // of 8 inputs a lane, in a piece
constexpr int kPiece = kChunks * 8 * kWarp;

struct Product {
  const bf16* x;       // [M][k]
  const bf16* weight;  // [n][k]
  int n, k;
  void* y;
};

template <Store S>
__device__ inline int weight_row(const Product& p, int r) {
  const int block = static_cast<int>(blockIdx.x);
  if constexpr (S == Store::kSiluPair) {
    const int pair = min(block * (kRows / 2) + r % (kRows / 2), p.n / 2 - 1);
    return r < kRows / 2 ? pair : p.n / 2 + pair;
  }
  return min(block * kRows + r, p.n - 1);  // the last block repeats a row and stores it not
}

template <Store S>
__device__ inline void load_weights(const Product& p, int piece, int lane,
                                    uint4 (&w)[kRows][kChunks]) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const bf16* row = p.weight + int64_t{weight_row<S>(p, r)} * p.k;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int at = piece * kPiece + c * 8 * kWarp + lane * 8;
      w[r][c] = at < p.k ? load_stream(row + at) : make_uint4(0, 0, 0, 0);
    }
  }
}

__device__ inline float dot8(const uint4& w, const float (&x)[8], float sum) {
  sum = fmaf(low_float(w.x), x[0], sum);
  sum = fmaf(high_float(w.x), x[1], sum);
  sum = fmaf(low_float(w.y), x[2], sum);
  sum = fmaf(high_float(w.y), x[3], sum);
  sum = fmaf(low_float(w.z), x[4], sum);
  sum = fmaf(high_float(w.z), x[5], sum);
  sum = fmaf(low_float(w.w), x[6], sum);
  return fmaf(high_float(w.w), x[7], sum);
}

template <int M, Store S>
__device__ inline void store(const Product& p, int m, int r, float sum, const float* all) {
  const int block = static_cast<int>(blockIdx.x);
  if constexpr (S == Store::kSiluPair) {
    const int out = block * (kRows / 2) + r;
    if (r >= kRows / 2 || out >= p.n / 2) return;
    // As a gate and an input that were stored in bf16 between, like the product of many rows.
    const float gate = __bfloat162float(__float2bfloat16(sum));
    const float up = __bfloat162float(__float2bfloat16(all[(r + kRows / 2) * M + m]));
    static_cast<bf16*>(p.y)[int64_t{m} * (p.n / 2) + out] =
        __float2bfloat16(gate / (1 + __expf(-gate)) * up);
  } else {
    const int out = block * kRows + r;
    if (out >= p.n) return;
    const int64_t at = int64_t{m} * p.n + out;
    if constexpr (S == Store::kBf16) static_cast<bf16*>(p.y)[at] = __float2bfloat16(sum);
    if constexpr (S == Store::kFloat) static_cast<float*>(p.y)[at] = sum;
    if constexpr (S == Store::kAdd) static_cast<float*>(p.y)[at] += sum;
  }
}

template <int M, Store S>
__global__ __launch_bounds__(kWarps* kWarp) void product_kernel(Product p) {
  __shared__ float parts[kWarps][kRows * M];
  __shared__ float all[kRows * M];
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int pieces = (p.k + kPiece - 1) / kPiece;
  uint4 w[kRows][kChunks];
  load_weights<S>(p, warp, lane, w);
  let_successor_start();
  wait_for_predecessor();
  float sums[kRows][M] = {};
  for (int piece = warp; piece < pieces; piece += kWarps) {
    uint4 next[kRows][kChunks];
    if (piece + kWarps < pieces) load_weights<S>(p, piece + kWarps, lane, next);
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int at = piece * kPiece + c * 8 * kWarp + lane * 8;
#pragma unroll
      for (int m = 0; m < M; ++m) {
        const uint4 raw = at < p.k ? *reinterpret_cast<const uint4*>(p.x + int64_t{m} * p.k + at)
                                   : make_uint4(0, 0, 0, 0);
        const float x[8] = {low_float(raw.x),  high_float(raw.x), low_float(raw.y),
                            high_float(raw.y), low_float(raw.z),  high_float(raw.z),
                            low_float(raw.w),  high_float(raw.w)};
#pragma unroll
        for (int r = 0; r < kRows; ++r) sums[r][m] = dot8(w[r][c], x, sums[r][m]);
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int c = 0; c < kChunks; ++c) w[r][c] = next[r][c];
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int m = 0; m < M; ++m) {
      const float sum = warp_sum(sums[r][m]);
      if (lane == 0) parts[warp][r * M + m] = sum;
    }
  }
  __syncthreads();
  const int i = static_cast<int>(threadIdx.x);
  float sum = 0;
  if (i < kRows * M) {
    for (int part = 0; part < kWarps; ++part) sum += parts[part][i];
    all[i] = sum;
  }
  __syncwarp();  // kRows * M <= 16: one warp
  if (i < kRows * M) store<M, S>(p, i % M, i / M, sum, all);
}

template <Store S>
void run(const Product& p, int m, cudaStream_t stream) {
  const int rows = S == Store::kSiluPair ? kRows / 2 : kRows;
  const int outputs = S == Store::kSiluPair ? p.n / 2 : p.n;
  const dim3 grid(static_cast<unsigned>((outputs + rows - 1) / rows));
  static_assert(kFewRows == 2);
  launch(m == 1 ? product_kernel<1, S> : product_kernel<2, S>, grid, kWarps * kWarp, 0, stream, p);
}

}  // namespace

void product_few(const void* x, const void* weight, int32_t m, int32_t n, int32_t k, Store store,
                 void* y, Stream stream) {
  const Product p{static_cast<const bf16*>(x), static_cast<const bf16*>(weight), n, k, y};
  const auto s = static_cast<cudaStream_t>(stream);
  switch (store) {
    case Store::kBf16: return run<Store::kBf16>(p, m, s);
    case Store::kFloat: return run<Store::kFloat>(p, m, s);
    case Store::kAdd: return run<Store::kAdd>(p, m, s);
    case Store::kSiluPair: return run<Store::kSiluPair>(p, m, s);
  }
}

}  // namespace prony::kernels::cuda
