#include "prony/engine/checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "prony/core/file.hpp"
#include "prony/core/json.hpp"
#include "prony/quant/bf16.hpp"
#include "prony/quant/fp16.hpp"

namespace prony::engine {
namespace {

namespace fs = std::filesystem;
using core::Json;

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

bool is_float(TensorDtype dtype) {
  return dtype == TensorDtype::kF32 || dtype == TensorDtype::kF16 || dtype == TensorDtype::kBf16;
}

// memcpy, because nothing aligns a tensor inside its file.
template <class Element>
void convert(const char* bytes, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) {
    Element element;
    std::memcpy(&element, bytes + i * static_cast<int64_t>(sizeof(Element)), sizeof(Element));
    out[i] = quant::to_float(element);
  }
}

// A plain name inside the folder, not a way out of it.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.find('/') == std::string::npos && name != "." && name != "..";
}

/// tensor -> file, of the index.
Result<std::map<std::string, std::string>> read_index(const std::string& path) {
  const auto text = core::read_file(path);
  if (!text) return text.error();
  const auto json = core::parse_json(*text, path);
  if (!json) return json.error();
  if (!json->is_object() || !json->contains("weight_map") || !(*json)["weight_map"].is_object()) {
    return invalid_argument(
        fmt::format("{}: no weight_map, expected tensor names and files", path));
  }
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : (*json)["weight_map"].items()) {
    if (!file.is_string() || !is_plain_name(file.get<std::string>())) {
      return invalid_argument(
          fmt::format("{}: weight_map of '{}' is no file name of this folder", path, tensor));
    }
    files.emplace(tensor, file.get<std::string>());
  }
  if (files.empty()) return invalid_argument(fmt::format("{}: weight_map is empty", path));
  return files;
}

// Buffers and copies that checkpoints carry along and that no forward pass reads.
bool may_stay_unread(std::string_view name, const catalog::ModelSpec& spec) {
  if (name.ends_with(".rotary_emb.inv_freq")) return true;
  if (name == "lm_head.weight" && spec.tied_embeddings) return true;
  // Multi-token prediction layers of DeepSeek-V3 come after the model's own.
  for (int32_t i = 0; i < spec.mtp_layers; ++i) {
    if (name.starts_with(fmt::format("model.layers.{}.", spec.layers + i))) return true;
  }
  return false;
}

}  // namespace

Result<void> Checkpoint::add_file(const std::string& name) {
  auto file = SafetensorsFile::open((fs::path(folder_) / name).string());
  if (!file) return file.error();
  files_.push_back(std::move(file).value());
  for (const TensorView& view : files_.back().tensors()) {
    auto entry = std::make_unique<Entry>();
    entry->view = view;
    const auto [at, fresh] = file_of_.emplace(view.name, name);
    if (!fresh) {
      return invalid_argument(
          fmt::format("{}: tensor '{}' is in {} and in {}", folder_, view.name, at->second, name));
    }
    tensors_.emplace(view.name, std::move(entry));
    bytes_ += static_cast<int64_t>(view.bytes.size());
  }
  return {};
}

Result<void> Checkpoint::check_index(const std::map<std::string, std::string>& files) const {
  for (const auto& [tensor, file] : files) {
    const auto at = file_of_.find(tensor);
    if (at == file_of_.end() || at->second != file) {
      return invalid_argument(
          fmt::format("{}/{}: tensor '{}' is not in {}", folder_, kIndexFile, tensor, file));
    }
  }
  return {};
}

Result<std::unique_ptr<Checkpoint>> Checkpoint::open(const std::string& folder) {
  std::unique_ptr<Checkpoint> checkpoint(new Checkpoint(folder));
  const std::string index = (fs::path(folder) / kIndexFile).string();
  std::error_code ignored;
  if (fs::exists(index, ignored)) {
    const auto files = read_index(index);
    if (!files) return files.error();
    std::set<std::string> names;
    for (const auto& [tensor, file] : *files) names.insert(file);
    for (const auto& name : names) {
      if (auto added = checkpoint->add_file(name); !added) return added.error();
    }
    if (auto same = checkpoint->check_index(*files); !same) return same.error();
  } else if (fs::exists(fs::path(folder) / kSingleFile, ignored)) {
    if (auto added = checkpoint->add_file(kSingleFile); !added) return added.error();
  } else {
    return invalid_argument(
        fmt::format("{}: no weights, expected {} or {}", folder, kSingleFile, kIndexFile));
  }
  std::map<TensorDtype, size_t> bytes_by_dtype;
  for (const auto& [name, entry] : checkpoint->tensors_) {
    bytes_by_dtype[entry->view.dtype] += entry->view.bytes.size();
  }
  const auto most =
      std::max_element(bytes_by_dtype.begin(), bytes_by_dtype.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != bytes_by_dtype.end()) checkpoint->dtype_ = most->first;
  return checkpoint;
}

Result<void> Checkpoint::read(const TensorRows& wanted, float* out) const {
  const auto refuse = [&](const std::string& text) {
    return invalid_argument(fmt::format("{}: tensor '{}': {}", folder_, wanted.name, text));
  };
  const auto at = tensors_.find(wanted.name);
  if (at == tensors_.end()) return refuse("missing");
  const TensorView& view = at->second->view;
  const std::vector<int64_t> expected = wanted.rows == 1 && view.shape.size() == 1
                                            ? std::vector<int64_t>{wanted.columns}
                                            : std::vector<int64_t>{wanted.rows, wanted.columns};
  if (view.shape != expected) {
    return refuse(fmt::format("shape [{}], the config expects [{}]", fmt::join(view.shape, ", "),
                              fmt::join(expected, ", ")));
  }
  if (!is_float(view.dtype)) {
    return refuse(
        fmt::format("dtype {}, expected F32, F16 or BF16", tensor_dtype_name(view.dtype)));
  }
  at->second->read.store(true, std::memory_order_relaxed);
  const int64_t count = wanted.count * wanted.columns;
  const char* bytes =
      view.bytes.data() + wanted.first * wanted.columns * tensor_dtype_bytes(view.dtype);
  if (view.dtype == TensorDtype::kF32) {
    std::memcpy(out, bytes, static_cast<size_t>(count) * sizeof(float));
  } else if (view.dtype == TensorDtype::kF16) {
    convert<quant::Fp16>(bytes, count, out);
  } else {
    convert<quant::Bf16>(bytes, count, out);
  }
  return {};
}

Result<void> Checkpoint::check_all_read(const catalog::ModelSpec& spec) const {
  const std::string* first = nullptr;
  int64_t others = 0;
  for (const auto& [name, entry] : tensors_) {
    if (entry->read.load(std::memory_order_relaxed) || may_stay_unread(name, spec)) continue;
    if (first == nullptr) {
      first = &name;
    } else {
      ++others;
    }
  }
  if (first == nullptr) return {};
  return invalid_argument(fmt::format("{}: tensor '{}'{} has no place in a {}", folder_, *first,
                                      others > 0 ? fmt::format(" (and {} more)", others) : "",
                                      spec.architecture));
}

}  // namespace prony::engine
