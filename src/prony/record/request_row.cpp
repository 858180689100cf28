#include "prony/record/request_row.hpp"

#include <array>

namespace prony::record {
namespace {

// In the order of the enumerators.
constexpr std::array kStatusNames = {"ok",
                                     "http_4xx",
                                     "http_5xx",
                                     "stream_error",
                                     "truncated",
                                     "empty",
                                     "not_stream",
                                     "parse",
                                     "interrupted",
                                     "connect",
                                     "timeout_connect",
                                     "timeout_ttft",
                                     "timeout_stall",
                                     "timeout_total",
                                     "cancelled",
                                     "unfinished"};
static_assert(kStatusNames.size() == static_cast<size_t>(Status::kUnfinished) + 1);

constexpr std::array kTokenSourceNames = {
    "none", "usage", "token_ids", "continuous_usage", "tokenizer", "event_count"};
static_assert(kTokenSourceNames.size() == static_cast<size_t>(TokenSource::kEventCount) + 1);

template <class Enum, size_t N>
std::optional<Enum> parse(const std::array<const char*, N>& names, const std::string& name) {
  for (size_t i = 0; i < N; ++i) {
    if (name == names[i]) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

const char* status_name(Status status) {
  return kStatusNames[static_cast<size_t>(status)];
}
std::optional<Status> parse_status(const std::string& name) {
  return parse<Status>(kStatusNames, name);
}

const char* token_source_name(TokenSource source) {
  return kTokenSourceNames[static_cast<size_t>(source)];
}
std::optional<TokenSource> parse_token_source(const std::string& name) {
  return parse<TokenSource>(kTokenSourceNames, name);
}

}  // namespace prony::record
