// Paged causal attention over Lanes (lanes.hpp); contract in kernels.hpp. A tile is up to R rows
// (query token, head) that read the same kv head, a block some tiles. It walks the context in spans
// of 64 tokens = four pages: scores of a span (lanes are tokens, keys lie transposed), running
// maximum and sum, then the weighted values (lanes are dimensions). A row's result depends on its
// own position alone: the spans are counted from position 0, a row ignores what lies behind it or
// before its window, and its values are added in the order of positions. Source of the running
// maximum: Milakov & Gimelshein, "Online normalizer calculation for softmax", 2018; over blocks:
// Dao et al., "FlashAttention", NeurIPS 2022. Thread safety: pure functions.
#pragma once
#include <cstdint>

#include "prony/kernels/cpu/elementwise_impl.hpp"
#include "prony/kernels/cpu/lanes.hpp"
#include "prony/kernels/kernels.hpp"

namespace prony::kernels::cpu {

inline constexpr int kSpanPages = 4;
inline constexpr int64_t kSpanTokens = int64_t{kSpanPages} * kPageTokens;
// Tiles that share one walk: a span is brought into the L1 cache, and from bf16 to floats, once.
inline constexpr int kBlockTiles = 8;
// Keys and values a token that are widened: 64 KiB a span. Wider heads (latent attention) are read
// as they lie, by each tile.
inline constexpr int64_t kWidenedElements = 256;
// Weights of a row when a span is fully masked or not yet seen: exp of it is exactly 0.
inline constexpr float kMinusInfinity = -__builtin_inff();

template <class V>
PRONY_INLINE typename V::F load_kv(const float* p) {
  return V::load(p);
}
template <class V>
PRONY_INLINE typename V::F load_kv(const quant::Bf16* p) {
  return V::load_bf16(p);
}

/// Rows of one tile and what is known of each so far.
template <class V, int R>
struct AttentionTile {
  static constexpr size_t kCount = static_cast<size_t>(R);
  const float* q[kCount];  // [head_dim]
  float* out[kCount];      // [value_dim]
  int32_t position[kCount];
  int32_t begin[kCount];                          // first position that the row sees
  float largest[kCount];                          // running maximum of the scores
  Row<V, R> sum;                                  // running sums of exp(score - largest), by lane
  alignas(64) float weight[kCount][kSpanTokens];  // of the current span
  float* acc[kCount];   // [value_stride] running weighted sum of the values
  int64_t first, last;  // positions that any row sees
};

PRONY_INLINE int32_t clamp_to_span(int64_t tokens) {
  return static_cast<int32_t>(tokens < 0 ? 0 : tokens > kSpanTokens ? kSpanTokens : tokens);
}
/// Tokens [first_visible, visible) of the span at `span_begin` are those that row r sees; none if
/// first_visible is not less.
template <class V, int R>
PRONY_INLINE int32_t visible(const AttentionTile<V, R>& t, int r, int64_t span_begin) {
  return clamp_to_span(t.position[r] + 1 - span_begin);
}
template <class V, int R>
PRONY_INLINE int32_t first_visible(const AttentionTile<V, R>& t, int r, int64_t span_begin) {
  return clamp_to_span(t.begin[r] - span_begin);
}

/// Scores of the span, softmax weights into t.weight, rescaling of what was summed before.
template <class V, int R, class Element>
PRONY_INLINE void score_span(const AttentionArgs& args, AttentionTile<V, R>& t,
                             const Element* const (&keys)[kSpanPages], int64_t span_begin) {
  using F = typename V::F;
  const int32_t head_dim = args.kv->head_dim;
  Tile<V, R, kSpanPages> score;
  PRONY_UNROLL
  for (int r = 0; r < R; ++r) {
    PRONY_UNROLL
    for (int j = 0; j < kSpanPages; ++j) score[r][j] = V::zero();
  }
  for (int32_t d = 0; d < head_dim; ++d) {
    Row<V, kSpanPages> key;
    PRONY_UNROLL
    for (int j = 0; j < kSpanPages; ++j) key[j] = load_kv<V>(keys[j] + d * kPageTokens);
    PRONY_UNROLL
    for (int r = 0; r < R; ++r) {
      const F q = V::set1(t.q[r][d]);
      PRONY_UNROLL
      for (int j = 0; j < kSpanPages; ++j) score[r][j] = V::fma(q, key[j], score[r][j]);
    }
  }
  const F scale = V::set1(args.scale);
  for (int r = 0; r < R; ++r) {
    const int32_t count = visible(t, r, span_begin);
    const int32_t skipped = first_visible(t, r, span_begin);
    if (skipped >= count) continue;
    const F masked = V::set1(kMinusInfinity);
    Row<V, kSpanPages> s;
    for (int j = 0; j < kSpanPages; ++j) {
      s[j] = V::mul(score[r][j], scale);
      if (args.softcap > 0) {
        const F cap = V::set1(args.softcap);
        s[j] = V::mul(cap, tanh_lanes<V>(V::div(s[j], cap)));
      }
      s[j] = V::keep(s[j], count - j * kPageTokens, masked);
      if (skipped > 0) s[j] = V::keep(masked, skipped - j * kPageTokens, s[j]);
    }
    const float span_largest = V::reduce_max(V::max(V::max(s[0], s[1]), V::max(s[2], s[3])));
    if (!(span_largest <= t.largest[r])) {  // also if it is a NaN: the result must show it
      const F shrink = exp_lanes<V>(V::set1(t.largest[r] - span_largest));
      t.sum[r] = V::mul(t.sum[r], shrink);
      for (int64_t d = 0; d < args.kv->value_stride; d += kLanes) {
        V::store(t.acc[r] + d, V::mul(V::load(t.acc[r] + d), shrink));
      }
      t.largest[r] = span_largest;
    }
    const F largest = V::set1(t.largest[r]);
    for (int j = 0; j < kSpanPages; ++j) {
      s[j] = V::keep(exp_lanes<V>(V::sub(s[j], largest)), count - j * kPageTokens, V::zero());
      if (skipped > 0) s[j] = V::keep(V::zero(), skipped - j * kPageTokens, s[j]);
      V::store(t.weight[r] + j * kPageTokens, s[j]);
    }
    t.sum[r] = V::add(t.sum[r], V::add(V::add(s[0], s[1]), V::add(s[2], s[3])));
  }
}

/// acc[row_begin, row_end)[d .. d + 16 NV) += weight * value for the span's tokens [begin, end).
template <class V, int R, int ROWS, int NV, class Element>
PRONY_INLINE void add_values(AttentionTile<V, R>& t, int row, int64_t d, int32_t begin, int32_t end,
                             const Element* const (&values)[kSpanPages], int64_t value_stride) {
  Tile<V, ROWS, NV> acc;
  PRONY_UNROLL
  for (int r = 0; r < ROWS; ++r) {
    PRONY_UNROLL
    for (int j = 0; j < NV; ++j) acc[r][j] = V::load(t.acc[row + r] + d + j * kLanes);
  }
  for (int32_t token = begin; token < end; ++token) {
    const Element* value = values[token / kPageTokens] + token % kPageTokens * value_stride + d;
    Row<V, NV> v;
    PRONY_UNROLL
    for (int j = 0; j < NV; ++j) v[j] = load_kv<V>(value + j * kLanes);
    PRONY_UNROLL
    for (int r = 0; r < ROWS; ++r) {
      const auto weight = V::set1(t.weight[row + r][token]);
      PRONY_UNROLL
      for (int j = 0; j < NV; ++j) acc[r][j] = V::fma(weight, v[j], acc[r][j]);
    }
  }
  PRONY_UNROLL
  for (int r = 0; r < ROWS; ++r) {
    PRONY_UNROLL
    for (int j = 0; j < NV; ++j) V::store(t.acc[row + r] + d + j * kLanes, acc[r][j]);
  }
}

/// One span's values for all rows: together where all rows see, each row alone before and after.
template <class V, int R, int NV, class Element>
PRONY_INLINE void add_values_of_rows(AttentionTile<V, R>& t, int64_t d, int64_t span_begin,
                                     const Element* const (&values)[kSpanPages],
                                     int64_t value_stride) {
  int32_t begin = 0, end = static_cast<int32_t>(kSpanTokens);  // what all rows see
  for (int r = 0; r < R; ++r) {
    const int32_t count = visible(t, r, span_begin), skipped = first_visible(t, r, span_begin);
    end = count < end ? count : end;
    begin = skipped > begin ? skipped : begin;
  }
  const bool shared = begin < end;
  for (int r = 0; r < R; ++r) {
    const int32_t count = visible(t, r, span_begin), skipped = first_visible(t, r, span_begin);
    const int32_t alone_end = shared ? begin : count;
    if (skipped < alone_end) {
      add_values<V, R, 1, NV>(t, r, d, skipped, alone_end, values, value_stride);
    }
  }
  if (!shared) return;
  add_values<V, R, R, NV>(t, 0, d, begin, end, values, value_stride);
  for (int r = 0; r < R; ++r) {
    const int32_t count = visible(t, r, span_begin);
    if (count > end) add_values<V, R, 1, NV>(t, r, d, end, count, values, value_stride);
  }
}

/// One span for one tile.
template <class V, int R, class Element>
void attend_span(const AttentionArgs& args, AttentionTile<V, R>& t,
                 const Element* const (&keys)[kSpanPages],
                 const Element* const (&values)[kSpanPages], int64_t span) {
  const int64_t value_stride = args.kv->value_stride;
  score_span<V, R>(args, t, keys, span);
  int64_t d = 0;
  for (; d + 4 * kLanes <= value_stride; d += 4 * kLanes) {
    add_values_of_rows<V, R, 4>(t, d, span, values, value_stride);
  }
  for (; d < value_stride; d += kLanes) {
    add_values_of_rows<V, R, 1>(t, d, span, values, value_stride);
  }
}

template <class V, class Element>
PRONY_INLINE void widen(const Element* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; i += kLanes) V::store(to + i, load_kv<V>(from + i));
}

