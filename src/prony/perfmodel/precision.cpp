#include "prony/perfmodel/precision.hpp"

namespace prony::perfmodel {

Precision uniform_precision(double bytes) {
  Precision precision;
  precision.linear = precision.expert = precision.embedding = precision.head = bytes;
  precision.other = precision.activation = precision.kv = bytes;
  return precision;
}

Precision published_precision(const catalog::ModelSpec& spec) {
  Precision precision = uniform_precision(2);
  switch (spec.weight_format) {
    case catalog::WeightFormat::kF32:
      return uniform_precision(4);
    case catalog::WeightFormat::kF16:
    case catalog::WeightFormat::kBf16:
      break;
    case catalog::WeightFormat::kFp8Block128:
      precision.linear = precision.expert = kFp8Block128Bytes;
      break;
    case catalog::WeightFormat::kMxfp4Experts:
      precision.expert = kMxfp4Bytes;
      break;
  }
  return precision;
}

}  // namespace prony::perfmodel
