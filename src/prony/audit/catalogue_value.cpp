#include "prony/audit/catalogue_value.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "prony/catalog/catalog.hpp"
#include "prony/catalog/hardware_file.hpp"
#include "prony/perfmodel/parameters.hpp"

namespace prony::audit {
namespace {

using Fields = std::vector<std::pair<std::string_view, Quantity>>;

Quantity in(double value, std::string_view unit) {
  const auto factor = parse_unit(unit).value();
  return {value * factor.value, factor.dimension};
}

Result<Quantity> find(const Fields& fields, const std::string& id, std::string_view field) {
  std::string known;
  for (const auto& [name, quantity] : fields) {
    if (name == field) {
      if (quantity.value > 0) return quantity;
      return invalid_argument(fmt::format("{} has no {}", id, field));
    }
    known += fmt::format(" {}", name);
  }
  return invalid_argument(fmt::format("field '{}' of {}, expected one of{}", field, id, known));
}

}  // namespace

Result<Quantity> hardware_value(const std::string& id, std::string_view field) {
  const auto found = catalog::resolve_hardware(id);
  if (!found) return found.error();
  const auto& spec = *found;
  return find({{"bf16", in(spec.peak_bf16, "FLOPS")},
               {"fp8", in(spec.peak_fp8, "FLOPS")},
               {"int8", in(spec.peak_int8, "FLOPS")},
               {"int4", in(spec.peak_int4, "FLOPS")},
               {"fp4", in(spec.peak_fp4, "FLOPS")},
               {"memory", in(spec.memory_bytes, "B")},
               {"bandwidth", in(spec.memory_bandwidth, "B/s")},
               {"link", in(spec.link_bandwidth, "B/s")},
               {"link_both_ways", in(2 * spec.link_bandwidth, "B/s")},
               {"host_link", in(spec.host_bandwidth, "B/s")},
               {"l2", in(spec.l2_bytes, "B")},
               {"tdp", in(spec.tdp_w, "W")}},
              id, field);
}

Result<Quantity> model_value(const std::string& id, std::string_view field) {
  const auto found = catalog::resolve_model(id);
  if (!found) return found.error();
  const auto& spec = *found;
  const auto count = perfmodel::parameter_count(spec);
  const auto number = [](double value) { return in(value, "1"); };
  const double total = static_cast<double>(count.total());
  const double active = static_cast<double>(count.active());
  // A gathered row of the embedding is no product; a tied head is one and is the same matrix.
  const double products =
      active - (spec.tied_embeddings ? 0.0 : static_cast<double>(count.embedding));
  return find({{"parameters", in(total, "param")},
               {"active_parameters", in(active, "param")},
               {"flops_per_token", in(2 * products, "FLOP/token")},
               {"kv_bytes_per_token", in(perfmodel::kv_bytes_per_token(spec, 2), "B/token")},
               {"layers", number(spec.layers)},
               {"hidden", number(spec.hidden)},
               {"heads", number(spec.heads)},
               {"kv_heads", number(spec.kv_heads)},
               {"head_dim", number(spec.head_dim)},
               {"experts", number(spec.moe ? spec.moe->experts : 0)},
               {"experts_per_token", number(spec.moe ? spec.moe->experts_per_token : 0)},
               {"max_context", in(spec.max_context, "token")}},
              id, field);
}

}  // namespace prony::audit