template <class V, int R, class Element>
void attention_block(const AttentionArgs& args, int32_t kv_head, AttentionTile<V, R>* tiles,
                     int count) {
  const KvLayout& kv = *args.kv;
  const int64_t value_stride = kv.value_stride;
  const int64_t key_count = int64_t{kPageTokens} * kv.head_dim;
  const int64_t value_count = int64_t{kPageTokens} * value_stride;
  const int64_t key_offset = key_count * kv_head;
  const int64_t value_offset = key_count * kv.kv_heads + value_count * kv_head;
  int64_t first = tiles[0].first, last = 0;
  for (int i = 0; i < count; ++i) {
    first = tiles[i].first < first ? tiles[i].first : first;
    last = tiles[i].last > last ? tiles[i].last : last;
  }
  const bool widened =
      sizeof(Element) == 2 && count > 1 && kv.head_dim + value_stride <= kWidenedElements;
  alignas(64) float floats[kSpanTokens * kWidenedElements];
  for (int64_t span = first / kSpanTokens * kSpanTokens; span <= last; span += kSpanTokens) {
    const Element* keys[kSpanPages];
    const Element* values[kSpanPages];
    const float* float_keys[kSpanPages];
    const float* float_values[kSpanPages];
    for (int64_t j = 0; j < kSpanPages; ++j) {
      // Pages behind the last position do not exist: their lanes are masked, so any page will do.
      const int64_t begin = span + j * kPageTokens;
      const int64_t index = (begin <= last ? begin : span) / kPageTokens;
      const auto* page =
          reinterpret_cast<const Element*>(kv.layer + args.pages[index] * kv.page_bytes);
      keys[j] = page + key_offset;
      values[j] = page + value_offset;
      if (!widened) continue;
      float* at = floats + j * (key_count + value_count);
      float_keys[j] = at;
      float_values[j] = at + key_count;
      widen<V>(keys[j], key_count, at);
      widen<V>(values[j], value_count, at + key_count);
    }
    for (int i = 0; i < count; ++i) {
      if (tiles[i].last < span || tiles[i].first >= span + kSpanTokens) continue;
      if (widened) {
        attend_span<V, R>(args, tiles[i], float_keys, float_values, span);
      } else {
        attend_span<V, R>(args, tiles[i], keys, values, span);
      }
    }
  }
  for (int i = 0; i < count; ++i) {
    for (int r = 0; r < R; ++r) {
      const auto inverse = V::set1(1.0f / V::reduce_add(tiles[i].sum[r]));
      for (int32_t d = 0; d < kv.value_dim; d += kLanes) {
        V::store_n(tiles[i].out[r] + d, V::mul(V::load(tiles[i].acc[r] + d), inverse),
                   kv.value_dim - d);
      }
    }
  }
}

