// SafetensorsFile: one file of named tensors: 8 bytes little-endian header size, a JSON header, the
// data. Everything that the header says is checked against the file before anything is used:
// known dtypes, sizes that follow from shapes without overflow, byte ranges that cover the data
// exactly once. Nothing is allocated in a size that a file merely claims.
// Thread safety: immutable after open(); any thread.
// Source: the format's specification, safetensors README, "Format".
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/mapped_file.hpp"
#include "prony/core/result.hpp"

namespace prony::engine {

enum class TensorDtype {
  kF64,
  kF32,
  kF16,
  kBf16,
  kF8E4m3,
  kF8E5m2,
  kI64,
  kI32,
  kI16,
  kI8,
  kU8,
  kBool
};
const char* tensor_dtype_name(TensorDtype dtype);  // as in the header: "BF16"
int64_t tensor_dtype_bytes(TensorDtype dtype);

/// A tensor of a file. Row-major.
struct TensorView {
  std::string name;
  TensorDtype dtype = TensorDtype::kF32;
  std::vector<int64_t> shape;
  std::string_view bytes;  // inside the mapping
};

class SafetensorsFile {
 public:
  /// Largest header that is read; that of a shard with 100,000 tensors has about 12 MB.
  static constexpr int64_t kHeaderBytesMax = int64_t{32} << 20;

  /// Error: kEnvironment if it cannot be read; kInvalidArgument "PATH: what, expected what".
  static Result<SafetensorsFile> open(const std::string& path);
  /// The checks of open() on `content`, whose memory the views point into.
  static Result<std::vector<TensorView>> parse(std::string_view content, std::string_view path);

  const std::vector<TensorView>& tensors() const noexcept { return tensors_; }  // by name

 private:
  SafetensorsFile(core::MappedFile file, std::vector<TensorView> tensors)
      : file_(std::move(file)), tensors_(std::move(tensors)) {}
  core::MappedFile file_;
  std::vector<TensorView> tensors_;
};

}  // namespace prony::engine
