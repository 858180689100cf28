// Rotary embedding of a Hugging Face config.json: `rope_theta` with `rope_scaling`, or (from
// transformers 5 on) `rope_parameters`; the type is `rope_type` or, in older files, `type`.
// Thread safety: pure functions. Source: transformers, modeling_rope_utils.py.
#pragma once
#include "prony/catalog/json_fields.hpp"
#include "prony/catalog/model_spec.hpp"

namespace prony::catalog {

/// Fills spec.rope; errors go to the JsonErrors of `config`. Unknown types, per-layer parameters
/// and partial rotation are errors: ignoring them gives right answers for short prompts only.
void read_hf_rope(JsonFields& config, double default_theta, ModelSpec& spec);

}  // namespace prony::catalog