/// Rows [row, row + R) of the kv head, numbered token by token: row = token group + head.
template <class V, int R>
void start_tile(const AttentionArgs& args, int32_t kv_head, int64_t row, float* acc,
                AttentionTile<V, R>& tile) {
  const int64_t group = args.heads / args.kv->kv_heads;
  const int64_t value_stride = args.kv->value_stride;
  for (int r = 0; r < R; ++r) {
    const int64_t token = (row + r) / group;
    const int64_t head = kv_head * group + (row + r) % group;
    tile.q[r] = args.q + token * args.q_stride + head * args.kv->head_dim;
    tile.out[r] = args.out + token * args.out_stride + head * args.kv->value_dim;
    tile.position[r] = args.first_position + static_cast<int32_t>(token);
    const int32_t hidden = tile.position[r] + 1 - args.window;
    tile.begin[r] = args.window > 0 && hidden > 0 ? hidden : 0;
    tile.largest[r] = kMinusInfinity;
    tile.sum[r] = V::zero();
    tile.acc[r] = acc + r * value_stride;
    for (int64_t d = 0; d < value_stride; d += kLanes) V::store(tile.acc[r] + d, V::zero());
  }
  tile.first = tile.begin[0];  // rows come in the order of positions
  tile.last = tile.position[R - 1];
}

