// Elementwise kernels of the decoder: embedding, RMSNorm, bias + head norms + rotation + KV write,
// SiLU-multiply. All are bound by the bytes they move; arithmetic is fp32.
// Source: Zhang and Sennrich, "Root mean square layer normalization", 2019; Su et al., "RoFormer",
// 2021 (half-split pairs, as in Hugging Face weights); Shazeer, "GLU variants", 2020.
#include "prony/kernels/cuda/device.cuh"
#include "prony/kernels/cuda/ops.hpp"

namespace prony::kernels::cuda {
namespace {

constexpr int kEmbedThreads = 256;

__global__ void embed_kernel(const int32_t* tokens, const bf16* embedding, int hidden, float* out) {
  wait_for_predecessor();
  let_successor_start();
  const int64_t row = blockIdx.x;
  const auto* source = reinterpret_cast<const uint32_t*>(embedding + int64_t{tokens[row]} * hidden);
  auto* target = reinterpret_cast<float2*>(out + row * hidden);
  for (int i = threadIdx.x; i < hidden / 2; i += kEmbedThreads) {
    target[i] = make_float2(low_float(source[i]), high_float(source[i]));
  }
}

constexpr int kNormThreads = 512;

// The row stays in registers between the two passes: V float4 a thread.
template <int V>
__global__ __launch_bounds__(kNormThreads) void rms_norm_kernel(const float* x, const int32_t* rows,
                                                                 const float* weight, float epsilon,
                                                                 int hidden, bf16* y) {
  __shared__ float sums[kNormThreads / kWarp];
  wait_for_predecessor();
  let_successor_start();
  const int64_t row = rows != nullptr ? rows[blockIdx.x] : static_cast<int>(blockIdx.x);
  const auto* source = reinterpret_cast<const float4*>(x + row * hidden);
  float4 values[V];
  float sum = 0;
#pragma unroll
  for (int v = 0; v < V; ++v) {
    const int i = v * kNormThreads + static_cast<int>(threadIdx.x);
    values[v] = i < hidden / 4 ? source[i] : make_float4(0, 0, 0, 0);
    sum += values[v].x * values[v].x + values[v].y * values[v].y + values[v].z * values[v].z +
           values[v].w * values[v].w;
  }
  sum = warp_sum(sum);
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  sum = warp_sum(lane < kNormThreads / kWarp ? sums[lane] : 0.0f);
  const float factor = rsqrtf(sum / static_cast<float>(hidden) + epsilon);
  auto* target = reinterpret_cast<uint2*>(y + int64_t{blockIdx.x} * hidden);
#pragma unroll
  for (int v = 0; v < V; ++v) {
    const int i = v * kNormThreads + static_cast<int>(threadIdx.x);
    if (i >= hidden / 4) break;
    const float4 w = reinterpret_cast<const float4*>(weight)[i];
    target[i] = make_uint2(pack_bf16(values[v].x * factor * w.x, values[v].y * factor * w.y),
                           pack_bf16(values[v].z * factor * w.z, values[v].w * factor * w.w));
  }
}

constexpr int kRopeWarps = 8;

// One warp takes one head of one token; a lane holds two neighbouring pairs (i, i + D / 2), so every
// access is of four bytes.
template <int D>
__global__ __launch_bounds__(kRopeWarps * kWarp) void rope_kernel(RopeArguments a) {
  constexpr int kHalf = D / 2;
  const int token = blockIdx.x;
  const int head = static_cast<int>(blockIdx.y) * kRopeWarps + static_cast<int>(threadIdx.x) / kWarp;
  const int all_heads = a.heads + 2 * a.kv_heads;
  const int lane = threadIdx.x % kWarp, i = 2 * lane;
  wait_for_predecessor();
  let_successor_start();
  if (head >= all_heads || i >= kHalf) return;
  const unsigned lanes = kHalf / 2 >= kWarp ? 0xFFFFFFFFu : (1u << (kHalf / 2)) - 1;
  auto* row = static_cast<bf16*>(a.qkv) + (int64_t{token} * all_heads + head) * D;
  const bool is_query = head < a.heads;
  const bool is_value = head >= a.heads + a.kv_heads;
  const auto low_pair = *reinterpret_cast<const uint32_t*>(row + i);
  const auto high_pair = *reinterpret_cast<const uint32_t*>(row + i + kHalf);
  float2 low = make_float2(low_float(low_pair), high_float(low_pair));
  float2 high = make_float2(low_float(high_pair), high_float(high_pair));
  if (a.bias != nullptr) {
    const float* bias = a.bias + head * D + i;
    low = make_float2(low.x + bias[0], low.y + bias[1]);
    high = make_float2(high.x + bias[kHalf], high.y + bias[kHalf + 1]);
  }
  const float* norm = is_value ? nullptr : is_query ? a.q_norm : a.k_norm;
  if (norm != nullptr) {  // the same for all lanes
    float sum = low.x * low.x + low.y * low.y + high.x * high.x + high.y * high.y;
#pragma unroll
    for (int mask = min(kWarp, kHalf / 2) / 2; mask > 0; mask /= 2) {
      sum += __shfl_xor_sync(lanes, sum, mask);
    }
    const float factor = rsqrtf(sum / D + a.epsilon);
    low = make_float2(low.x * factor * norm[i], low.y * factor * norm[i + 1]);
    high = make_float2(high.x * factor * norm[i + kHalf], high.y * factor * norm[i + kHalf + 1]);
  }
  if (!is_value) {
    const int64_t at = int64_t{a.positions[token]} * kHalf + i;
    const float2 c = *reinterpret_cast<const float2*>(a.cosine + at);
    const float2 s = *reinterpret_cast<const float2*>(a.sine + at);
    const float2 first = make_float2(low.x * c.x - high.x * s.x, low.y * c.y - high.y * s.y);
    high = make_float2(high.x * c.x + low.x * s.x, high.y * c.y + low.y * s.y);
    low = first;
  }
  bf16* target = row;
  int at_low = i, at_high = i + kHalf;
  if (!is_query) {
    const int slot = a.slots[token], place = slot % kPageTokens;
    const int kv_head = (head - a.heads) % a.kv_heads;
    target = static_cast<bf16*>(a.pages) +
             (int64_t{slot / kPageTokens} * a.kv_heads + kv_head) * kPageElements<D> +
             (is_value ? kPageTokens * D : 0) + place * D;
    at_low = swizzled<D>(place, at_low / 8) * 8 + at_low % 8;
    at_high = swizzled<D>(place, at_high / 8) * 8 + at_high % 8;
  }
  *reinterpret_cast<uint32_t*>(target + at_low) = pack_bf16(low.x, low.y);
  *reinterpret_cast<uint32_t*>(target + at_high) = pack_bf16(high.x, high.y);
}

constexpr int kSiluThreads = 256;

__device__ inline float silu_times(float gate, float up) { return gate / (1 + __expf(-gate)) * up; }
__device__ inline uint32_t silu_pair(uint32_t gate, uint32_t up) {
  return pack_bf16(silu_times(low_float(gate), low_float(up)),
                   silu_times(high_float(gate), high_float(up)));
}

__global__ void silu_kernel(const bf16* x, int64_t vectors, int n, bf16* y) {
  wait_for_predecessor();
  let_successor_start();
  const int64_t at = int64_t{blockIdx.x} * kSiluThreads + threadIdx.x;
  if (at >= vectors) return;
  const int per_row = n / 8;
  const int64_t row = at / per_row;
  const int64_t i = at - row * per_row;
  const auto* gates = reinterpret_cast<const uint4*>(x) + row * 2 * per_row + i;
  const uint4 gate = gates[0], up = gates[per_row];
  reinterpret_cast<uint4*>(y)[at] =
      make_uint4(silu_pair(gate.x, up.x), silu_pair(gate.y, up.y), silu_pair(gate.z, up.z),
                 silu_pair(gate.w, up.w));
}

constexpr int kChooseThreads = 1024;
constexpr int kAtOnce = 16;  // loads of a thread in flight
constexpr float kLog2E = 1.4426950408889634f;

// Running maximum with its first place, and the sum of exponentials below it.
struct Best {
  float value = -INFINITY, sum = 0;
  int32_t at = INT32_MAX, finite = 1;
};
__device__ inline Best joined(const Best& a, const Best& b) {
  Best out;
  const bool first = a.value > b.value || (a.value == b.value && a.at < b.at);
  out.value = first ? a.value : b.value;
  out.at = first ? a.at : b.at;
  // An empty side has the sum 0 and no maximum: its factor would be exp(-inf + inf).
  out.sum = (a.sum > 0 ? a.sum * __expf(a.value - out.value) : 0) +
            (b.sum > 0 ? b.sum * __expf(b.value - out.value) : 0);
  out.finite = a.finite & b.finite;
  return out;
}
__device__ inline Best shuffled(const Best& a, int mask) {
  Best out;
  out.value = __shfl_xor_sync(0xFFFFFFFFu, a.value, mask);
  out.sum = __shfl_xor_sync(0xFFFFFFFFu, a.sum, mask);
  out.at = __shfl_xor_sync(0xFFFFFFFFu, a.at, mask);
  out.finite = __shfl_xor_sync(0xFFFFFFFFu, a.finite, mask);
  return out;
}

__global__ __launch_bounds__(kChooseThreads) void choose_kernel(const float* logits, int n,
                                                                 int stride, int32_t* tokens,
                                                                 float* logprobs, int32_t* finite) {
  __shared__ Best bests[kChooseThreads / kWarp];
  wait_for_predecessor();
  let_successor_start();
  const float* row = logits + int64_t{blockIdx.x} * stride;
  Best best;
  for (int first = threadIdx.x; first < n; first += kAtOnce * kChooseThreads) {
    float values[kAtOnce];
    float largest = best.value;
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int i = first + j * kChooseThreads;
      values[j] = i < n ? row[i] : -INFINITY;
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int i = first + j * kChooseThreads;
      if (i < n && !isfinite(values[j])) best.finite = 0;
      if (values[j] > largest) best.at = i;
      largest = fmaxf(largest, values[j]);
    }
    // Nothing but infinities below zero so far: their exponentials are 0, not NaN.
    const float reference = largest == -INFINITY ? 0.0f : largest;
    best.sum *= power_of_two((best.value - reference) * kLog2E);
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      best.sum += power_of_two((values[j] - reference) * kLog2E);
    }
    best.value = largest;
  }
  for (int mask = 16; mask > 0; mask /= 2) best = joined(best, shuffled(best, mask));
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  if (lane == 0) bests[warp] = best;
  __syncthreads();
  if (warp != 0) return;
  best = bests[lane];
  for (int mask = 16; mask > 0; mask /= 2) best = joined(best, shuffled(best, mask));
  if (lane != 0) return;
  tokens[blockIdx.x] = best.at < n ? best.at : 0;
  logprobs[blockIdx.x] = -logf(best.sum);
  finite[blockIdx.x] = best.finite;
}

