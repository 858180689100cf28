// Prefill attention: tiles of 128 query tokens of one head against the paged cache, causal, chunk
// and prefix alike (the chunk's own keys are in the pages by now). Four warps of 32 query rows; key
// and value tiles of 64 tokens come as bulk copies of whole pages, two in flight.
// Bound by the tensor cores; mma.sync, whose limit is about 60 % of the chip's rate.
// Source: Dao, "FlashAttention-2", 2023; the rescaling only where the maximum grew by more than
// 2^8: "FlashAttention-4", 2025.
#include "prony/kernels/cuda/device.cuh"
#include "prony/kernels/cuda/layout.hpp"
#include "prony/kernels/cuda/ops.hpp"

namespace prony::kernels::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kStages = 2;
constexpr int kTilePages = 4;  // of keys and values
constexpr int kTile = kTilePages * kPageTokens;
constexpr int kHalfTile = kTile / 2;  // whose scores are in registers at once
constexpr float kLog2E = 1.4426950408889634f;
constexpr float kGrowth = 8;  // log2: sums stay below 2^8 times what they would be

struct Prefill {
  const bf16* q;
  const bf16* pages;
  const int32_t* tables;
  const int32_t* table_start;
  const int32_t* kv_tokens;
  const int32_t* tiles;
  const int32_t* row_start;
  const int32_t* row_tokens;
  bf16* out;
  int heads, kv_heads, q_stride;
  float scale_log2;
};

template <int D>
struct Shared {
  alignas(128) bf16 kv[kStages][kTilePages][kPageElements<D>];
  alignas(128) bf16 q[kQueryTile * D];
  uint64_t full[kStages];
};

template <int D>
struct State {
  float out[2][D / 8][4] = {};  // two groups of 16 rows
  float largest[2][2] = {{-INFINITY, -INFINITY}, {-INFINITY, -INFINITY}};
  float sum[2][2] = {};
};

// The queries of the tile, rows behind the end as zeros; swizzled as pages are.
template <int D>
__device__ inline void load_queries(const Prefill& a, bf16* to, int64_t first_token, int head,
                                    int rows) {
  for (int i = threadIdx.x; i < kQueryTile * (D / 8); i += kWarps * kWarp) {
    const int row = i / (D / 8), chunk = i % (D / 8);
    uint4 value = make_uint4(0, 0, 0, 0);
    if (row < rows) {
      value = *reinterpret_cast<const uint4*>(a.q + (first_token + row) * a.q_stride + head * D +
                                              chunk * 8);
    }
    *reinterpret_cast<uint4*>(to + row * D + swizzled<D>(row, chunk) * 8) = value;
  }
}

// 32 tokens from `first_token` of the context, in pages page[0], page[1].
template <int D>
__device__ inline void take_tokens(const bf16* pages, const bf16* queries, int first_token, int first_position, bool masked,
                                   float scale_log2, State<D>& state) {
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int matrix = lane / 8, r = lane % 8;
  constexpr int kColumns = kHalfTile / 8;
  float scores[2][kColumns][4] = {};
  const uint32_t kv = shared_address(pages), q = shared_address(queries);
#pragma unroll
  for (int k = 0; k < D / 16; ++k) {
    uint32_t a[2][4];
#pragma unroll
    for (int g = 0; g < 2; ++g) {
      const int row = warp * 32 + g * 16 + (matrix % 2) * 8 + r;
      load_matrices(a[g], q + static_cast<uint32_t>(
                                  (row * D + swizzled<D>(row, k * 2 + matrix / 2) * 8) * 2));
    }
#pragma unroll
    for (int page = 0; page < kHalfTile / kPageTokens; ++page) {
      uint32_t b[4];
      const int token = (matrix / 2) * 8 + r;
      load_matrices(b, kv + static_cast<uint32_t>(
                                (page * kPageElements<D> + token * D +
                                 swizzled<D>(token, k * 2 + matrix % 2) * 8) *
                                2));
#pragma unroll
      for (int g = 0; g < 2; ++g) {
        multiply(scores[g][page * 2], a[g], b[0], b[1]);
        multiply(scores[g][page * 2 + 1], a[g], b[2], b[3]);
      }
    }
  }
#pragma unroll
  for (int g = 0; g < 2; ++g) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int position = first_position + warp * 32 + g * 16 + half * 8 + lane / 4;
      if (masked) {
#pragma unroll
        for (int n = 0; n < kColumns; ++n) {
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            if (first_token + n * 8 + (lane % 4) * 2 + j > position) {
              scores[g][n][half * 2 + j] = -INFINITY;
            }
          }
        }
      }
      float largest = -INFINITY;
