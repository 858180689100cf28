// OperatorTrace: where the time of the engine's steps goes, operator by operator, beside the work
// that each must do. Operators, floating-point operations and bytes are those of perfmodel's list,
// the one that predictions use; the engine adds the times. Decode steps (one token a row) are
// summed apart from the others. A few spans differ from the list and are folded together on both
// sides:
//  - the norms of query and key heads run in one loop with rotation and store;
//  - one call attends for all rows of a step, so a mixed step's attention counts as prefill;
//  - latent attention is absorbed for prefill too, where the list counts the cheaper expansion.
// Thread safety: the engine's thread; reports after its last step. Source of the event file:
// Google, "Trace Event Format", 2016.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "prony/catalog/model_spec.hpp"
#include "prony/core/clock.hpp"
#include "prony/core/json.hpp"
#include "prony/kernels/ceilings.hpp"
#include "prony/kernels/packed_matrix.hpp"
#include "prony/perfmodel/operators.hpp"
#include "prony/perfmodel/step_model.hpp"

namespace prony::engine {

/// One row of a step as the work list needs it.
struct TracedRow {
  int32_t context = 0;  // tokens before it
  int32_t tokens = 0;
  bool samples = false;
};

class OperatorTrace {
 public:
  /// Numbers of the model that is traced.
  struct Numbers {
    kernels::Dtype weights = kernels::Dtype::kBf16;
    bool bf16_rows = false;
  };
  enum class Phase { kPrefill, kDecode };
  struct Total {
    int64_t calls = 0;
    core::Nanos time_ns = 0;
    double flops = 0;  // of matrix products and attention
    double bytes = 0;
  };
  struct PhaseTotal {
    int64_t steps = 0, tokens = 0;
    core::Nanos time_ns = 0;  // of whole steps
    std::array<Total, perfmodel::kOperatorKinds> operators;
  };

  /// Keeps the first `max_events` spans for the event file; takes their memory now.
  OperatorTrace(const catalog::ModelSpec& spec, const Numbers& numbers, size_t max_events);

  void begin_step();
  void add_row(const TracedRow& row);
  void record(perfmodel::OperatorKind kind, int32_t layer, core::Nanos begin, core::Nanos end);
  /// Adds the work of the rows to the operators of their phase.
  void end_step();

  const PhaseTotal& phase(Phase phase) const { return phases_[static_cast<size_t>(phase)]; }
  /// The least time that the operator's work allows: its bytes at the read rate or its operations
  /// at their rate, whichever is longer [s].
  double bound_s(perfmodel::OperatorKind kind, const Total& total,
                 const kernels::Ceilings& ceilings) const;
  /// Lines for people: a table a phase.
  std::string table(const kernels::Ceilings& ceilings) const;
  /// A file for chrome://tracing or Perfetto; the totals and ceilings are under "prony".
  core::Json chrome(const kernels::Ceilings& ceilings) const;

 private:
  struct Event {
    core::Nanos begin_ns = 0;
    uint32_t duration_ns = 0;
    int16_t layer = -1;
    perfmodel::OperatorKind kind = perfmodel::OperatorKind::kEmbed;
  };
  /// The operator that times and work of `kind` are counted under.
  perfmodel::OperatorKind folded(perfmodel::OperatorKind kind) const;
  core::Json phase_json(Phase phase, const kernels::Ceilings& ceilings) const;

  Numbers numbers_;
  perfmodel::StepModel model_;
  perfmodel::StepShape shape_;
  std::vector<perfmodel::Operator> work_;  // of one step
  std::vector<Event> events_;
  size_t max_events_;
  int64_t dropped_events_ = 0;
  std::array<PhaseTotal, 2> phases_;
  std::array<Total, perfmodel::kOperatorKinds> step_;  // times of the step being run
  core::Nanos step_begin_ns_ = 0;
  bool prefill_ = false;  // of the step being run
};

/// Times its own life as one call of an operator; without a trace it is a comparison.
class OperatorSpan {
 public:
  OperatorSpan(OperatorTrace* trace, perfmodel::OperatorKind kind, int32_t layer)
      : trace_(trace), kind_(kind), layer_(layer) {
    if (trace_ != nullptr) begin_ns_ = core::monotonic_ns();
  }
  OperatorSpan(const OperatorSpan&) = delete;
  OperatorSpan& operator=(const OperatorSpan&) = delete;
  ~OperatorSpan() {
    if (trace_ != nullptr) trace_->record(kind_, layer_, begin_ns_, core::monotonic_ns());
  }

 private:
  OperatorTrace* trace_;
  perfmodel::OperatorKind kind_;
  int32_t layer_;
  core::Nanos begin_ns_ = 0;
};

}  // namespace prony::engine
