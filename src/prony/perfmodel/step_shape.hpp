// StepShape: what one forward step is asked to compute, as numbers: how many new tokens each row
// has, how many it finds in the KV cache, and whether it needs logits. Any mixed batch is such a
// list; a decode is a row of one new token. Rows that are equal can be added together.
// Thread safety: none for add() and clear(); const calls from any thread.
// Source: formulas of causal attention, counted pair by pair in step_shape_test.cpp.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace prony::perfmodel {

struct StepRow {
  int64_t context = 0;     // tokens in the KV cache before the step: position of the first new one
  int64_t new_tokens = 1;  // computed in this step, >= 1
  bool samples = true;     // needs logits of its last token
};

/// Kernels differ between the two, so their work is kept apart. A row of one new token is a decode
/// whatever it follows, because it is computed as one.
enum class RowKind { kPrefill, kDecode };

/// Work that rows ask of one attention layer.
struct AttentionLoad {
  int64_t rows = 0;
  int64_t queries = 0;  // new tokens
  int64_t keys = 0;     // positions read from the cache, new ones included, once a row
  double pairs = 0;     // (query, key) pairs under the causal mask and the window
};

/// One row: `window` is how many positions a query sees, itself included; nullopt for all.
AttentionLoad attention_load(const StepRow& row, std::optional<int32_t> window);

class StepShape {
 public:
  struct Rows {
    StepRow row;
    int64_t count = 1;
  };

  /// Requires row.context >= 0, row.new_tokens >= 1, count >= 1 (checked). Allocates only while the
  /// number of distinct add() calls grows beyond every earlier step's.
  void add(const StepRow& row, int64_t count = 1);
  /// Forgets the rows and keeps the memory.
  void clear();

  int64_t tokens() const { return tokens_; }    // new tokens of all rows
  int64_t samples() const { return samples_; }  // rows that need logits
  int64_t sequences() const { return sequences_; }
  bool empty() const { return rows_.empty(); }
  std::span<const Rows> rows() const { return rows_; }

  AttentionLoad load(RowKind kind, std::optional<int32_t> window) const;

 private:
  std::vector<Rows> rows_;
  int64_t tokens_ = 0, samples_ = 0, sequences_ = 0;
};

}  // namespace prony::perfmodel
