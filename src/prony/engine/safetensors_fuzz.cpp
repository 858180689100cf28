// Fuzzes safetensors files: any bytes are tensors inside the file or an error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "prony/core/check.hpp"
#include "prony/engine/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  const auto tensors = prony::engine::SafetensorsFile::parse(content, "fuzz");
  if (!tensors) return 0;
  for (const auto& tensor : *tensors) {
    PRONY_CHECK(tensor.bytes.data() >= content.data() &&
                tensor.bytes.data() + tensor.bytes.size() <= content.data() + content.size());
    int64_t bytes = prony::engine::tensor_dtype_bytes(tensor.dtype);
    for (const int64_t extent : tensor.shape) bytes *= extent;
    PRONY_CHECK(bytes == static_cast<int64_t>(tensor.bytes.size()));
  }
  return 0;
}
