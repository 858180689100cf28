// Paged decode attention: one query token a sequence, all query heads of a KV head together (up to
// 16 rows of a matrix instruction), the context cut into parts. Each of four warps streams pages
// through its own ring of bulk copies, without waiting for the others, and keeps a running softmax;
// the warps are joined in shared memory, the parts by whichever block of a (sequence, head) ends
// last. Bound by reading keys and values once. Order of sums fixed: results repeat bit by bit.
// Source: Dao, "FlashAttention-2", 2023 (running softmax); Dao et al., "Flash-Decoding", 2023.
#include "prony/kernels/cuda/device.cuh"
#include "prony/kernels/cuda/ops.hpp"

namespace prony::kernels::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kStages = 3;
constexpr float kLog2E = 1.4426950408889634f;

struct Decode {
  const bf16* q;
  const bf16* pages;
  const int32_t* tables;
  const int32_t* table_start;
  const int32_t* kv_tokens;
  bf16* out;
  float* partial;  // [(row, kv head, part)][group][D + 2]
  int32_t* tickets;
  int heads, kv_heads, q_stride;
  float scale_log2;
};

template <int D>
struct Shared {
  alignas(128) bf16 ring[kWarps][kStages][kPageElements<D>];
  uint64_t full[kWarps][kStages];
  float largest[kWarps][16], sum[kWarps][16];
  int is_last;
};

// The running state of a warp: 16 query heads, of which a thread has rows lane / 4 and + 8.
template <int D>
struct State {
  float out[D / 8][4] = {};
  float largest[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
};

template <int D>
__device__ inline void take_page(const bf16* page, const uint32_t (&q)[D / 16][4], int valid,
                                 float scale_log2, State<D>& state) {
  const int lane = threadIdx.x % kWarp, matrix = lane / 8, r = lane % 8;
  float scores[2][4] = {};
  const uint32_t keys = shared_address(page);
#pragma unroll
  for (int k = 0; k < D / 16; ++k) {
    uint32_t b[4];
    const int token = (matrix / 2) * 8 + r;
    load_matrices(b, keys + static_cast<uint32_t>(
                                (token * D + swizzled<D>(token, k * 2 + matrix % 2) * 8) * 2));
    multiply(scores[0], q[k], b[0], b[1]);
    multiply(scores[1], q[k], b[2], b[3]);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {  // rows lane / 4, lane / 4 + 8
    float largest = state.largest[half];
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        float& score = scores[n][half * 2 + j];
        const int token = n * 8 + (lane % 4) * 2 + j;
        score = token < valid ? score * scale_log2 : -INFINITY;
        largest = fmaxf(largest, score);
      }
    }
    largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, 2));
    const float factor = power_of_two(state.largest[half] - largest);
    state.largest[half] = largest;
    float sum = 0;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        float& score = scores[n][half * 2 + j];
        score = power_of_two(score - largest);
        sum += score;
      }
    }
    state.sum[half] = state.sum[half] * factor + sum;
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      state.out[n][half * 2] *= factor;
      state.out[n][half * 2 + 1] *= factor;
    }
  }
  const uint32_t p[4] = {
      pack_bf16(scores[0][0], scores[0][1]), pack_bf16(scores[0][2], scores[0][3]),
      pack_bf16(scores[1][0], scores[1][1]), pack_bf16(scores[1][2], scores[1][3])};
  const uint32_t values = keys + kPageTokens * D * 2;
#pragma unroll
  for (int n = 0; n < D / 16; ++n) {
    uint32_t b[4];
    const int token = (matrix % 2) * 8 + r;
    load_matrices_transposed(b, values + static_cast<uint32_t>((token * D + swizzled<D>(token, n * 2 + matrix / 2) * 8) * 2));
    multiply(state.out[2 * n], p, b[0], b[1]);
    multiply(state.out[2 * n + 1], p, b[2], b[3]);
  }
}

// Values behind the end are whatever the page held before: 0 times a NaN would be one.
template <int D>
__device__ inline void clear_tail(bf16* page, int valid) {
  auto* values = reinterpret_cast<uint4*>(page + kPageTokens * D);
  for (int i = valid * (D / 8) + static_cast<int>(threadIdx.x % kWarp); i < kPageTokens * (D / 8);
       i += kWarp) {
    values[i] = make_uint4(0, 0, 0, 0);
  }
  __syncwarp();
}

