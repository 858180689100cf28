// Matrix product over Lanes (lanes.hpp); contract in kernels.hpp. Register tile: MR rows of x by NV
// vectors of 16 outputs, each accumulator one chain over k. Few rows (decode) run through the whole
// k once with four vectors, so that four chains hide the latency of fma while weights stream from
// memory. More rows run in blocks of k whose half-panel stays in the L1 cache while all rows pass;
// the chain goes on through y, whose fp32 load and store change no bit.
// Source of the blocking: Goto & van de Geijn, "Anatomy of high-performance matrix multiplication",
// ACM TOMS 34(3), 2008. Thread safety: pure functions.
#pragma once
#include <cstdint>

#include "prony/kernels/cpu/lanes.hpp"
#include "prony/kernels/cpu/matmul_packed_impl.hpp"
#include "prony/kernels/kernels.hpp"

namespace prony::kernels::cpu {

inline constexpr int64_t kBlockInputs = 256;  // 256 x 32 floats = 32 KiB: two thirds of L1

/// One register tile over the inputs [k_begin, k_end).
template <class Element>
struct TileArgs {
  const float* x;  // [MR][k], x_stride
  int64_t x_stride;
  const Element* w[2];  // panels of vectors 0, 1 and of 2, 3, at input 0 and the tile's column
  int64_t columns;      // of a panel
  int64_t k_begin, k_end;
  bool resume;        // go on from y
  const float* bias;  // at the tile's column, or null; added at the end
  float* y;           // [MR][valid], y_stride
  int64_t y_stride;
  int64_t valid;  // outputs that exist, at most 16 NV
};

template <class V, int MR, int NV>
PRONY_INLINE void fma_step(const float* x, int64_t x_stride, const Row<V, NV>& w,
                           Tile<V, MR, NV>& acc) {
  PRONY_UNROLL
  for (int m = 0; m < MR; ++m) {
    const auto broadcast = V::set1(x[m * x_stride]);
    PRONY_UNROLL
    for (int j = 0; j < NV; ++j) acc[m][j] = V::fma(broadcast, w[j], acc[m][j]);
  }
}

template <class V, int MR, int NV>
PRONY_INLINE void accumulate(const TileArgs<float>& t, Tile<V, MR, NV>& acc) {
  Row<V, NV> w;
  const int64_t columns = t.columns;
  const float* x = t.x + t.k_begin;
  const float* panel[2] = {t.w[0] + t.k_begin * columns, t.w[1] + t.k_begin * columns};
  for (int64_t k = t.k_begin; k < t.k_end; ++k) {
    PRONY_UNROLL
    for (int j = 0; j < NV; ++j) {
      w[j] = V::load(panel[j / 2] + j % 2 * kLanes);
      if constexpr (NV >= 2) __builtin_prefetch(panel[j / 2] + j % 2 * kLanes + kPrefetchBytes / 4);
    }
    fma_step<V, MR, NV>(x, t.x_stride, w, acc);
    ++x;
    panel[0] += columns;
    panel[1] += columns;
  }
}

template <class V, int MR, int NV>
PRONY_INLINE void accumulate(const TileArgs<quant::Bf16>& t, Tile<V, MR, NV>& acc) {
  Row<V, NV> even, odd;
  const int64_t step = 2 * t.columns;
  const float* x = t.x + t.k_begin;
  const quant::Bf16* panel[2] = {t.w[0] + t.k_begin * t.columns, t.w[1] + t.k_begin * t.columns};
  int64_t k = t.k_begin;
  for (; k + 1 < t.k_end; k += 2) {
    PRONY_UNROLL
    for (int j = 0; j < NV; ++j) {
      V::load_pairs(panel[j / 2] + j % 2 * 2 * kLanes, even[j], odd[j]);
      if constexpr (NV >= 2) {
        __builtin_prefetch(panel[j / 2] + j % 2 * 2 * kLanes + kPrefetchBytes / 2);
      }
    }
    fma_step<V, MR, NV>(x, t.x_stride, even, acc);
    fma_step<V, MR, NV>(x + 1, t.x_stride, odd, acc);
    x += 2;
    panel[0] += step;
    panel[1] += step;
  }
  if (k < t.k_end) {  // x has no partner for the padding zero
    PRONY_UNROLL
    for (int j = 0; j < NV; ++j) V::load_pairs(panel[j / 2] + j % 2 * 2 * kLanes, even[j], odd[j]);
    fma_step<V, MR, NV>(x, t.x_stride, even, acc);
  }
}

template <class V, class Element, int MR, int NV>
void tile(const TileArgs<Element>& t) {
  Tile<V, MR, NV> acc;
  const bool full = t.valid == NV * kLanes;
  PRONY_UNROLL
  for (int m = 0; m < MR; ++m) {
    PRONY_UNROLL
    for (int j = 0; j < NV; ++j) {
      const float* y = t.y + m * t.y_stride + j * kLanes;
      acc[m][j] = !t.resume ? V::zero() : full ? V::load(y) : V::load_n(y, t.valid - j * kLanes);
    }
  }
  accumulate<V, MR, NV>(t, acc);
  PRONY_UNROLL
  for (int j = 0; j < NV; ++j) {
    const int64_t count = full ? kLanes : t.valid - j * kLanes;
    const auto bias = t.bias != nullptr ? V::load_n(t.bias + j * kLanes, count) : V::zero();
    PRONY_UNROLL
    for (int m = 0; m < MR; ++m) {
      const auto value = t.bias != nullptr ? V::add(acc[m][j], bias) : acc[m][j];
      float* y = t.y + m * t.y_stride + j * kLanes;
      if (full) {
        V::store(y, value);
      } else {
        V::store_n(y, value, count);
      }
    }
  }
}

/// tile<V, Element, rows, NV> for rows in [LEAST, MOST].
template <class V, class Element, int LEAST, int MOST, int NV>
PRONY_INLINE void tile_rows(int64_t rows, const TileArgs<Element>& t) {
  if constexpr (LEAST == MOST) {
    tile<V, Element, MOST, NV>(t);
  } else if (rows == MOST) {
    tile<V, Element, MOST, NV>(t);
  } else {
    tile_rows<V, Element, LEAST, MOST - 1, NV>(rows, t);
  }
}

/// All rows in balanced tiles of at most MOST; LEAST is the smallest that can come out of that.
template <class V, class Element, int LEAST, int MOST, int NV>
PRONY_INLINE void balanced_tiles(int64_t rows, const TileArgs<Element>& t) {
  const int64_t tiles = (rows + MOST - 1) / MOST;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t begin = rows * i / tiles;
    const int64_t end = rows * (i + 1) / tiles;
    TileArgs<Element> part = t;
    part.x += begin * t.x_stride;
    part.y += begin * t.y_stride;
    tile_rows<V, Element, LEAST, MOST, NV>(end - begin, part);
  }
}