#pragma unroll
      for (int n = 0; n < kColumns; ++n) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          float& score = scores[g][n][half * 2 + j];
          largest = fmaxf(largest, score);
        }
      }
      largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, 2)) * scale_log2;
      float& reference = state.largest[g][half];
      const bool grew = largest > reference + kGrowth;
      if (__any_sync(0xFFFFFFFFu, grew)) {
        const float next = grew ? largest : reference;
        const float factor = next == -INFINITY ? 1.0f : power_of_two(reference - next);
        reference = next;
        state.sum[g][half] *= factor;
#pragma unroll
        for (int n = 0; n < D / 8; ++n) {
          state.out[g][n][half * 2] *= factor;
          state.out[g][n][half * 2 + 1] *= factor;
        }
      }
      // A row without any token yet keeps its sums at 0.
      const float minus = reference == -INFINITY ? 0.0f : reference;
      float sum = 0;
#pragma unroll
      for (int n = 0; n < kColumns; ++n) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          float& score = scores[g][n][half * 2 + j];
          score = power_of_two(fmaf(score, scale_log2, -minus));
          sum += score;
        }
      }
      state.sum[g][half] += sum;
    }
  }
#pragma unroll
  for (int page = 0; page < kHalfTile / kPageTokens; ++page) {
    uint32_t p[2][4];
#pragma unroll
    for (int g = 0; g < 2; ++g) {
      const auto& first = scores[g][page * 2];
      const auto& second = scores[g][page * 2 + 1];
      p[g][0] = pack_bf16(first[0], first[1]);
      p[g][1] = pack_bf16(first[2], first[3]);
      p[g][2] = pack_bf16(second[0], second[1]);
      p[g][3] = pack_bf16(second[2], second[3]);
    }
#pragma unroll
    for (int n = 0; n < D / 16; ++n) {
      uint32_t b[4];
      const int token = (matrix % 2) * 8 + r;
      load_matrices_transposed(
          b, kv + static_cast<uint32_t>((page * kPageElements<D> + (kPageTokens + token) * D +
                                         swizzled<D>(token, n * 2 + matrix / 2) * 8) *
                                        2));
#pragma unroll
      for (int g = 0; g < 2; ++g) {
        multiply(state.out[g][2 * n], p[g], b[0], b[1]);
        multiply(state.out[g][2 * n + 1], p[g], b[2], b[3]);
      }
    }
  }
}

template <int D>
__device__ inline void store_rows(const Prefill& a, State<D>& state, int64_t first_token, int head,
                                  int rows) {
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
#pragma unroll
  for (int g = 0; g < 2; ++g) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = state.sum[g][half];
      sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
      sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
      const int row = warp * 32 + g * 16 + half * 8 + lane / 4;
      if (row >= rows) continue;
      const float factor = 1 / sum;
      bf16* out = a.out + ((first_token + row) * a.heads + head) * D + (lane % 4) * 2;
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
        *reinterpret_cast<uint32_t*>(out + n * 8) =
            pack_bf16(state.out[g][n][half * 2] * factor, state.out[g][n][half * 2 + 1] * factor);
      }
    }
  }
}

