// Hugging Face config.json to ModelSpec. What a missing key means is decided per architecture as
// transformers' configuration classes do; a key that changes the computation and that ModelSpec
// cannot say (an unknown rope type, partial rotary, other quantisation, another pattern of layers)
// is an error that names it, never ignored: a wrong shape gives plausible numbers.
// Thread safety: pure functions. Source: transformers 4.36 to 5, src/transformers/models/*/
// configuration_*.py, and the published config.json files of the models.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "prony/catalog/model_spec.hpp"
#include "prony/core/result.hpp"

namespace prony::catalog {

/// Class names of `architectures` that are understood, sorted.
std::vector<std::string_view> known_architectures();

/// `name` is the file, for messages. The result passed check_model; its id is empty.
/// Error: kInvalidArgument, "NAME: KEY is X, expected Y".
Result<ModelSpec> parse_hf_config(std::string_view text, std::string_view name);

/// Adds the eos ids of a generation_config.json, which for chat models lists more than config.json.
Result<void> add_generation_config(std::string_view text, std::string_view name, ModelSpec& spec);

}  // namespace prony::catalog
