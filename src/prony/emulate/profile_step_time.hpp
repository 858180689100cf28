// ProfileStepTime: the duration of steps from measured times of the layers (profile_tables.hpp), so
// that a device that the catalogue predicts badly, or does not know, can be stepped. Thread safety:
// none; one for each thread.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "prony/catalog/model_spec.hpp"
#include "prony/emulate/profile_tables.hpp"
#include "prony/emulate/step_time.hpp"

namespace prony::emulate {

class ProfileStepTime final : public StepTime {
 public:
  /// `step_s`, `sequence_s`: what the engine adds to the kernels, a step and a row of it [s].
  /// Error: kInvalidArgument: a layer that the model needs and the tables lack, or the other way
  /// round; and what read_profile() says.
  static Result<std::unique_ptr<ProfileStepTime>> load(const std::string& path,
                                                       const catalog::ModelSpec& model,
                                                       double step_s, double sequence_s);

  core::Nanos step_ns(const StepLoad& load) override;

 private:
  ProfileStepTime(ProfileTables tables, const catalog::ModelSpec& model, double step_s,
                  double sequence_s);
  double dense_us(int64_t tokens);
  double computed_dense_us(double tokens) const;
  double attention_us(const StepLoad& load) const;

  ProfileTables tables_;
  double layers_, step_us_, sequence_us_;
  int32_t experts_ = 0, experts_per_token_ = 0;
  double mixture_layers_ = 0;
  std::vector<std::pair<const Line*, double>> dense_;  // and how often a step runs it
  std::vector<double> known_us_;                       // [tokens]; below 0: not yet known
};

}  // namespace prony::emulate