template <int D>
__global__ __launch_bounds__(kWarps* kWarp, 2) void prefill_kernel(Prefill a) {
  extern __shared__ __align__(128) unsigned char memory[];
  auto& shared = *reinterpret_cast<Shared<D>*>(memory);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) barrier_init(&shared.full[i], 1);
    fence_barrier_init();
  }
  wait_for_predecessor();
  let_successor_start();
  const int head = blockIdx.x;
  const int kv_head = head / (a.heads / a.kv_heads);
  const int row = a.tiles[2 * blockIdx.y], first_in_row = a.tiles[2 * blockIdx.y + 1];
  const int row_tokens = a.row_tokens[row], kv_tokens = a.kv_tokens[row];
  const int rows = min(kQueryTile, row_tokens - first_in_row);
  const int64_t first_token = a.row_start[row] + first_in_row;
  const int first_position = kv_tokens - row_tokens + first_in_row;
  const int seen = first_position + rows;  // tokens that the tile's last row sees
  const int tiles = (seen + kTile - 1) / kTile;
  const int pages = (seen + kPageTokens - 1) / kPageTokens;
  const int32_t* table = a.tables + a.table_start[row];

  __syncthreads();  // barriers are there
  const auto ask = [&](int tile) {
    if (threadIdx.x >= kTilePages) return;
    // A tile's pages behind the end are copies of its last: finite, and masked.
    const int page = table[min(tile * kTilePages + static_cast<int>(threadIdx.x), pages - 1)];
    if (threadIdx.x == 0) {
      barrier_expect(&shared.full[tile % kStages], kTilePages * kPageElements<D> * 2);
    }
    __syncwarp((1u << kTilePages) - 1);
    bulk_copy(shared.kv[tile % kStages][threadIdx.x],
              a.pages + (int64_t{page} * a.kv_heads + kv_head) * kPageElements<D>,
              kPageElements<D> * 2, &shared.full[tile % kStages]);
  };
  for (int tile = 0; tile < min(tiles, kStages); ++tile) ask(tile);
  load_queries<D>(a, shared.q, first_token, head, rows);
  __syncthreads();

  State<D> state;
  for (int tile = 0; tile < tiles; ++tile) {
    barrier_wait(&shared.full[tile % kStages], tile / kStages % 2);
    auto* kv = shared.kv[tile % kStages];
    const bool masked = (tile + 1) * kTile > first_position;
    if ((tile + 1) * kTile > seen) {
      // Values behind the end are whatever the pages held before: 0 times a NaN would be one.
      for (int i = threadIdx.x; i < kTile * (D / 8); i += kWarps * kWarp) {
        const int token = i / (D / 8);
        if (tile * kTile + token < seen) continue;
        auto* values = reinterpret_cast<uint4*>(kv[token / kPageTokens] + kPageTokens * D);
        values[token % kPageTokens * (D / 8) + i % (D / 8)] = make_uint4(0, 0, 0, 0);
      }
      __syncthreads();
    }
    for (int half = 0; half < 2; ++half) {
      take_tokens<D>(kv[half * 2], shared.q, tile * kTile + half * kHalfTile, first_position, masked,
                     a.scale_log2, state);
    }
    __syncthreads();
    if (tile + kStages < tiles) ask(tile + kStages);
  }
  store_rows<D>(a, state, first_token, head, rows);
}

template <int D>
void prepare() {
  cudaFuncSetAttribute(prefill_kernel<D>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       sizeof(Shared<D>));
}

}  // namespace

void prepare_decode();  // attention_decode.cu
void prepare_kernels() {
  prepare_decode();
  prepare<16>();
  prepare<32>();
  prepare<64>();
  prepare<128>();
}

void attention_prefill(const AttentionArguments& a, const int32_t* tiles, int32_t count,
                       const int32_t* row_start, const int32_t* row_tokens, Stream stream) {
  const Prefill prefill{static_cast<const bf16*>(a.qkv),
                        static_cast<const bf16*>(a.pages),
                        a.tables,
                        a.table_start,
                        a.kv_tokens,
                        tiles,
                        row_start,
                        row_tokens,
                        static_cast<bf16*>(a.out),
                        a.heads,
                        a.kv_heads,
                        a.q_stride,
                        a.scale * kLog2E};
  const auto run = [&](auto kernel, size_t bytes) {
    launch(kernel, dim3(static_cast<unsigned>(a.heads), static_cast<unsigned>(count)),
           kWarps * kWarp, bytes, static_cast<cudaStream_t>(stream), prefill);
  };
  switch (a.head_dim) {
    case 16: return run(prefill_kernel<16>, sizeof(Shared<16>));
    case 32: return run(prefill_kernel<32>, sizeof(Shared<32>));
    case 64: return run(prefill_kernel<64>, sizeof(Shared<64>));
    default: return run(prefill_kernel<128>, sizeof(Shared<128>));
  }
}

}  // namespace prony::kernels::cuda
