#include "prony/compare/differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace prony::compare {
namespace {

using core::Json;
using record::CompareDifference;

// Noise, or what other fields say better.
constexpr std::array kIgnored = {"environment.load_average", "environment.steal_fraction",
                                 "workload.description"};
// Of a workload: another draw of the same law, or how the client went about it. Everything else of
// a workload makes it another one.
constexpr std::array kSameLaw = {"seed",
                                 "num_requests",
                                 "details.schedule_digest",
                                 "details.duration_s",
                                 "details.threads",
                                 "details.num_warmups",
                                 "details.usage",
                                 "details.prompt_salt",
                                 "details.connect_timeout_s",
                                 "details.first_token_timeout_s",
                                 "details.stall_timeout_s",
                                 "details.total_timeout_s",
                                 "details.drain_s"};

bool contains(const auto& list, std::string_view word) {
  return std::ranges::any_of(list, [&](const char* one) { return one == word; });
}

std::string shown(const Json* json) {
  if (json == nullptr || json->is_null()) return "none";
  return json->is_string() ? json->get<std::string>()
                           : json->dump(-1, ' ', false, Json::error_handler_t::replace);
}

const Json* member(const Json& json, const std::string& key) {
  const auto found = json.find(key);
  return found == json.end() ? nullptr : &*found;
}

class Differences {
 public:
  void section(const std::string& name, const Json& a, const Json& b) {
    walk(name, "", member(a, name), member(b, name));
  }
  void add(const std::string& section, const std::string& field, std::string a, std::string b,
           bool incomparable) {
    if (a != b) found_.push_back({section, field, std::move(a), std::move(b), incomparable});
  }
  std::vector<CompareDifference> sorted() && {
    std::ranges::stable_sort(found_, std::greater<>(), &CompareDifference::incomparable);
    return std::move(found_);
  }

 private:
  void walk(const std::string& section, const std::string& field, const Json* a, const Json* b) {
    if (a != nullptr && b != nullptr && a->is_object() && b->is_object()) {
      std::vector<std::string> keys;
      for (const auto& [key, value] : a->items()) keys.push_back(key);
      for (const auto& [key, value] : b->items()) {
        if (!a->contains(key)) keys.push_back(key);
      }
      for (const auto& key : keys) {
        walk(section, field.empty() ? key : field + "." + key, member(*a, key), member(*b, key));
      }
      return;
    }
    if (contains(kIgnored, section + "." + field)) return;
    const auto left = shown(a), right = shown(b);
    add(section, field, left, right, section == "workload" && !contains(kSameLaw, field));
  }
  std::vector<CompareDifference> found_;
};

const record::Record* first_record(const SideInput& side) {
  for (const auto& run : side.runs) {
    if (run.record) return &*run.record;
  }
  return nullptr;
}

bool has_own_timing(const record::Record& record) {
  return record.system.kind == record::SystemKind::kEmulated ||
         record.system.kind == record::SystemKind::kMock;
}

std::string sources_of(const record::Metrics& metrics) {
  std::string out;
  for (const auto& [source, count] : metrics.token_sources) {
    out += (out.empty() ? "" : ", ") + source;
  }
  return out.empty() ? "none" : out;
}

}  // namespace

std::vector<CompareDifference> find_differences(const SideInput& baseline,
                                                const SideInput& candidate) {
  const auto* a = first_record(baseline);
  const auto* b = first_record(candidate);
  if (a == nullptr || b == nullptr) return {};
  Differences out;
  out.add("record", "source", record::source_name(a->source), record::source_name(b->source),
          false);
  Json left = record::record_to_json(*a), right = record::record_to_json(*b);
  // A timing that was made up is no measurement of a server.
  const bool kinds = a->system.kind != b->system.kind && (has_own_timing(*a) || has_own_timing(*b));
  out.add("system", "kind", record::system_kind_name(a->system.kind),
          record::system_kind_name(b->system.kind), kinds);
  left["system"].erase("kind");
  right["system"].erase("kind");
  for (const char* section : {"system", "workload", "environment"}) {
    out.section(section, left, right);
  }
  out.add("metrics", "goodput_slo", a->metrics.goodput_slo, b->metrics.goodput_slo, false);
  out.add("metrics", "itl_basis", a->metrics.itl_basis, b->metrics.itl_basis, false);
  out.add("metrics", "token_sources", sources_of(a->metrics), sources_of(b->metrics), false);
  out.add("metrics", "window_rule", a->metrics.window_rule, b->metrics.window_rule, false);
  return std::move(out).sorted();
}

std::vector<std::string> obstacles(const SideInput& baseline, const SideInput& candidate,
                                   const std::vector<CompareDifference>& differences) {
  std::vector<std::string> out;
  for (const auto* side : {&baseline, &candidate}) {
    for (const auto& run : side->runs) {
      if (!run.record) continue;
      if (!run.record->validity.valid) {
        const auto& reasons = run.record->validity.reasons;
        out.push_back(fmt::format("{} is not valid: {}", run.path,
                                  reasons.empty() ? "no reason given" : reasons.front()));
      }
      if (run.record->run.interrupted) out.push_back(run.path + " was interrupted");
      if (run.metrics.completed && *run.metrics.completed == 0) {
        out.push_back(run.path + " has no completed request");
      }
    }
  }
  for (const auto& one : differences) {
    if (!one.incomparable) continue;
    out.push_back(fmt::format("{} differs in {}: {} and {}", one.section, one.field, one.baseline,
                              one.candidate));
  }
  return out;
}

}  // namespace prony::compare
