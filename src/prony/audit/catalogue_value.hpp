// Catalogue entries as quantities for claims: a field of a hardware or a model by name.
// Thread safety: pure functions; files are read on every call.
#pragma once
#include <string>
#include <string_view>

#include "prony/audit/quantity.hpp"
#include "prony/core/result.hpp"

namespace prony::audit {

/// bf16 fp8 int8 int4 fp4 (dense), memory, bandwidth, link (one way), link_both_ways, host_link
/// (one way), l2, tdp. Error: kInvalidArgument; also where the device has no such path.
Result<Quantity> hardware_value(const std::string& id, std::string_view field);

/// parameters, active_parameters, flops_per_token (matrix products of one token without attention
/// scores and without the embedding: a lower bound), kv_bytes_per_token (16 bits), layers, hidden,
/// heads, kv_heads, head_dim, experts, experts_per_token, max_context.
Result<Quantity> model_value(const std::string& id, std::string_view field);

}  // namespace prony::audit
