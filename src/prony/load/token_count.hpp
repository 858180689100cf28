// TokenCount: how many tokens a request brought, and how many each of its events, from what the
// server says: usage (taken last, never summed), token ids, or, failing those, the events.
// Definitions: docs/metrics.md (N, ITL). Thread safety: none; one a stream.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "prony/load/delta.hpp"
#include "prony/record/request_row.hpp"

namespace prony::load {

class TokenCount {
 public:
  void reset() { *this = TokenCount(); }

  /// Every chunk of the stream, in order. Returns the tokens of a token-bearing one, 0 if unknown.
  int32_t on_chunk(const Delta& delta);

  struct Total {
    std::optional<int32_t> tokens;
    record::TokenSource source = record::TokenSource::kNone;
    bool per_event_exact = false;
  };
  /// `ended`: the end marker came, so a usage after the last token is the final one. `events` are
  /// the token-bearing ones; their counts are filled in where the total proves them: usage equal to
  /// the number of events means one token each.
  Total finish(bool ended, std::span<record::TokenEvent> events) const;

  int32_t prompt_tokens() const { return prompt_tokens_; }  // -1: the server said nothing

 private:
  int32_t events_ = 0;
  int64_t ids_total_ = 0;
  bool ids_in_all_ = true;        // every token-bearing event so far listed its ids
  bool usage_in_all_ = true;      // ... carried a usage that had grown
  int32_t usage_counted_ = 0;     // completion_tokens at the last token-bearing event
  int32_t usage_last_ = -1;       // completion_tokens of the last usage at all
  bool usage_after_all_ = false;  // no token-bearing event after that one
  int32_t prompt_tokens_ = -1;
};

}  // namespace prony::load
