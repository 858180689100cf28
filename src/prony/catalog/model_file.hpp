// data/models/<id>.yaml to ModelSpec: the catalogue's own form of a model, in which every section
// names the reference of its numbers. docs/catalog.md describes the format.
// Thread safety: pure functions. Source: ours.
#pragma once
#include <string_view>

#include "prony/catalog/model_spec.hpp"
#include "prony/core/result.hpp"

namespace prony::catalog {

/// `name` is the file, for messages. The result passed check_model.
/// Error: kInvalidArgument, "NAME:LINE: what is wrong, what was expected".
Result<ModelSpec> parse_model_file(std::string_view text, std::string_view name);

}  // namespace prony::catalog
