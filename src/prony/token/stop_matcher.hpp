// StopMatcher: finds stop strings in a stream of text pieces, also across pieces, and lets out only
// text that can no longer be part of a stop. Held back is exactly the longest suffix seen so far
// that begins some stop. The result does not depend on how the text is cut: the stop that *ends*
// first wins, and of those that end together the longest.
// Source: Aho & Corasick, "Efficient string matching", CACM 18(6), 1975.
// Thread safety: none; one per stream.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"

namespace prony::token {

class StopMatcher {
 public:
  /// Never stops and holds nothing back.
  StopMatcher() = default;
  /// With `include_stop` the text let out ends with the stop instead of before it.
  /// Error: kInvalidArgument if a stop is empty or not UTF-8, naming its place in the list; a stop
  /// of whole characters is what makes the text let out end on whole characters.
  static Result<StopMatcher> create(const std::vector<std::string>& stops,
                                    bool include_stop = false);

  /// Takes the next piece (whole characters) and appends to `out` what may be shown now. True when
  /// a stop is complete: the stream is over and what follows it in `text` is dropped.
  /// Requires !stopped() (checked).
  bool push(std::string_view text, std::string& out);
  /// End without a stop: appends what was held back.
  void flush(std::string& out);

  bool stopped() const noexcept { return matched_.has_value(); }
  /// Index in `stops` of the stop that matched.
  std::optional<size_t> matched() const noexcept { return matched_; }
  size_t held_bytes() const noexcept { return held_.size(); }

 private:
  struct Node {
    int32_t parent = 0, first_child = -1, next_sibling = -1;
    int32_t fail = 0;   // node of the longest proper suffix that begins a stop
    int32_t depth = 0;  // bytes from the root
    int32_t stop = -1;  // longest stop that ends here: index, or -1
    uint8_t byte = 0;
  };
  int32_t child(int32_t node, uint8_t byte) const;
  void insert(std::string_view stop, int32_t index);
  void link();

  std::vector<Node> nodes_;  // [0] is the root; empty if there are no stops
  std::vector<size_t> stop_bytes_;
  bool include_stop_ = false;
  int32_t state_ = 0;
  std::string held_;  // always nodes_[state_].depth bytes
  std::optional<size_t> matched_;
};

}  // namespace prony::token
