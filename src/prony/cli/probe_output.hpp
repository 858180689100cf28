// What `prony probe` prints: a table for people, prony.probe/1 for programs.
// Thread safety: pure functions.
#pragma once
#include <string>

#include "prony/core/json.hpp"
#include "prony/probe/hardware_text.hpp"
#include "prony/record/record.hpp"

namespace prony::cli {

core::Json probe_json(const probe::CpuProbe& probe, const probe::Machine& machine,
                      const record::Environment& environment, const std::string& path);
std::string probe_table(const probe::CpuProbe& probe, const probe::Machine& machine,
                        const std::string& path);

}  // namespace prony::cli
