// LengthSource: where the lengths of a schedule come from, one conversation (or single request) at
// a time: two laws, the rows of a trace in order or at random, or a density of them. A part of
// generate_schedule(). Thread safety: none; one per schedule.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/core/rng.hpp"
#include "prony/stats/kde.hpp"
#include "prony/workload/schedule.hpp"

namespace prony::workload {

/// The rows of `trace` within the window of `arrivals`.
/// Error: kInvalidArgument if there is no trace or no row within it.
Result<std::span<const TraceRow>> window_of(const std::shared_ptr<const Trace>& trace,
                                            const ArrivalOptions& arrivals);

/// `tokens` times `factor`, rounded, then limited to low..high.
int64_t scaled_tokens(int32_t tokens, double factor, int32_t low, int32_t high);

class LengthSource {
 public:
  /// Error: kInvalidArgument for laws that are missing and windows without rows.
  static Result<LengthSource> create(const ScheduleOptions& options);

  struct Turn {
    int32_t input = 0, output = 0;  // its own, history apart
    const TraceRow* row = nullptr;  // it was taken from
  };
  /// The turns of arrival number `index` (calls in order 0, 1, ...): one for a single request.
  /// Valid until the next call.
  std::span<const Turn> draw(int64_t index);
  bool makes_sessions() const { return turns_law_ || from_sessions_; }
  std::string describe() const;

 private:
  explicit LengthSource(const ScheduleOptions& options);
  Turn draw_one(int64_t index);
  void start_sessions();

  LengthOptions lengths_;
  std::optional<LengthLaw> turns_law_;
  core::Rng input_rng_, output_rng_, row_rng_, turns_rng_, pair_rng_;
  std::optional<stats::PairKde> pairs_;
  std::span<const TraceRow> rows_;
  bool from_sessions_ = false;          // whole conversations of the trace
  std::vector<size_t> session_starts_;  // in rows_, and its end
  int64_t drawn_ = 0;                   // requests
  std::vector<Turn> turns_;
};

}  // namespace prony::workload
