// Matrix products of packed rows, bf16 or int8, over Lanes (lanes.hpp), and the packing; contract
// in kernels.hpp. bf16 sums in the order of AMX tiles, so that a processor without them gives the
// same bits, and so that one with them may take few rows here: weights then stream from memory
// through R rows by NV vectors. Thread safety: pure functions.
#pragma once
#include <cstdint>

#include "prony/kernels/cpu/lanes.hpp"
#include "prony/kernels/kernels.hpp"

namespace prony::kernels::cpu {

// Weights are read once a step, each 32-column panel a stream of its own; two KiB ahead keeps a
// core's line-fill buffers busy where the hardware prefetcher stops at a 4 KiB page.
inline constexpr int64_t kPrefetchBytes = 2048;
inline constexpr int64_t kTileInputs = 32;  // of bf16 in one tile row

/// R rows by 16 NV outputs of a product of packed rows; the rows are of one block of 16.
struct PackedTileArgs {
  const std::byte* x;  // the first row in the block's first tile
  const std::byte* w;  // the panel, at the tile's column
  int64_t w_step;      // bytes from a line of the panel to the next
  int64_t inputs;      // padded
  const float* row_scale;
  const int32_t* row_sum;
  const float* scale;  // of the outputs; int8 only
  const float* bias;   // at the tile's column, or null
  float* y;            // [R][valid], y_stride
  int64_t y_stride;
  int64_t valid;  // outputs that exist
};

template <class V>
PRONY_INLINE void store_outputs(const PackedTileArgs& t, int r, int j, typename V::F value) {
  const int64_t column = j * kLanes;
  if (t.bias != nullptr) value = V::add(value, V::load_n(t.bias + column, t.valid - column));
  V::store_n(t.y + r * t.y_stride + column, value, t.valid - column);
}

template <class V, int R, int NV>
PRONY_INLINE void bf16_tile(const PackedTileArgs& t) {
  Tile<V, R, NV> acc;
  PRONY_UNROLL
  for (int r = 0; r < R; ++r) {
    PRONY_UNROLL
    for (int j = 0; j < NV; ++j) acc[r][j] = V::zero();
  }
  const std::byte* w = t.w;
  for (int64_t k = 0; k < t.inputs; k += kTileInputs) {
    Tile<V, R, NV> even, odd;
    PRONY_UNROLL
    for (int r = 0; r < R; ++r) {
      PRONY_UNROLL
      for (int j = 0; j < NV; ++j) even[r][j] = odd[r][j] = V::zero();
    }
    const std::byte* x = t.x + k / kTileInputs * PackedRows::kTileBytes;
    for (int pair = 0; pair < kTileInputs / 2; ++pair) {
      Row<V, NV> w_even, w_odd;
      PRONY_UNROLL
      for (int j = 0; j < NV; ++j) {
        V::load_pairs(reinterpret_cast<const quant::Bf16*>(w + j * 64), w_even[j], w_odd[j]);
        __builtin_prefetch(w + j * 64 + kPrefetchBytes);
      }
      PRONY_UNROLL
      for (int r = 0; r < R; ++r) {
        typename V::F x_even, x_odd;
        V::broadcast_pair(reinterpret_cast<const quant::Bf16*>(x + r * PackedRows::kRowBytes),
                          x_even, x_odd);
        PRONY_UNROLL
        for (int j = 0; j < NV; ++j) {
          even[r][j] = V::fma(x_even, w_even[j], even[r][j]);
          odd[r][j] = V::fma(x_odd, w_odd[j], odd[r][j]);
        }
      }
      x += 4;
      w += t.w_step;
    }
    PRONY_UNROLL
    for (int r = 0; r < R; ++r) {
      PRONY_UNROLL
      for (int j = 0; j < NV; ++j) acc[r][j] = V::add(acc[r][j], V::add(even[r][j], odd[r][j]));
    }
  }
  PRONY_UNROLL
  for (int r = 0; r < R; ++r) {
    PRONY_UNROLL
    for (int j = 0; j < NV; ++j) store_outputs<V>(t, r, j, acc[r][j]);
  }
}

template <class V, int R, int NV>
PRONY_INLINE void int8_tile(const PackedTileArgs& t) {
  typename V::I acc[static_cast<size_t>(R)][static_cast<size_t>(NV)];
  PRONY_UNROLL
  for (int r = 0; r < R; ++r) {
    PRONY_UNROLL
    for (int j = 0; j < NV; ++j) acc[r][j] = V::izero();
  }
  const std::byte* w = t.w;
  const auto* tile = reinterpret_cast<const int8_t*>(t.x);
  for (int64_t k = 0; k < t.inputs; k += PackedRows::kRowBytes) {
    const int8_t* x = tile;
    for (int four = 0; four < PackedRows::kRowBytes / 4; ++four) {
      PRONY_UNROLL
      for (int j = 0; j < NV; ++j) __builtin_prefetch(w + j * 64 + kPrefetchBytes);
      PRONY_UNROLL
      for (int r = 0; r < R; ++r) {
        const auto bytes = V::broadcast4(x + r * PackedRows::kRowBytes);
        PRONY_UNROLL
        for (int j = 0; j < NV; ++j) {
          acc[r][j] = V::dot4(acc[r][j], reinterpret_cast<const uint8_t*>(w + j * 64), bytes);
        }
      }
      x += 4;
      w += t.w_step;
    }
    tile += PackedRows::kTileBytes;
  }
  PRONY_UNROLL
  for (int r = 0; r < R; ++r) {
    const auto row_scale = V::set1(t.row_scale[r]);
    const uint32_t offset = 128u * static_cast<uint32_t>(t.row_sum[r]);
    PRONY_UNROLL
    for (int j = 0; j < NV; ++j) {
      const auto sum = V::to_float_less(acc[r][j], offset);
      store_outputs<V>(t, r, j, V::mul(V::mul(sum, row_scale), V::load(t.scale + j * kLanes)));
    }
  }
}

// A function of its own: among its callers' variables the compiler keeps sums in memory.
template <class V, bool kInt8, int R, int NV>
[[gnu::noinline]] void packed_tile(const PackedTileArgs& t) {
  if constexpr (kInt8) {
    int8_tile<V, R, NV>(t);
  } else {
    bf16_tile<V, R, NV>(t);
  }
}

/// Up to 16 rows of a block: as many at once as registers hold, then four, then one by one.
template <class V, bool kInt8, int NV>
PRONY_INLINE void packed_block(PackedTileArgs t, int64_t rows) {
  constexpr int kMost = V::kPackedRows;
  const auto advance = [&](int64_t count) {
    t.x += count * PackedRows::kRowBytes;
    t.y += count * t.y_stride;
    if constexpr (kInt8) {
      t.row_scale += count;
      t.row_sum += count;
    }
    rows -= count;
  };
  if constexpr (kMost > 1) {
    while (rows >= kMost) {
      packed_tile<V, kInt8, kMost, NV>(t);
      advance(kMost);
    }
  }
  if constexpr (kMost > 4) {
    while (rows >= 4) {
      packed_tile<V, kInt8, 4, NV>(t);
      advance(4);
    }
  }
  while (rows > 0) {
    packed_tile<V, kInt8, 1, NV>(t);
    advance(1);
  }
}

/// All rows of the tile's columns.
template <class V, bool kInt8, int NV>
PRONY_INLINE void packed_rows(PackedTileArgs t, int64_t rows, int64_t block_bytes) {
  for (; rows > 0; rows -= PackedRows::kTileRows) {
    packed_block<V, kInt8, NV>(t, rows < PackedRows::kTileRows ? rows : PackedRows::kTileRows);
    t.x += block_bytes;
    t.y += PackedRows::kTileRows * t.y_stride;
    if constexpr (kInt8) {
      t.row_scale += PackedRows::kTileRows;
      t.row_sum += PackedRows::kTileRows;
    }
  }
}

template <class V, bool kInt8>
void matmul_packed_typed(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end) {
  constexpr int64_t kWide = V::kPackedVectors * kLanes;
  const PackedMatrix& w = *args.weight;
  const PackedRows& x = *args.packed;
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    const int64_t columns = w.panel_columns(panel);
    for (int64_t at = 0; at < columns;) {
      const int64_t column = panel * kPanelColumns + at;
      const bool wide = columns - at >= kWide;
      const int64_t width = wide ? kWide : kLanes;
      PackedTileArgs t{};
      t.x = x.data;
      t.w_step = columns * 4;
      t.inputs = w.padded_inputs();
      if constexpr (kInt8) {
        t.w = reinterpret_cast<const std::byte*>(w.panel_i8(panel)) + at * 4;
        t.row_scale = x.scale;
        t.row_sum = x.sum;
        t.scale = w.panel_scales(panel) + at;
      } else {
        t.w = reinterpret_cast<const std::byte*>(w.panel_bf16(panel)) + at * 4;
      }
      t.bias = args.bias != nullptr ? args.bias + column : nullptr;
      t.y = args.y + column;
      t.y_stride = args.y_stride;
      t.valid = w.outputs() - column < width ? w.outputs() - column : width;
      if (wide) {
        packed_rows<V, kInt8, V::kPackedVectors>(t, args.rows, x.block_bytes);
      } else {
        packed_rows<V, kInt8, 1>(t, args.rows, x.block_bytes);
      }
      at += width;
    }
  }
}

