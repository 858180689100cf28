#include "prony/cli/serve_model.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "prony/catalog/catalog.hpp"
#include "prony/cli/serve_cuda.hpp"
#include "prony/cli/serve_emulated.hpp"
#include "prony/core/file.hpp"
#include "prony/core/json.hpp"
#include "prony/core/system.hpp"
#include "prony/core/units.hpp"
#include "prony/engine/checkpoint.hpp"
#include "prony/engine/cpu_executor.hpp"
#include "prony/engine/dummy_tensors.hpp"
#include "prony/token/byte_tokenizer.hpp"
#include "prony/token/hf_tokenizer.hpp"
#include "prony/token/jinja_chat.hpp"

namespace prony::cli {
namespace {

namespace fs = std::filesystem;

Result<std::unique_ptr<sched::Executor>> make_executor(const catalog::ModelSpec& spec,
                                                       const engine::TensorSource& weights,
                                                       int32_t sample_vocab,
                                                       const ServeOptions& options) {
  engine::CpuExecutorOptions wanted;
  const auto dtype = options.weight_dtype.value_or("bf16");
  wanted.dtype = dtype == "fp32"   ? kernels::Dtype::kF32
                 : dtype == "int8" ? kernels::Dtype::kI8
                                   : kernels::Dtype::kBf16;
  wanted.bf16_rows = std::nullopt;
  if (options.activation_dtype != "auto") wanted.bf16_rows = options.activation_dtype == "bf16";
  wanted.sample_vocab = sample_vocab;
  wanted.threads = options.threads > 0 ? static_cast<int>(options.threads)
                                       : static_cast<int>(core::allowed_cores().size());
  wanted.max_tokens_per_step = static_cast<int32_t>(options.max_step_tokens.value_or(512));
  wanted.max_sequences = static_cast<int32_t>(options.max_sequences.value_or(64));
  wanted.max_context = static_cast<int32_t>(options.max_context);
  wanted.kv_cache_bytes = static_cast<int64_t>(options.kv_memory_gib.value_or(0.5) * core::kGiB);
  if (options.kv_blocks) wanted.block_count = static_cast<int32_t>(*options.kv_blocks);
  auto made = engine::CpuExecutor::create(spec, weights, wanted);
  if (!made) return made.error();
  return std::unique_ptr<sched::Executor>(std::move(made).value());
}

Result<ServedModel> load_dummy(const ServeOptions& options, core::Clock& clock) {
  const auto spec = catalog::resolve_model(options.model);
  if (!spec) return spec.error();
  if (spec->vocab < token::kByteVocabulary) {
    return invalid_argument(
        fmt::format("--model {}: found a vocabulary of {}, the byte tokenizer needs {}",
                    options.model, spec->vocab, token::kByteVocabulary));
  }
  const engine::DummyTensors weights(static_cast<uint64_t>(options.seed));
  const bool emulated = !emulated_hardware(options.device).empty();
  auto executor =
      emulated ? make_emulated(options, *spec, clock) : make_executor(*spec, weights, 0, options);
  if (!executor) return executor.error();
  ServedModel model;
  model.name = options.model;
  model.executor = std::move(executor).value();
  model.tokenizer = std::make_shared<const token::ByteTokenizer>(spec->vocab);
  model.chat_template = std::make_unique<const token::ByteChatTemplate>();
  return model;
}

// A number of generation_config.json in [low, high]; null and absence leave `value`.
template <class T>
Result<void> read_number(const core::Json& json, const char* key, double low, double high,
                         const std::string& file, T& value) {
  if (!json.contains(key) || json[key].is_null()) return {};
  if (!json[key].is_number() || !(json[key].get<double>() >= low) ||
      !(json[key].get<double>() <= high)) {
    return invalid_argument(fmt::format("{}: {}: found {}, expected a number from {} to {}", file,
                                        key, json[key].dump(-1, ' ', true).substr(0, 40), low,
                                        high));
  }
  value = json[key].get<T>();
  return {};
}

Result<void> read_sampling(const fs::path& folder, server::SamplingDefaults& sampling) {
  const std::string file = (folder / "generation_config.json").string();
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return {};
  const auto text = core::read_file(file);
  if (!text) return text.error();
  const auto json = core::parse_json(*text, file);
  if (!json) return json.error();
  if (!json->is_object()) return invalid_argument(file + ": found no object, expected one");
  for (const auto& read : {read_number(*json, "temperature", 0, 100, file, sampling.temperature),
                           read_number(*json, "top_p", 1e-6, 1, file, sampling.top_p),
                           read_number(*json, "top_k", -1, 1 << 30, file, sampling.top_k)}) {
    if (!read) return read.error();
  }
  if (sampling.top_k < 0) sampling.top_k = 0;  // another spelling of "all"
  return {};
}

Result<ServedModel> load_folder(const fs::path& folder, const ServeOptions& options) {
  const auto spec = catalog::load_model_folder(folder.string());
  if (!spec) return spec.error();
  const auto tokenizer =
      token::HfTokenizer::open(options.tokenizer.empty() ? folder.string() : options.tokenizer);
  if (!tokenizer) return tokenizer.error();
  const auto& opened = **tokenizer;
  if (opened.vocabulary_size() > spec->vocab) {
    return invalid_argument(fmt::format("{}: found {} tokens, the model has {}", opened.name(),
                                        opened.vocabulary_size(), spec->vocab));
  }
  ServedModel model;
  if (opened.chat_template().empty()) {
    model.chat_template = std::make_unique<const token::NoChatTemplate>();
  } else {
    auto made = token::JinjaChatTemplate::create(opened.chat_template(), *tokenizer,
                                                 {opened.bos_text(), opened.eos_text()},
                                                 (folder / "chat template").string());
    if (!made) return made.error();
    model.chat_template = std::move(made).value();
  }
  if (const auto read = read_sampling(folder, model.sampling); !read) return read.error();
  const auto weights = engine::Checkpoint::open(folder.string());
  if (!weights) return weights.error();
  // A model's vocabulary is often padded; ids that no tokenizer knows must not be drawn.
  auto executor = make_executor(*spec, **weights, opened.vocabulary_size(), options);
  if (!executor) return executor.error();
  if (const auto all = (*weights)->check_all_read(*spec); !all) return all.error();
  model.name = spec->id;
  model.executor = std::move(executor).value();
  model.tokenizer = *tokenizer;
  return model;
}

}  // namespace

Result<ServedModel> load_served_model(const ServeOptions& options, core::Clock& clock) {
  if (!emulated_hardware(options.device).empty() || catalog::is_dummy(options.model)) {
    return load_dummy(options, clock);
  }
  if (!options.model.empty()) return load_folder(options.model, options);
  const auto data = catalog::data_folder();
  if (!data) return data.error();
  return load_folder(fs::path(*data) / "models/prony-12m", options);
}

}  // namespace prony::cli
