#include "prony/cli/progress_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace prony::cli {

ProgressLine::ProgressLine(std::string_view mode, int64_t requests,
                           std::optional<double> asked_rate)
    : terminal_(::isatty(STDERR_FILENO) != 0), requests_(requests), asked_rate_(asked_rate) {
  on_ = mode == "on" || (mode == "auto" && terminal_);
}

ProgressLine::~ProgressLine() {
  clear();
}

std::string ProgressLine::text(const load::LiveTotals& totals) const {
  const double seconds = static_cast<double>(totals.elapsed_ns) / 1e9;
  const double rate = seconds > 0 ? static_cast<double>(totals.sent) / seconds : 0;
  std::string line = fmt::format("{:5.0f} s  sent {}", seconds, totals.sent);
  if (requests_ > 0) line += fmt::format("/{}", requests_);
  line += fmt::format("  in flight {}", totals.in_flight);
  if (totals.waiting > 0) line += fmt::format("  waiting {}", totals.waiting);
  line += fmt::format("  done {}  failed {}  rate {:.1f}", totals.completed, totals.failed, rate);
  line += asked_rate_ ? fmt::format(" of {:g}/s", *asked_rate_) : "/s";
  if (totals.ttft_p50_ms && totals.ttft_p99_ms) {
    line +=
        fmt::format("  ttft p50 {:.3g} p99 {:.3g} ms", *totals.ttft_p50_ms, *totals.ttft_p99_ms);
  }
  return line;
}

void ProgressLine::show(const load::LiveTotals& totals) {
  if (!on_) return;
  if (terminal_) {
    fmt::print(stderr, "\r\x1b[K{}", text(totals));
    shown_ = true;
    return;
  }
  if (totals.elapsed_ns < t_next_ns_) return;
  t_next_ns_ = totals.elapsed_ns + 10 * core::kNanosPerSecond;
  fmt::print(stderr, "{}\n", text(totals));
}

void ProgressLine::clear() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
  shown_ = false;
}

}  // namespace prony::cli
