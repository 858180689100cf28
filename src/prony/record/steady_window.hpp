// SteadyWindow: the part of a run that speaks for the load, without the start that is unlike the
// rest and, in a closed loop, without the end where users have stopped asking. Definitions:
// docs/metrics.md, "Steady state". Thread safety: pure functions.
#pragma once
#include <optional>

#include "prony/record/summary.hpp"

namespace prony::record {

/// The latency by which steadiness is judged: in an open loop the wait for the first token from the
/// intended start, where a growing queue shows first; in a closed loop, which has no such queue,
/// the whole answer.
std::optional<double> judged_latency_ms(const RequestRow& row, bool open_loop);

struct SteadyWindow {
  Window window;
  std::optional<RunWarmUp> warm_up;  // nullopt: too few requests to tell
};
/// `whole` is the window as the rules give it. Finds the warm-up in any case; `window` differs from
/// `whole` only where options.steady_part_only asks for it.
SteadyWindow steady_window(const RowSource& rows, const Window& whole,
                           const SummaryOptions& options);

}  // namespace prony::record
