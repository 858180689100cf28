// ServingSteps: durations of the steps that a serving deployment takes for requests of one length,
// remembered by the number of decoding rows, so that a planner can ask thousands of times.
// Up to 31 rows every number is computed; above, sixteen of each doubling, with straight lines
// between them. Up to 2047 rows the spacings divide 64, the padding of rows, so no edge of a tile
// is missed.
// Thread safety: none; one thread each.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "prony/perfmodel/step_cost.hpp"

namespace prony::perfmodel {

class ServingSteps {
 public:
  /// Requires check_deployment() (checked).
  explicit ServingSteps(const Deployment& deployment);

  /// Says what is asked about; forgets what was remembered for other lengths.
  void set(int64_t input_tokens, int64_t output_tokens, int64_t step_tokens);

  /// One step of `batch` sequences of the whole deployment that all decode, drafts included [s].
  double decode(double batch);
  /// The steps that prefill one prompt beside `batch` decodes: their sum, how much of it the
  /// decodes would not have taken anyway, what a second prompt in the same step adds, the longest
  /// of them, and how many they are.
  struct Prompt {
    double own_s = 0, stolen_s = 0, more_s = 0, longest_s = 0, steps = 0;
  };
  Prompt prompt(double batch);
  /// The steps of `count` prompts that came together, without decodes beside them [s].
  double prompts(double count);

  /// The same steps by operator.
  StepCost decode_cost(double batch);
  StepCost prompt_cost();

  /// Rows of one step: a data-parallel group's share of the batch, of one pipeline micro-batch.
  double rows(double batch) const { return std::max(1.0, batch / groups_); }
  double groups() const { return groups_; }
  const RankModel& rank() const { return coster_.rank(); }
  const Deployment& deployment() const { return coster_.deployment(); }

 private:
  struct Known {
    double decode = -1;
    Prompt prompt{.own_s = -1};
  };
  double decode_rows(int64_t count);
  const Prompt& prompt_rows(int64_t decodes);
  Prompt computed_prompt(int64_t decodes);
  Known& known(int64_t count);
  void add_decodes(int64_t count);

  StepCoster coster_;
  double groups_;
  int64_t input_ = -1, output_ = -1, step_tokens_ = -1;
  StepShape shape_;
  std::vector<Known> known_;
};

}  // namespace prony::perfmodel
