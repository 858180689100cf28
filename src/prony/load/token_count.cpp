#include "prony/load/token_count.hpp"

#include <algorithm>
#include <limits>

namespace prony::load {

int32_t TokenCount::on_chunk(const Delta& delta) {
  if (delta.has_usage && delta.usage.prompt_tokens >= 0) {
    prompt_tokens_ = delta.usage.prompt_tokens;
  }
  const bool has_count = delta.has_usage && delta.usage.completion_tokens >= 0;
  if (has_count) usage_last_ = delta.usage.completion_tokens;
  if (!delta.bears_tokens()) {
    // A chunk without text may still count tokens (held back by a parser or detokenizer): they
    // belong to the next event that shows text, because usage_counted_ stays where it was.
    usage_after_all_ |= has_count;
    return 0;
  }
  ++events_;
  usage_after_all_ = has_count;
  ids_total_ += delta.token_ids;
  ids_in_all_ &= delta.token_ids > 0;
  int32_t by_usage = 0;
  if (has_count && usage_in_all_ && usage_last_ > usage_counted_) {
    by_usage = usage_last_ - usage_counted_;
    usage_counted_ = usage_last_;
  } else {
    usage_in_all_ = false;
  }
  return ids_in_all_ ? delta.token_ids : by_usage;
}

TokenCount::Total TokenCount::finish(bool ended, std::span<record::TokenEvent> events) const {
  Total total;
  if (events_ == 0) {
    if (ended) {
      total.tokens = 0;
      total.source = record::TokenSource::kEventCount;
    }
    return total;
  }
  // A usage of 0 beside text is a server that does not count; it proves nothing.
  if (ended && usage_after_all_ && usage_last_ > 0) {
    total.tokens = usage_last_;
    total.source = record::TokenSource::kUsage;
  } else if (ids_in_all_) {
    total.tokens =
        static_cast<int32_t>(std::min<int64_t>(ids_total_, std::numeric_limits<int32_t>::max()));
    total.source = record::TokenSource::kTokenIds;
  } else if (usage_last_ >= events_) {
    total.tokens = usage_last_;
    total.source = record::TokenSource::kContinuousUsage;
  } else {
    total.tokens = events_;
    total.source = record::TokenSource::kEventCount;
  }
  total.per_event_exact = ids_in_all_ || usage_in_all_;
  if (!total.per_event_exact && total.source == record::TokenSource::kUsage &&
      total.tokens == events_) {
    for (auto& event : events) event.tokens = 1;
    total.per_event_exact = true;
  }
  return total;
}

}  // namespace prony::load
