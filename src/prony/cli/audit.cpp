// prony audit: published claims against physical bounds and their own arithmetic.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "prony/audit/render.hpp"
#include "prony/cli/commands.hpp"
#include "prony/cli/flags.hpp"

namespace prony::cli {
namespace {

struct Options {
  std::vector<std::string> files, ids;
  bool json = false, brief = false;
};

Result<void> choose(const std::vector<std::string>& ids, std::vector<audit::Claim>& claims) {
  if (ids.empty()) return {};
  for (const auto& id : ids) {
    const bool known = std::any_of(claims.begin(), claims.end(),
                                   [&id](const audit::Claim& claim) { return claim.id == id; });
    if (!known) {
      return invalid_argument(fmt::format("--claim: found '{}', expected an id of the files", id));
    }
  }
  std::erase_if(claims, [&ids](const audit::Claim& claim) {
    return std::find(ids.begin(), ids.end(), claim.id) == ids.end();
  });
  return {};
}

Result<int> run(const Options& options) {
  auto claims = audit::read_claims(options.files);
  if (!claims) return claims.error();
  if (auto chosen = choose(options.ids, *claims); !chosen) return chosen.error();
  const auto results = audit::audit(*claims);
  if (!results) return results.error();
  if (options.json) {
    const auto text = core::write_json(audit::audit_json(*results), 2);
    if (!text) return text.error();
    std::fputs((*text + "\n").c_str(), stdout);
  } else {
    std::fputs(audit::audit_table(*results, !options.brief).c_str(), stdout);
  }
  return audit::refuted_controls(*results).empty() ? kExitOk : kExitFailed;
}

}  // namespace

int run_audit(const Arguments& arguments) {
  Options options;
  Flags flags("audit", "published claims against physical bounds and their own arithmetic");
  flags.positional("FILE", options.files, "claim files; without one, those of the data folder")
      .list("--claim", options.ids, "only these ids")
      .toggle("--brief", options.brief, "verdicts without the arithmetic")
      .toggle("--json", options.json, "one JSON document on stdout");
  const auto outcome = flags.parse(arguments);
  if (!outcome) return report_error("audit", outcome.error());
  if (outcome.value() == Flags::Outcome::kHelp) {
    std::fputs(flags.help().c_str(), stdout);
    return kExitOk;
  }
  const auto code = run(options);
  return code ? code.value() : report_error("audit", code.error());
}

}  // namespace prony::cli