template <class V>
void matmul_packed(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end) {
  if (args.packed->dtype == Dtype::kI8) {
    matmul_packed_typed<V, true>(args, panel_begin, panel_end);
  } else {
    matmul_packed_typed<V, false>(args, panel_begin, panel_end);
  }
}

/// Inputs of a packed row, padding included.
PRONY_INLINE int64_t packed_inputs(Dtype dtype, int64_t inputs) {
  const int64_t tile = dtype == Dtype::kI8 ? 64 : kTileInputs;
  return (inputs + tile - 1) / tile * tile;
}

/// Where input i of a row lies that begins at `row`; 16 of them lie together.
template <class Element>
PRONY_INLINE Element* packed_at(std::byte* row, int64_t i) {
  const int64_t byte = i * static_cast<int64_t>(sizeof(Element));
  return reinterpret_cast<Element*>(row + byte / PackedRows::kRowBytes * PackedRows::kTileBytes +
                                    byte % PackedRows::kRowBytes);
}

template <class V>
void pack_row_int8(const float* x, int64_t inputs, int64_t padded, std::byte* out, float* scale,
                   int32_t* sum) {
  using F = typename V::F;
  const F zero = V::zero();
  F largest = zero;
  F poison = zero;  // 0 x is 0 for every finite x and NaN for the others
  for (int64_t i = 0; i < inputs; i += kLanes) {
    const F v = V::load_n(x + i, inputs - i);
    poison = V::fma(v, zero, poison);
    largest = V::max(V::max(v, V::sub(zero, v)), largest);
  }
  const float most = V::reduce_max(largest);
  const float invalid = V::reduce_add(poison);  // 0 or NaN
  const bool nothing = !(most >= 1e-30f) || invalid != 0.0f;
  const F inverse = V::set1(nothing ? 0.0f : 127.0f / most);
  const F magic = V::set1(0x1.8p23f);  // adding it rounds to an integer in the low bits
  const F top = V::set1(127.0f);
  const F bottom = V::set1(-127.0f);
  F total = zero;
  for (int64_t i = 0; i < padded; i += kLanes) {
    // min and max take the bound if v is a NaN.
    const F v = V::mul(V::load_n(x + i, inputs - i), inverse);
    const F shifted = V::add(V::max(V::min(v, top), bottom), magic);
    V::store_low_bytes(packed_at<int8_t>(out, i), shifted);
    total = V::add(total, V::sub(shifted, magic));
  }
  *scale = nothing ? invalid : most / 127.0f;
  // Exact: lanes hold integers below 2^24.
  *sum = static_cast<int32_t>(V::reduce_add(total));
}

template <class V>
void pack_rows_kernel(const PackRowsArgs& args) {
  const PackedRows& to = *args.to;
  const int64_t padded = packed_inputs(to.dtype, args.inputs);
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* x = args.x + row * args.x_stride;
    const int64_t at = args.first + row;
    std::byte* out = to.data + at / PackedRows::kTileRows * to.block_bytes +
                     at % PackedRows::kTileRows * PackedRows::kRowBytes;
    if (to.dtype == Dtype::kI8) {
      pack_row_int8<V>(x, args.inputs, padded, out, to.scale + at, to.sum + at);
      continue;
    }
    for (int64_t i = 0; i < padded; i += kLanes) {
      V::store_bf16_n(packed_at<quant::Bf16>(out, i), V::load_n(x + i, args.inputs - i), kLanes);
    }
  }
}

}  // namespace prony::kernels::cpu
