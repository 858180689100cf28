// Sane bounds of a ModelSpec, and the checks between its fields. Both loaders use them, so that no
// file, however broken or hostile, gives a shape on which later arithmetic overflows or divides by
// zero. The bounds are wide: about ten times the largest model published by 2026.
// Thread safety: pure functions. Source: ours.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "prony/catalog/model_spec.hpp"
#include "prony/core/result.hpp"

namespace prony::catalog {

inline constexpr int64_t kLayersMax = 1024;
inline constexpr int64_t kHiddenMax = 1 << 18;  // width of anything but the vocabulary
inline constexpr int64_t kIntermediateMax = 1 << 20;
inline constexpr int64_t kHeadsMax = 4096;
inline constexpr int64_t kHeadDimMax = 4096;
inline constexpr int64_t kVocabMax = 1 << 24;
inline constexpr int64_t kContextMax = 1 << 28;  // tokens
inline constexpr int64_t kExpertsMax = 1 << 16;
inline constexpr double kParametersMax = 1e15;
inline constexpr double kThetaMax = 1e12;
inline constexpr double kFactorMax = 1e6;  // of rope scaling, softcaps, router scaling

/// How messages speak of a field, whose canonical name is that of the catalogue's files
/// ("shape.kv_heads", "moe.experts").
class FieldLabels {
 public:
  virtual ~FieldLabels() = default;
  /// The field's name in the file.
  virtual std::string name(std::string_view field) const { return std::string(field); }
  /// What precedes a message about it: the file, with the line if known.
  virtual std::string where(std::string_view field) const = 0;
};

/// Labels of a spec that came from no file.
class PlainLabels : public FieldLabels {
 public:
  explicit PlainLabels(std::string name) : name_(std::move(name)) {}
  std::string where(std::string_view) const override { return name_; }

 private:
  std::string name_;
};

/// Every rule a spec must keep, ranges included.
/// Error: kInvalidArgument, "WHERE: FIELD is X, expected Y".
Result<void> check_model(const ModelSpec& spec, const FieldLabels& labels);

}  // namespace prony::catalog
