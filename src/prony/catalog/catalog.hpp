// Catalog: the models (later hardware, prices, engines) that Prony knows, by name. This module is
// the only one that knows where the data folder is.
// Thread safety: any thread; every call reads the files anew and keeps no state.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "prony/catalog/model_spec.hpp"
#include "prony/core/result.hpp"

namespace prony::catalog {

/// Prefix of a model name that asks for seeded random weights of that shape.
inline constexpr std::string_view kDummyPrefix = "dummy:";

/// True for "dummy:...": the shape comes from a preset or the catalogue, the weights from a seed.
bool is_dummy(std::string_view name);

/// The folder with models/, hardware/, ...: $PRONY_DATA if set, else `data` beside the program,
/// else `data` in the nearest folder above the program that has data/models (the source tree).
/// Error: kEnvironment, naming the places that were tried.
Result<std::string> data_folder();

/// The search without the environment: `data` beside `program_folder` or in the nearest folder
/// above it that has data/models.
Result<std::string> find_data_folder(const std::string& program_folder);

/// Ids of data/models, sorted.
Result<std::vector<std::string>> model_ids();

/// The shape behind a name, which is one of
///   dummy:<preset>         built in; needs no data folder
///   dummy:<catalogue id>   the shape of data/models/<id>.yaml
///   <catalogue id>         the same; wins over a folder of that name (write ./NAME for the folder)
///   <owner>/<name>         the Hugging Face id of a catalogue entry
///   DIR                    a folder with a Hugging Face config.json (eos ids also from its
///                          generation_config.json)
///   FILE.yaml, FILE.json   a catalogue file or a config.json anywhere
/// Result: `id` is the name as asked for dummies, the catalogue id, or the folder's last part.
/// Error: kInvalidArgument, naming what is known and the nearest name; or what is wrong in the
/// file.
Result<ModelSpec> resolve_model(std::string_view name);

/// One catalogue entry. Error: kInvalidArgument for an unknown id or a bad file, by line.
Result<ModelSpec> load_model(std::string_view id);

/// A folder as `huggingface-cli download` leaves it. Error: kInvalidArgument for a bad file.
Result<ModelSpec> load_model_folder(const std::string& folder);

}  // namespace prony::catalog
