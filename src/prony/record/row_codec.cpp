#include "prony/record/row_codec.hpp"

#include <type_traits>
#include <utility>

namespace prony::record {
namespace {

using core::Nanos;

// Small negatives become small, too: 0, -1, 1, -2, ...
uint64_t zigzag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
int64_t unzigzag(uint64_t value) {
  return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
}
// Differences wrap, so that any two instants have one.
int64_t difference(Nanos a, Nanos b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
Nanos sum(Nanos a, int64_t b) {
  return static_cast<Nanos>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

class Encoder {
 public:
  explicit Encoder(std::string& out) : out_(out) {}

  template <class Integer>
  void integer(Integer value) {
    number(zigzag(static_cast<int64_t>(value)));
  }
  void text(const std::string& value) {
    number(value.size());
    out_.append(value);
  }
  template <class Integer>
  void optional(const std::optional<Integer>& value) {
    out_.push_back(value ? 1 : 0);
    if (value) integer(*value);
  }
  void stamp(const std::optional<Nanos>& value, Nanos origin) {
    out_.push_back(value ? 1 : 0);
    if (value) integer(difference(*value, origin));
  }
  void events(const std::vector<TokenEvent>& events, Nanos origin) {
    number(events.size());
    for (const auto& event : events) {
      integer(difference(event.t_kernel_ns, origin));
      integer(difference(event.t_user_ns, event.t_kernel_ns));
      integer(event.tokens);
      origin = event.t_kernel_ns;
    }
  }

 private:
  void number(uint64_t value) {
    char digits[10];
    size_t n = 0;
    while (value >= 0x80) {
      digits[n++] = static_cast<char>(value | 0x80);
      value >>= 7;
    }
    digits[n++] = static_cast<char>(value);
    out_.append(digits, n);
  }
  std::string& out_;
};

class Decoder {
 public:
  explicit Decoder(std::string_view in) : at_(in.data()), end_(in.data() + in.size()) {}
  bool done() const { return ok_ && at_ == end_; }

  template <class Integer>
  void integer(Integer& value) {
    value = static_cast<Integer>(unzigzag(number()));
  }
  void text(std::string& value) {
    const uint64_t size = number();
    if (size > left()) return fail();
    value.assign(at_, static_cast<size_t>(size));
    at_ += size;
  }
  template <class Integer>
  void optional(std::optional<Integer>& value) {
    value.reset();
    if (flag()) integer(value.emplace());
  }
  void stamp(std::optional<Nanos>& value, Nanos origin) {
    value.reset();
    if (flag()) value = sum(origin, unzigzag(number()));
  }
  void events(std::vector<TokenEvent>& events, Nanos origin) {
    const uint64_t count = number();
    events.clear();
    if (count > left() / 3) return fail();  // an event has three bytes at least
    events.resize(static_cast<size_t>(count));
    for (auto& event : events) {
      event.t_kernel_ns = origin = sum(origin, unzigzag(number()));
      event.t_user_ns = sum(origin, unzigzag(number()));
      integer(event.tokens);
    }
  }

 private:
  uint64_t left() const { return static_cast<uint64_t>(end_ - at_); }
  void fail() {
    ok_ = false;
    at_ = end_;
  }
  bool flag() {
    if (at_ == end_) {
      fail();
      return false;
    }
    return *at_++ != 0;
  }
  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && at_ != end_; shift += 7) {
      const auto digit = static_cast<unsigned char>(*at_++);
      value |= static_cast<uint64_t>(digit & 0x7f) << shift;
      if (digit < 0x80) return value;
    }
    fail();
    return 0;
  }
  const char *at_, *end_;
  bool ok_ = true;
};

// Every field, once, for both directions. The binding names them all: a field added to RequestRow
// does not compile until it is here.
template <class Row, class Codec>
void code_row(Row& row, Codec& c) {
  auto& [index, id, status, http_status, error, retries, session, turn, stage, input_tokens_asked,
         prompt_tokens, output_tokens_asked, output_tokens, token_source, finish_reason,
         t_intended_ns, t_connect_begin_ns, t_connect_ns, t_send_ns, t_sent_ns, t_headers_ns,
         t_first_event_ns, t_first_token_ns, t_first_output_ns, t_last_token_ns, t_done_ns,
         t_close_ns, events, first_event_tokens, tokens_per_event_exact, merged_events,
         read_lag_max_ns, issue_lag_ns, text, reasoning, tool_calls] = row;
  c.integer(index);
  c.text(id);
  c.integer(status);
  c.optional(http_status);
  c.text(error);
  c.integer(retries);
  c.optional(session);
  c.optional(turn);
  c.optional(stage);
  c.integer(input_tokens_asked);
  c.optional(prompt_tokens);
  c.integer(output_tokens_asked);
  c.optional(output_tokens);
  c.integer(token_source);
  c.text(finish_reason);
  c.integer(t_intended_ns);
  for (auto* stamp : {&t_connect_begin_ns, &t_connect_ns, &t_send_ns, &t_sent_ns, &t_headers_ns,
                      &t_first_event_ns, &t_first_token_ns, &t_first_output_ns, &t_last_token_ns,
                      &t_done_ns, &t_close_ns}) {
    c.stamp(*stamp, t_intended_ns);
  }
  c.events(events, t_intended_ns);
  c.integer(first_event_tokens);
  c.integer(tokens_per_event_exact);
  c.integer(merged_events);
  c.optional(read_lag_max_ns);
  c.optional(issue_lag_ns);
  c.text(text);
  c.text(reasoning);
  c.text(tool_calls);
}

}  // namespace

void encode_row(const RequestRow& row, std::string& out) {
  Encoder encoder(out);
  code_row(row, encoder);
}

bool decode_row(std::string_view bytes, RequestRow& row) {
  Decoder decoder(bytes);
  code_row(row, decoder);
  return decoder.done() && row.status >= Status::kOk && row.status <= Status::kUnfinished &&
         row.token_source >= TokenSource::kNone && row.token_source <= TokenSource::kEventCount;
}

}  // namespace prony::record
