#include "prony/engine/safetensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "prony/core/json.hpp"

namespace prony::engine {
namespace {

using core::Json;

constexpr int64_t kLengthBytes = 8;
constexpr size_t kNameShown = 120;  // of a tensor's name, in messages
constexpr size_t kDimensionsMax = 8;

struct DtypeRow {
  const char* name;
  TensorDtype dtype;
  int64_t bytes;
};
constexpr DtypeRow kDtypes[] = {
    {"F64", TensorDtype::kF64, 8},        {"F32", TensorDtype::kF32, 4},
    {"F16", TensorDtype::kF16, 2},        {"BF16", TensorDtype::kBf16, 2},
    {"F8_E4M3", TensorDtype::kF8E4m3, 1}, {"F8_E5M2", TensorDtype::kF8E5m2, 1},
    {"I64", TensorDtype::kI64, 8},        {"I32", TensorDtype::kI32, 4},
    {"I16", TensorDtype::kI16, 2},        {"I8", TensorDtype::kI8, 1},
    {"U8", TensorDtype::kU8, 1},          {"BOOL", TensorDtype::kBool, 1},
};

const DtypeRow& row_of(TensorDtype dtype) {
  return *std::find_if(std::begin(kDtypes), std::end(kDtypes),
                       [dtype](const DtypeRow& row) { return row.dtype == dtype; });
}

// "PATH: tensor 'NAME': ..."
class Refusal {
 public:
  Refusal(std::string_view path, std::string_view tensor) : path_(path), tensor_(tensor) {}
  Error operator()(std::string_view text) const {
    return invalid_argument(
        fmt::format("{}: tensor '{}': {}", path_, tensor_.substr(0, kNameShown), text));
  }

 private:
  std::string_view path_, tensor_;
};

// The product of the shape and the element size; nullopt if it does not fit.
std::optional<int64_t> bytes_of(const std::vector<int64_t>& shape, int64_t element_bytes) {
  int64_t bytes = element_bytes;
  for (const int64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  }
  return bytes;
}

std::optional<int64_t> count_of(const Json& json) {
  if (!json.is_number_unsigned() || json.get<uint64_t>() > INT64_MAX) return std::nullopt;
  return json.get<int64_t>();
}

Result<TensorView> parse_tensor(const std::string& name, const Json& json, std::string_view data,
                                std::string_view path) {
  const Refusal refuse(path, name);
  TensorView tensor;
  tensor.name = name;
  if (!json.is_object()) return refuse("found no object, expected dtype, shape and data_offsets");
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!json.contains(key)) return refuse(fmt::format("no {}", key));
  }
  const Json& dtype = json["dtype"];
  const auto* known =
      std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](const DtypeRow& row) {
        return dtype.is_string() && dtype.get_ref<const std::string&>() == row.name;
      });
  if (known == std::end(kDtypes)) {
    return refuse(fmt::format("unknown dtype {}", dtype.dump(-1, ' ', true).substr(0, kNameShown)));
  }
  tensor.dtype = known->dtype;
  const Json& shape = json["shape"];
  if (!shape.is_array() || shape.size() > kDimensionsMax) {
    return refuse(
        fmt::format("found no shape, expected a list of at most {} sizes", kDimensionsMax));
  }
  for (const Json& extent : shape) {
    const auto count = count_of(extent);
    if (!count) return refuse("found a size that is no whole number in its shape");
    tensor.shape.push_back(*count);
  }
  const auto bytes = bytes_of(tensor.shape, known->bytes);
  if (!bytes) {
    return refuse(
        fmt::format("shape [{}] has more bytes than a file can", fmt::join(tensor.shape, ", ")));
  }
  const Json& offsets = json["data_offsets"];
  const auto begin =
      offsets.is_array() && offsets.size() == 2 ? count_of(offsets.at(0)) : std::nullopt;
  const auto end = begin ? count_of(offsets.at(1)) : std::nullopt;
  if (!end) return refuse("found no data_offsets, expected two byte positions");
  const auto size = static_cast<int64_t>(data.size());
  if (*begin > *end || *end > size) {
    return refuse(
        fmt::format("data_offsets [{}, {}], but the file has {} bytes of data (cut short?)", *begin,
                    *end, size));
  }
  if (*end - *begin != *bytes) {
    return refuse(fmt::format("{} bytes at data_offsets, expected {} for {} [{}]", *end - *begin,
                              *bytes, known->name, fmt::join(tensor.shape, ", ")));
  }
  tensor.bytes = data.substr(static_cast<size_t>(*begin), static_cast<size_t>(*bytes));
  return tensor;
}

