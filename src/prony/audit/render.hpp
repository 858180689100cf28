// An audit as JSON (prony.audit/1) and as text that shows the arithmetic.
// Thread safety: pure functions.
#pragma once
#include <span>
#include <string>

#include "prony/audit/audit.hpp"
#include "prony/core/json.hpp"

namespace prony::audit {

inline constexpr const char* kAuditSchema = "prony.audit/1";

core::Json audit_json(std::span<const ClaimResult> results);
/// `arithmetic`: every check below its claim; else one line a claim.
std::string audit_table(std::span<const ClaimResult> results, bool arithmetic);

}  // namespace prony::audit
