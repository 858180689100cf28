// Checkpoint: the weights of a Hugging Face folder as a TensorSource: model.safetensors, or the
// shards that model.safetensors.index.json lists, mapped and converted from fp32, fp16 or bf16 as
// they are read. It notes what was read, so that a tensor nobody asked for is found: it is weight
// that the model as understood here would silently do without.
// Thread safety: read() from any thread; the rest one thread.
// Source: transformers, src/transformers/modeling_utils.py (file names and index).
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prony/catalog/model_spec.hpp"
#include "prony/engine/safetensors.hpp"
#include "prony/engine/tensor_source.hpp"

namespace prony::engine {

class Checkpoint final : public TensorSource {
 public:
  /// Error: kInvalidArgument for a folder without weights, a broken file, a shard that the index
  /// names and that is missing, a tensor that the index puts elsewhere; kEnvironment if a file
  /// cannot be read.
  static Result<std::unique_ptr<Checkpoint>> open(const std::string& folder);

  /// Error: kInvalidArgument "FOLDER: tensor 'NAME': ...": missing, of another shape, or of a dtype
  /// that is no plain float.
  Result<void> read(const TensorRows& wanted, float* out) const override;

  /// The dtype that most of the weights' bytes are stored in.
  TensorDtype dtype() const noexcept { return dtype_; }
  int64_t bytes() const noexcept { return bytes_; }

  /// After loading: the tensors that were not read and mean something for `spec`. Error:
  /// kInvalidArgument naming the first of them.
  Result<void> check_all_read(const catalog::ModelSpec& spec) const;

 private:
  struct Entry {
    TensorView view;
    mutable std::atomic<bool> read = false;
  };
  explicit Checkpoint(std::string folder) : folder_(std::move(folder)) {}
  Result<void> add_file(const std::string& name);
  Result<void> check_index(const std::map<std::string, std::string>& files) const;

  std::string folder_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, std::unique_ptr<Entry>, std::less<>> tensors_;
  std::map<std::string, std::string, std::less<>> file_of_;  // tensor -> file name
  TensorDtype dtype_ = TensorDtype::kBf16;
  int64_t bytes_ = 0;
};

}  // namespace prony::engine
