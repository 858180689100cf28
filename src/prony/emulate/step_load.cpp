#include "prony/emulate/step_load.hpp"

namespace prony::emulate {

void StepLoad::assign(const sched::StepPlan& plan) {
  decodes = decode_keys = 0;
  samples = plan.sample_count;
  prefills.clear();
  for (const sched::StepRow& row : plan.rows) {
    if (row.token_count == 1) {
      ++decodes;
      decode_keys += row.first_position;
    } else {
      prefills.push_back({row.first_position, row.token_count});
    }
  }
}

}  // namespace prony::emulate