/// The 16 columns that are left of a narrow panel: any number of rows, in few kinds of tiles
/// because such columns are rare and every kind costs time to compile.
template <class V, class Element>
void narrow_tiles(int64_t rows, const TileArgs<Element>& t) {
  balanced_tiles<V, Element, 1, 4, 1>(rows, t);
}

/// A group of kVectors vectors, more than kSmallRows rows.
template <class V, class Element>
void wide_tiles(int64_t rows, const TileArgs<Element>& t) {
  constexpr int kHalf = (V::kRows + 1) / 2;  // the smaller tile of kRows + 1 rows
  constexpr int kLeast = V::kSmallRows + 1 < kHalf ? V::kSmallRows + 1 : kHalf;
  balanced_tiles<V, Element, kLeast, V::kRows, V::kVectors>(rows, t);
}

/// Panel pointer by element type.
PRONY_INLINE const float* panel_of(const PackedMatrix& w, int64_t panel, const float*) {
  return w.panel_f32(panel);
}
PRONY_INLINE const quant::Bf16* panel_of(const PackedMatrix& w, int64_t panel, const quant::Bf16*) {
  return w.panel_bf16(panel);
}

/// Few rows: the weights are read once, from memory; panels in pairs.
template <class V, class Element>
void matmul_few_rows(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end) {
  const PackedMatrix& w = *args.weight;
  const int64_t step = sizeof(Element) == 4 ? 1 : 2;
  for (int64_t panel = panel_begin; panel < panel_end;) {
    const int64_t column = panel * kPanelColumns;
    const Element* first = panel_of(w, panel, static_cast<const Element*>(nullptr));
    TileArgs<Element> t{};
    t.x = args.x;
    t.x_stride = args.x_stride;
    t.columns = w.panel_columns(panel);
    t.k_end = w.inputs();
    t.bias = args.bias != nullptr ? args.bias + column : nullptr;
    t.y = args.y + column;
    t.y_stride = args.y_stride;
    const int64_t left = w.outputs() - column;
    if (panel + 1 < panel_end && w.panel_columns(panel + 1) == kPanelColumns) {
      t.w[0] = first;
      t.w[1] = panel_of(w, panel + 1, static_cast<const Element*>(nullptr));
      t.valid = left < 2 * kPanelColumns ? left : 2 * kPanelColumns;
      tile_rows<V, Element, 1, V::kSmallRows, 4>(args.rows, t);
      panel += 2;
      continue;
    }
    for (int64_t half = 0; half < t.columns; half += kLanes) {
      TileArgs<Element> narrow = t;
      narrow.w[0] = narrow.w[1] = first + half * step;
      narrow.valid = left - half < kLanes ? left - half : kLanes;
      narrow.y += half;
      if (narrow.bias != nullptr) narrow.bias += half;
      narrow_tiles<V, Element>(args.rows, narrow);
    }
    panel += 1;
  }
}