template <int D>
__device__ inline void load_queries(const Decode& a, int row, int kv_head, int group,
                                    uint32_t (&q)[D / 16][4]) {
  const int lane = threadIdx.x % kWarp;
  const bf16* base = a.q + int64_t{row} * a.q_stride + int64_t{kv_head} * group * D;
#pragma unroll
  for (int k = 0; k < D / 16; ++k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int head = lane / 4 + (i % 2) * 8, column = k * 16 + (i / 2) * 8 + (lane % 4) * 2;
      q[k][i] = head < group ? *reinterpret_cast<const uint32_t*>(base + head * D + column) : 0u;
    }
  }
}

// Pages [begin, end) of a row's table, every kWarps-th from this warp's first.
template <int D>
__device__ inline void stream_pages(const Decode& a, Shared<D>& shared, int row, int kv_head,
                                    int begin, int end, int kv_tokens,
                                    const uint32_t (&q)[D / 16][4], State<D>& state) {
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int count = (end - begin - warp + kWarps - 1) / kWarps;  // of this warp; may be <= 0
  const int32_t* table = a.tables + a.table_start[row] + begin + warp;
  // A lane holds the number of one page; 32 pages are looked up at once.
  int held = lane < count ? table[lane * kWarps] : 0;
  const auto ask = [&](int i) {
    if (i > 0 && i % kWarp == 0) held = i + lane < count ? table[(i + lane) * kWarps] : 0;
    const int page = __shfl_sync(0xFFFFFFFFu, held, i % kWarp);
    if (lane != 0) return;
    const bf16* source = a.pages + (int64_t{page} * a.kv_heads + kv_head) * kPageElements<D>;
    barrier_expect(&shared.full[warp][i % kStages], kPageElements<D> * 2);
    bulk_copy(shared.ring[warp][i % kStages], source, kPageElements<D> * 2,
              &shared.full[warp][i % kStages]);
  };
  for (int i = 0; i < min(count, kStages); ++i) ask(i);
  for (int i = 0; i < count; ++i) {
    bf16* page = shared.ring[warp][i % kStages];
    barrier_wait(&shared.full[warp][i % kStages], i / kStages % 2);
    const int valid = kv_tokens - (begin + warp + i * kWarps) * kPageTokens;
    if (valid < kPageTokens) clear_tail<D>(page, valid);
    take_page<D>(page, q, valid, a.scale_log2, state);
    __syncwarp();
    if (i + kStages < count) ask(i + kStages);
  }
}

// Each warp's rows to its part of the ring, which is free by now: [16][D] floats.
template <int D>
__device__ inline void leave_state(Shared<D>& shared, State<D>& state) {
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  auto* mine = reinterpret_cast<float*>(shared.ring[warp][0]);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = state.sum[half];
    sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
    sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
    const int head = lane / 4 + half * 8;
    if (lane % 4 == 0) {
      shared.largest[warp][head] = state.largest[half];
      shared.sum[warp][head] = sum;
    }
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      const int column = n * 8 + (lane % 4) * 2;
      mine[head * D + column] = state.out[n][half * 2];
      mine[head * D + column + 1] = state.out[n][half * 2 + 1];
    }
  }
}

// What the parts of a (sequence, KV head) left, joined: first the weight of every part, all at once,
// then sums whose loads do not wait for each other.
template <int D>
__device__ inline void join_parts(const Decode& a, Shared<D>& shared, int row, int kv_head,
                                  int parts, int splits) {
  constexpr int kStride = D + 2;
  const int group = a.heads / a.kv_heads;
  const int64_t place = int64_t{row} * a.kv_heads + kv_head;
  const float* left = a.partial + place * splits * group * kStride;
  auto* weights = reinterpret_cast<float*>(shared.ring);  // [group][parts]: at most 16 x 32
  auto* sums = weights + group * parts;                   // [group][parts]
  for (int i = threadIdx.x; i < group * parts; i += kWarps * kWarp) {
    const float* one = left + int64_t{i % parts * group + i / parts} * kStride;
    weights[i] = __ldcg(one + D);
    sums[i] = __ldcg(one + D + 1);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < group * D; i += kWarps * kWarp) {
    const int head = i / D, d = i % D;
    const float* mine = weights + head * parts;
    float largest = -INFINITY;
    for (int s = 0; s < parts; ++s) largest = fmaxf(largest, mine[s]);
    float sum = 0, out = 0;
#pragma unroll 8
    for (int s = 0; s < parts; ++s) {
      const float factor = power_of_two(mine[s] - largest);
      sum += factor * sums[head * parts + s];
      out += factor * __ldcg(left + int64_t{s * group + head} * kStride + d);
    }
    a.out[(int64_t{row} * a.heads + kv_head * group + head) * D + d] = __float2bfloat16(out / sum);
  }
}

