// Products of packed rows on AMX tiles; contract in kernels.hpp. A tile holds 16 rows of 64 bytes:
// x lies as packed rows give it, weights as panels give them, sums as 16 x 16 of 32 bits. The work
// on registers is 32 rows x 32 outputs, two tiles each of x and weights and four of sums: every
// loaded tile is used twice, and four independent sums hide the latency of the dot product (52
// cycles; one starts every 16). Inputs go in blocks whose part of a panel stays in the L1 cache
// while all rows pass; the sums wait in y, bit by bit as they are, so that blocking changes
// nothing.
//
// T are the tiles, the processor's (kernels_amx.cpp) or arrays (matmul_amx_test.cpp):
//   load<i>(p, stride) store<i>(p, stride) zero<i>()   tile i, 16 rows of 64 bytes, stride in bytes
//   multiply<int8, s, x, w>()                          tile s += tile x . tile w
// Tiles 0 to 3 are sums (2 row tile + column tile), 4 and 5 rows of x, 6 and 7 weights.
// V are Lanes (lanes.hpp): set1 load load_n store_n add mul to_float_less and
//   iload_n(p, n)                                      the first n of 16 sums of 32 bits
// Source: Intel, "64 and IA-32 Architectures Software Developer's Manual", vol. 2, TDPBF16PS and
// TDPBSUD; "Intel 64 and IA-32 Architectures Optimization Reference Manual", chapter 20.
// Thread safety: pure functions of T's registers, which are the thread's.
#pragma once
#include <cstdint>

#include "prony/kernels/cpu/lanes.hpp"
#include "prony/kernels/kernels.hpp"