template <class V, int R, class Element>
void attention_rows(const AttentionArgs& args, int32_t kv_head, int64_t row_begin,
                    int64_t row_end) {
  AttentionTile<V, R> tiles[kBlockTiles];
  alignas(64) float acc[static_cast<size_t>(kBlockTiles * R * kMaxValueDim)];
  int64_t row = row_begin;
  while (row + R <= row_end) {
    int count = 0;
    for (; count < kBlockTiles && row + R <= row_end; ++count, row += R) {
      start_tile<V, R>(args, kv_head, row, acc + count * R * args.kv->value_stride, tiles[count]);
    }
    attention_block<V, R, Element>(args, kv_head, tiles, count);
  }
  if constexpr (R > 1) {
    if (row < row_end) attention_rows<V, R - 1, Element>(args, kv_head, row, row_end);
  }
}

template <class V>
void attention_kernel(const AttentionArgs& args, int32_t kv_head, int64_t row_begin,
                      int64_t row_end) {
  if (args.kv->dtype == Dtype::kF32) {
    attention_rows<V, V::kAttentionRows, float>(args, kv_head, row_begin, row_end);
  } else {
    attention_rows<V, V::kAttentionRows, quant::Bf16>(args, kv_head, row_begin, row_end);
  }
}

template <class V, class Element>
PRONY_INLINE void store_lanes(Element* p, typename V::F f, int64_t n) {
  if constexpr (sizeof(Element) == 4) {
    V::store_n(p, f, n);
  } else {
    V::store_bf16_n(p, f, n);
  }
}

template <class V, class Element>
void store_kv_typed(const StoreKvArgs& args) {
  const KvLayout& kv = *args.kv;
  auto* keys = reinterpret_cast<Element*>(kv.layer + args.page * kv.page_bytes);
  Element* values = keys + int64_t{kPageTokens} * kv.kv_heads * kv.head_dim;
  for (int32_t head = 0; head < kv.kv_heads; ++head) {
    const float* key = args.key + int64_t{head} * kv.head_dim;
    const float* value = args.value + int64_t{head} * kv.value_dim;
    Element* key_tile = keys + int64_t{kPageTokens} * kv.head_dim * head + args.slot;
    Element* value_row = values + (int64_t{kPageTokens} * head + args.slot) * kv.value_stride;
    for (int32_t d = 0; d < kv.head_dim; d += kLanes) {
      const int64_t count = kv.head_dim - d < kLanes ? kv.head_dim - d : kLanes;
      Element column[kLanes];  // the key goes down a column of the transposed page
      store_lanes<V>(column, V::load_n(key + d, count), count);
      for (int64_t i = 0; i < count; ++i) key_tile[(d + i) * kPageTokens] = column[i];
    }
    for (int32_t d = 0; d < kv.value_dim; d += kLanes) {
      const int64_t count = kv.value_dim - d < kLanes ? kv.value_dim - d : kLanes;
      store_lanes<V>(value_row + d, V::load_n(value + d, count), count);
    }
  }
}

template <class V>
void store_kv_kernel(const StoreKvArgs& args) {
  if (args.kv->dtype == Dtype::kF32) {
    store_kv_typed<V, float>(args);
  } else {
    store_kv_typed<V, quant::Bf16>(args);
  }
}

}  // namespace prony::kernels::cpu