template <int D>
__global__ __launch_bounds__(kWarps* kWarp) void decode_kernel(Decode a) {
  extern __shared__ __align__(128) unsigned char memory[];
  auto& shared = *reinterpret_cast<Shared<D>*>(memory);
  const int part = blockIdx.x, kv_head = blockIdx.y, row = blockIdx.z;
  const int group = a.heads / a.kv_heads, splits = gridDim.x;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  if (lane == 0) {
    for (int i = 0; i < kStages; ++i) barrier_init(&shared.full[warp][i], 1);
    fence_barrier_init();
  }
  __syncwarp();
  wait_for_predecessor();
  let_successor_start();
  const int kv_tokens = a.kv_tokens[row];
  const int pages = (kv_tokens + kPageTokens - 1) / kPageTokens;
  const int each = (pages + splits - 1) / splits;
  const int parts = (pages + each - 1) / each;  // that have pages
  if (part >= parts) return;

  uint32_t q[D / 16][4];
  load_queries<D>(a, row, kv_head, group, q);
  State<D> state;
  stream_pages<D>(a, shared, row, kv_head, part * each, min(pages, (part + 1) * each), kv_tokens, q,
                  state);
  leave_state<D>(shared, state);
  __syncthreads();

  const int64_t place = int64_t{row} * a.kv_heads + kv_head;
  const int stride = D + 2;
  for (int i = threadIdx.x; i < group * D; i += kWarps * kWarp) {
    const int head = i / D, d = i % D;
    float largest = -INFINITY;
    for (int w = 0; w < kWarps; ++w) largest = fmaxf(largest, shared.largest[w][head]);
    float sum = 0, out = 0;
    for (int w = 0; w < kWarps; ++w) {
      const float factor = power_of_two(shared.largest[w][head] - largest);
      sum += factor * shared.sum[w][head];
      out += factor * reinterpret_cast<const float*>(shared.ring[w][0])[head * D + d];
    }
    if (parts == 1) {
      a.out[(int64_t{row} * a.heads + kv_head * group + head) * D + d] = __float2bfloat16(out / sum);
      continue;
    }
    float* left = a.partial + ((place * splits + part) * group + head) * stride;
    left[d] = out;
    if (d == 0) left[D] = largest;
    if (d == 0) left[D + 1] = sum;
  }
  if (parts == 1) return;

  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    const int before = atomicAdd(&a.tickets[place], 1);
    shared.is_last = before == parts - 1;
    if (shared.is_last) a.tickets[place] = 0;  // for the next launch
  }
  __syncthreads();
  if (!shared.is_last) return;
  __threadfence();
  join_parts<D>(a, shared, row, kv_head, parts, splits);
}

template <int D>
void prepare() {
  cudaFuncSetAttribute(decode_kernel<D>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       sizeof(Shared<D>));
}

}  // namespace

void prepare_decode() {
  prepare<16>();
  prepare<32>();
  prepare<64>();
  prepare<128>();
}

void attention_decode(const AttentionArguments& a, int32_t rows, int32_t splits, float* partial,
                      int32_t* tickets, Stream stream) {
  const Decode decode{static_cast<const bf16*>(a.qkv),
                      static_cast<const bf16*>(a.pages),
                      a.tables,
                      a.table_start,
                      a.kv_tokens,
                      static_cast<bf16*>(a.out),
                      partial,
                      tickets,
                      a.heads,
                      a.kv_heads,
                      a.q_stride,
                      a.scale * kLog2E};
  const auto run = [&](auto kernel, size_t bytes) {
    launch(kernel,
           dim3(static_cast<unsigned>(splits), static_cast<unsigned>(a.kv_heads),
                static_cast<unsigned>(rows)),
           kWarps * kWarp, bytes, static_cast<cudaStream_t>(stream), decode);
  };
  switch (a.head_dim) {
    case 16: return run(decode_kernel<16>, sizeof(Shared<16>));
    case 32: return run(decode_kernel<32>, sizeof(Shared<32>));
    case 64: return run(decode_kernel<64>, sizeof(Shared<64>));
    default: return run(decode_kernel<128>, sizeof(Shared<128>));
  }
}

}  // namespace prony::kernels::cuda
