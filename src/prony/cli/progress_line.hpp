// ProgressLine: one line on stderr about a run that is on, rewritten in place on a terminal, a line
// every ten seconds elsewhere. Thread safety: one thread.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "prony/load/driver.hpp"

namespace prony::cli {

class ProgressLine {
 public:
  /// `mode`: auto (terminals only), on, off. `requests` is 0 and `asked_rate` [requests/s] is unset
  /// where there is none.
  ProgressLine(std::string_view mode, int64_t requests, std::optional<double> asked_rate);
  ~ProgressLine();

  void show(const load::LiveTotals& totals);
  /// Wipes the line, before something else is printed.
  void clear();

  /// "sent 120/200  in flight 8  done 110  failed 2  rate 39.8 of 40/s  ttft p50 31 p99 58 ms".
  std::string text(const load::LiveTotals& totals) const;

 private:
  bool on_ = false, terminal_ = false, shown_ = false;
  int64_t requests_ = 0;
  std::optional<double> asked_rate_;
  core::Nanos t_next_ns_ = 0;
};

}  // namespace prony::cli
