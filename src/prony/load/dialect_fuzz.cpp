// libFuzzer target: any bytes as the body of a stream, cut as the first bytes say. Checks what must
// hold for every input; the sanitizers check the rest. Corpus: tests/fuzz/dialect.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "prony/core/check.hpp"
#include "prony/load/timeline_test_util.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace prony;
  using namespace prony::load;
  if (size < 2) return 0;
  const auto& dialect = (data[0] & 1) != 0 ? openai_chat() : openai_completions();
  const bool closes = (data[0] & 2) != 0;
  const size_t step = data[1] == 0 ? size : data[1];
  const std::string_view body(reinterpret_cast<const char*>(data) + 2, size - 2);
  TimelineRig rig(dialect, {.keep_text = true, .event_limit_bytes = 1 << 16});
  auto head = sse_head();
  head.chunked = (data[0] & 4) != 0;
  rig.timeline.on_head(head, stamp_at(2000));
  for (size_t at = 0; at < body.size() && !rig.timeline.wants_close(); at += step) {
    rig.body(body.substr(at, step), 3000 + static_cast<core::Nanos>(at));
  }
  const auto end = stamp_at(1'000'000'000);
  if (rig.timeline.wants_close()) {
    rig.timeline.on_stopped(record::Status::kCancelled, "closed", end.user_ns);
  } else if (closes) {
    rig.timeline.on_error({net::NetErrorKind::kClosed, "closed", true}, end);
  } else {
    rig.timeline.on_complete(end);
  }
  const auto row = rig.timeline.take_row();
  const bool ok = row.status == record::Status::kOk;
  PRONY_CHECK(ok == row.error.empty(), "a failure says why");
  PRONY_CHECK(!ok || !row.events.empty(), "a success has a token");
  PRONY_CHECK(!ok || row.t_done_ns.has_value(), "a success has an end marker");
  PRONY_CHECK(!ok || row.output_tokens.value_or(0) > 0, "a success counts its tokens");
  PRONY_CHECK(row.t_first_token_ns.has_value() == !row.events.empty(), "first token stamp");
  PRONY_CHECK(row.error.find('\n') == std::string::npos, "one line");
  return 0;
}