namespace prony::kernels::cpu {

inline constexpr int64_t kRowBytes = PackedRows::kRowBytes;
inline constexpr int64_t kTileRows = PackedRows::kTileRows;
inline constexpr int64_t kBlockSteps = 16;  // tiles of inputs in a block: 32 KiB of a panel
// Panels that pass together over a block of inputs: their sums (64 KiB each for 512 rows) and the
// rows' part of the block (512 KiB) stay in the L2 cache.
inline constexpr int64_t kGroupPanels = 8;
inline constexpr int64_t kRegisterRows = 2 * kTileRows;
inline constexpr int64_t kAheadBytes = 4096;  // of weights, while the first rows pass

/// One register block: rows x 32 or 16 outputs over some tiles of the inputs.
struct Block {
  const std::byte* x;  // [kRowTiles], block_bytes, of [steps] tiles
  int64_t block_bytes;
  const std::byte* w;  // [16 steps] lines of the panel
  int64_t w_step;      // bytes of a line: 64 a column tile
  int64_t steps;
  bool resume;  // go on from sums
  void* sums;   // [16 kRowTiles][16 kColumnTiles] of 32 bits
  int64_t sums_stride;
};

template <class T, bool kInt8, int kRowTiles, int kColumnTiles>
PRONY_INLINE void run_block(const Block& b, bool prefetch) {
  constexpr bool kTwoRows = kRowTiles == 2, kTwoColumns = kColumnTiles == 2;
  auto* sums = static_cast<std::byte*>(b.sums);
  std::byte* low = sums + kTileRows * b.sums_stride;
  if (b.resume) {
    T::template load<0>(sums, b.sums_stride);
    if constexpr (kTwoColumns) T::template load<1>(sums + kRowBytes, b.sums_stride);
    if constexpr (kTwoRows) T::template load<2>(low, b.sums_stride);
    if constexpr (kTwoRows && kTwoColumns) T::template load<3>(low + kRowBytes, b.sums_stride);
  } else {
    T::template zero<0>();
    if constexpr (kTwoColumns) T::template zero<1>();
    if constexpr (kTwoRows) T::template zero<2>();
    if constexpr (kTwoRows && kTwoColumns) T::template zero<3>();
  }
  const std::byte* x = b.x;
  const std::byte* w = b.w;
  for (int64_t step = 0; step < b.steps; ++step) {
    if (prefetch) {
      for (int64_t at = 0; at < kTileRows * b.w_step; at += kRowBytes) {
        __builtin_prefetch(w + at + kAheadBytes);
      }
    }
    T::template load<6>(w, b.w_step);
    T::template load<4>(x, kRowBytes);
    T::template multiply<kInt8, 0, 4, 6>();
    if constexpr (kTwoColumns) {
      T::template load<7>(w + kRowBytes, b.w_step);
      T::template multiply<kInt8, 1, 4, 7>();
    }
    if constexpr (kTwoRows) {
      T::template load<5>(x + b.block_bytes, kRowBytes);
      T::template multiply<kInt8, 2, 5, 6>();
      if constexpr (kTwoColumns) T::template multiply<kInt8, 3, 5, 7>();
    }
    x += PackedRows::kTileBytes;
    w += kTileRows * b.w_step;
  }
  T::template store<0>(sums, b.sums_stride);
  if constexpr (kTwoColumns) T::template store<1>(sums + kRowBytes, b.sums_stride);
  if constexpr (kTwoRows) T::template store<2>(low, b.sums_stride);
  if constexpr (kTwoRows && kTwoColumns) T::template store<3>(low + kRowBytes, b.sums_stride);
}

/// The columns of one panel that finish() turns from sums to outputs.
struct Columns {
  const float* scale;  // int8: of the outputs
  const float* bias;   // or null
  int64_t count;       // that exist
};

/// y[rows][count] from sums, which may be y itself; row `first` of the packed rows comes first.
template <class V, bool kInt8>
PRONY_INLINE void finish(const PackedRows& x, int64_t first, int64_t rows, const Columns& c,
                         const float* sums, int64_t sums_stride, float* y, int64_t y_stride) {
  for (int64_t at = 0; at < c.count; at += kLanes) {
    const int64_t left = c.count - at;
    const auto bias = c.bias != nullptr ? V::load_n(c.bias + at, left) : V::set1(0.0f);
    for (int64_t row = 0; row < rows; ++row) {
      const float* sum = sums + row * sums_stride + at;
      auto value = V::load_n(sum, left);
      if constexpr (kInt8) {
        const uint32_t offset = 128u * static_cast<uint32_t>(x.sum[first + row]);
        value = V::mul(
            V::mul(V::to_float_less(V::iload_n(sum, left), offset), V::set1(x.scale[first + row])),
            V::load(c.scale + at));
      }
      if (c.bias != nullptr) value = V::add(value, bias);
      V::store_n(y + row * y_stride + at, value, left);
    }
  }
}

/// A panel and where its outputs go.
struct PanelView {
  const std::byte* w;
  int64_t width;  // columns, padding included
  Columns columns;
  float* y;
};

template <bool kInt8>
PRONY_INLINE PanelView view_of(const MatmulArgs& args, int64_t panel) {
  const PackedMatrix& weight = *args.weight;
  const int64_t column = panel * kPanelColumns;
  const int64_t left = weight.outputs() - column;
  PanelView view{};
  view.width = weight.panel_columns(panel);
  if constexpr (kInt8) {
    view.w = reinterpret_cast<const std::byte*>(weight.panel_i8(panel));
    view.columns.scale = weight.panel_scales(panel);
  } else {
    view.w = reinterpret_cast<const std::byte*>(weight.panel_bf16(panel));
  }
  view.columns.bias = args.bias != nullptr ? args.bias + column : nullptr;
  view.columns.count = left < view.width ? left : view.width;
  view.y = args.y + column;
  return view;
}

/// A block of inputs, tiles [step, step + count) of `steps`, for rows [0, whole) of a full panel;
/// the sums wait in y.
template <class T, class V, bool kInt8>
void amx_input_block(const MatmulArgs& args, const PanelView& panel, int64_t whole, int64_t step,
                     int64_t count, int64_t steps) {
  const PackedRows& x = *args.packed;
  constexpr int64_t kStep = kPanelColumns * 4;
  for (int64_t row = 0; row < whole; row += kRegisterRows) {
    float* y = panel.y + row * args.y_stride;
    run_block<T, kInt8, 2, 2>(
        {.x = x.data + row / kTileRows * x.block_bytes + step * PackedRows::kTileBytes,
         .block_bytes = x.block_bytes,
         .w = panel.w + step * kTileRows * kStep,
         .w_step = kStep,
         .steps = count,
         .resume = step > 0,
         .sums = y,
         .sums_stride = args.y_stride * 4},
        row == 0);
    if (step + count == steps && (kInt8 || panel.columns.bias != nullptr)) {
      finish<V, kInt8>(x, row, kRegisterRows, panel.columns, y, args.y_stride, y, args.y_stride);
    }
  }
}

/// Rows [row, args.rows) of a panel, all inputs at once: what is left of whole register blocks, and
/// narrow panels. The sums are in a buffer, which has room for whole tiles.
template <class T, class V, bool kInt8>
void amx_rest(const MatmulArgs& args, const PanelView& panel, int64_t row, int64_t steps) {
  const PackedRows& x = *args.packed;
  alignas(64) float sums[kRegisterRows * kPanelColumns];
  while (row < args.rows) {
    const int64_t count = args.rows - row < kRegisterRows ? args.rows - row : kRegisterRows;
    const Block block{.x = x.data + row / kTileRows * x.block_bytes,
                      .block_bytes = x.block_bytes,
                      .w = panel.w,
                      .w_step = panel.width * 4,
                      .steps = steps,
                      .resume = false,
                      .sums = sums,
                      .sums_stride = kPanelColumns * 4};
    const bool prefetch = row == 0;
    if (count > kTileRows) {
      if (panel.width == kPanelColumns) {
        run_block<T, kInt8, 2, 2>(block, prefetch);
      } else {
        run_block<T, kInt8, 2, 1>(block, prefetch);
      }
    } else if (panel.width == kPanelColumns) {
      run_block<T, kInt8, 1, 2>(block, prefetch);
    } else {
      run_block<T, kInt8, 1, 1>(block, prefetch);
    }
    finish<V, kInt8>(x, row, count, panel.columns, sums, kPanelColumns,
                     panel.y + row * args.y_stride, args.y_stride);
    row += count;
  }
}

template <class T, class V, bool kInt8>
void amx_panels(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end) {
  const int64_t steps = args.weight->padded_inputs() / (kInt8 ? 64 : 32);
  const int64_t whole = args.rows / kRegisterRows * kRegisterRows;
  for (int64_t group = panel_begin; group < panel_end; group += kGroupPanels) {
    const int64_t end = panel_end - group < kGroupPanels ? panel_end : group + kGroupPanels;
    PanelView panels[kGroupPanels];
    for (int64_t panel = group; panel < end; ++panel) {
      panels[panel - group] = view_of<kInt8>(args, panel);
    }
    for (int64_t step = 0; step < steps && whole > 0; step += kBlockSteps) {
      const int64_t count = steps - step < kBlockSteps ? steps - step : kBlockSteps;
      for (int64_t i = 0; i < end - group; ++i) {
        if (panels[i].columns.count < kPanelColumns) continue;
        amx_input_block<T, V, kInt8>(args, panels[i], whole, step, count, steps);
      }
    }
    for (int64_t i = 0; i < end - group; ++i) {
      const bool full = panels[i].columns.count == kPanelColumns;
      amx_rest<T, V, kInt8>(args, panels[i], full ? whole : 0, steps);
    }
  }
}

}  // namespace prony::kernels::cpu