// Every byte of the data belongs to one tensor: what overlaps or is left over is a broken file.
Result<void> check_cover(const std::vector<TensorView>& tensors, std::string_view data,
                         std::string_view path) {
  std::vector<const TensorView*> order;
  for (const auto& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const TensorView* a, const TensorView* b) {
    return std::pair(a->bytes.data(), a->bytes.size()) <
           std::pair(b->bytes.data(), b->bytes.size());
  });
  const char* next = data.data();
  for (const TensorView* tensor : order) {
    if (tensor->bytes.data() != next) {
      return Refusal(path, tensor->name)(tensor->bytes.data() < next
                                             ? "its bytes overlap those of another tensor"
                                             : "there are bytes before it that no tensor owns");
    }
    next += tensor->bytes.size();
  }
  if (next == data.data() + data.size()) return {};
  return invalid_argument(fmt::format("{}: {} bytes at its end that no tensor owns", path,
                                      data.data() + data.size() - next));
}

// nlohmann keeps one of two equal keys silently, and a tensor would be missing without a word.
Result<Json> parse_header(std::string_view text, std::string_view path) {
  std::set<std::string> seen;
  std::string twice;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth == 1 && event == Json::parse_event_t::key &&
        !seen.insert(parsed.get<std::string>()).second) {
      twice = parsed.get<std::string>();
    }
    return true;
  };
  Json header = Json::parse(text, watch, false);
  if (!twice.empty()) return Refusal(path, twice)("appears twice in the header");
  if (!header.is_object()) {
    return invalid_argument(
        fmt::format("{}: its header is no JSON object, expected a safetensors "
                    "file",
                    path));
  }
  return header;
}

}  // namespace

const char* tensor_dtype_name(TensorDtype dtype) {
  return row_of(dtype).name;
}

int64_t tensor_dtype_bytes(TensorDtype dtype) {
  return row_of(dtype).bytes;
}

Result<std::vector<TensorView>> SafetensorsFile::parse(std::string_view content,
                                                       std::string_view path) {
  const auto size = static_cast<int64_t>(content.size());
  if (size < kLengthBytes) {
    return invalid_argument(fmt::format("{}: {} bytes, expected a safetensors file", path, size));
  }
  uint64_t header_bytes = 0;
  for (size_t i = kLengthBytes; i-- > 0;) {
    header_bytes = header_bytes << 8 | static_cast<unsigned char>(content[i]);
  }
  if (header_bytes > static_cast<uint64_t>(size - kLengthBytes)) {
    return invalid_argument(
        fmt::format("{}: a header of {} bytes in a file of {} (cut short, or no "
                    "safetensors file)",
                    path, header_bytes, size));
  }
  if (header_bytes > static_cast<uint64_t>(kHeaderBytesMax)) {
    return invalid_argument(fmt::format("{}: a header of {} bytes, expected at most {}", path,
                                        header_bytes, kHeaderBytesMax));
  }
  const auto header = parse_header(content.substr(kLengthBytes, header_bytes), path);
  if (!header) return header.error();
  const std::string_view data = content.substr(kLengthBytes + header_bytes);
  std::vector<TensorView> tensors;
  for (const auto& [name, json] : header->items()) {
    if (name == "__metadata__") continue;
    auto tensor = parse_tensor(name, json, data, path);
    if (!tensor) return tensor.error();
    tensors.push_back(std::move(tensor).value());
  }
  if (auto covered = check_cover(tensors, data, path); !covered) return covered.error();
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorView& a, const TensorView& b) { return a.name < b.name; });
  return tensors;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  auto file = core::MappedFile::open(path);
  if (!file) return file.error();
  auto tensors = parse(file->bytes(), path);
  if (!tensors) return tensors.error();
  return SafetensorsFile(std::move(file).value(), std::move(tensors).value());
}

}  // namespace prony::engine