template <int D>
void launch_rope(const RopeArguments& a, Stream stream) {
  const int heads = a.heads + 2 * a.kv_heads;
  launch(rope_kernel<D>,
         dim3(static_cast<unsigned>(a.count),
              static_cast<unsigned>((heads + kRopeWarps - 1) / kRopeWarps)),
         kRopeWarps * kWarp, 0, static_cast<cudaStream_t>(stream), a);
}

}  // namespace

void embed(const int32_t* tokens, const void* embedding, int32_t count, int32_t hidden, float* out,
           Stream stream) {
  launch(embed_kernel, dim3(static_cast<unsigned>(count)), kEmbedThreads, 0,
         static_cast<cudaStream_t>(stream), tokens, static_cast<const bf16*>(embedding), hidden, out);
}

void rms_norm(const float* x, const int32_t* rows, const float* weight, float epsilon, int32_t count,
              int32_t hidden, void* y, Stream stream) {
  const auto run = [&](auto kernel) {
    launch(kernel, dim3(static_cast<unsigned>(count)), kNormThreads, 0,
           static_cast<cudaStream_t>(stream), x, rows, weight, epsilon, hidden,
           static_cast<bf16*>(y));
  };
  const int vectors = (hidden / 4 + kNormThreads - 1) / kNormThreads;
  vectors <= 1   ? run(rms_norm_kernel<1>)
  : vectors <= 2 ? run(rms_norm_kernel<2>)
  : vectors <= 4 ? run(rms_norm_kernel<4>)
                 : run(rms_norm_kernel<8>);
}

void rope_and_store(const RopeArguments& a, Stream stream) {
  switch (a.head_dim) {
    case 16: return launch_rope<16>(a, stream);
    case 32: return launch_rope<32>(a, stream);
    case 64: return launch_rope<64>(a, stream);
    default: return launch_rope<128>(a, stream);
  }
}

void silu_multiply(const void* x, int32_t count, int32_t n, void* y, Stream stream) {
  const int64_t vectors = int64_t{count} * n / 8;
  launch(silu_kernel, dim3(static_cast<unsigned>((vectors + kSiluThreads - 1) / kSiluThreads)),
         kSiluThreads, 0, static_cast<cudaStream_t>(stream), static_cast<const bf16*>(x), vectors, n,
         static_cast<bf16*>(y));
}

void choose_greedy(const float* logits, int32_t count, int32_t n, int32_t stride, int32_t* tokens,
                   float* logprobs, int32_t* finite, Stream stream) {
  launch(choose_kernel, dim3(static_cast<unsigned>(count)), kChooseThreads, 0,
         static_cast<cudaStream_t>(stream), logits, n, stride, tokens, logprobs, finite);
}

}  // namespace prony::kernels::cuda