template <class V, class Element>
void matmul_many_rows(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end) {
  const PackedMatrix& w = *args.weight;
  const int64_t inputs = w.inputs();
  const int64_t step = sizeof(Element) == 4 ? 1 : 2;
  constexpr int64_t kGroup = V::kVectors * kLanes;
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    const Element* base = panel_of(w, panel, static_cast<const Element*>(nullptr));
    const int64_t columns = w.panel_columns(panel);
    for (int64_t k = 0; k == 0 || k < inputs; k += kBlockInputs) {
      const int64_t k_end = inputs - k < kBlockInputs ? inputs : k + kBlockInputs;
      for (int64_t offset = 0; offset < columns;) {
        const int64_t column = panel * kPanelColumns + offset;
        const int64_t left = w.outputs() - column;
        const bool wide = columns - offset >= kGroup;
        const int64_t width = wide ? kGroup : kLanes;
        TileArgs<Element> t{};
        t.x = args.x;
        t.x_stride = args.x_stride;
        t.w[0] = t.w[1] = base + offset * step;
        t.columns = columns;
        t.k_begin = k;
        t.k_end = k_end;
        t.resume = k > 0;
        t.bias = args.bias != nullptr && k_end == inputs ? args.bias + column : nullptr;
        t.y = args.y + column;
        t.y_stride = args.y_stride;
        t.valid = left < width ? left : width;
        if (wide) {
          wide_tiles<V, Element>(args.rows, t);
        } else {
          narrow_tiles<V, Element>(args.rows, t);
        }
        offset += width;
      }
    }
  }
}

template <class V, class Element>
void matmul_typed(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end) {
  if (args.rows <= 0) return;
  if (args.rows <= V::kSmallRows) {
    matmul_few_rows<V, Element>(args, panel_begin, panel_end);
  } else {
    matmul_many_rows<V, Element>(args, panel_begin, panel_end);
  }
}

template <class V>
void matmul_kernel(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end) {
  if (args.packed != nullptr) {
    matmul_packed<V>(args, panel_begin, panel_end);
  } else if (args.weight->dtype() == Dtype::kF32) {
    matmul_typed<V, float>(args, panel_begin, panel_end);
  } else {
    matmul_typed<V, quant::Bf16>(args, panel_begin, panel_end);
  }
}

}  // namespace prony::kernels::cpu
