// Flags of `prony bench` that say what to load and what goes out with every request.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "prony/cli/bench_flags.hpp"
#include "prony/core/system.hpp"

namespace prony::cli {

// "K=V" or, for headers, also "K: V".
Result<std::pair<std::string, std::string>> split_pair(const char* flag, const std::string& text,
                                                       const char* separators) {
  const auto at = text.find_first_of(separators);
  if (at == std::string::npos || at == 0) {
    return invalid_argument(fmt::format("{}: found '{}', expected NAME=VALUE", flag, text));
  }
  auto value = text.substr(at + 1);
  while (value.starts_with(' ')) value.erase(0, 1);
  return std::pair{text.substr(0, at), value};
}

// The command as it may be shown: values of headers are nobody's business.
std::vector<std::string> without_secrets(const Arguments& arguments) {
  std::vector<std::string> shown;
  bool in_headers = false;
  for (const auto& argument : arguments) {
    if (argument.starts_with("--")) in_headers = argument.starts_with("--header");
    const auto at = argument.find_first_of("=:", argument.starts_with("--header=") ? 9 : 0);
    shown.push_back(in_headers && argument != "--header"
                        ? argument.substr(0, at == std::string::npos ? 0 : at) + "=..."
                        : argument);
  }
  return shown;
}

namespace {
bool is_authorization(const std::pair<std::string, std::string>& header) {
  return header.first == "Authorization" || header.first == "authorization";
}
}  // namespace

Result<void> resolve_target(BenchFlags& o) {
  auto& target = o.target;
  target.base_url = o.base_url.value_or("");
  target.path = o.endpoint;
  target.type = o.endpoint_type;
  target.model = o.model;
  target.insecure = o.insecure;
  if (!(o.ready_timeout_s >= 0 && o.ready_timeout_s <= 1e6)) {
    return invalid_argument(
        fmt::format("--ready-timeout: found {:g}, expected seconds, 0 or more", o.ready_timeout_s));
  }
  target.ready_timeout_ns = static_cast<core::Nanos>(std::llround(o.ready_timeout_s * 1e9));
  if (const auto key = core::environment_variable("OPENAI_API_KEY"); key && !key->empty()) {
    target.headers.emplace_back("Authorization", "Bearer " + *key);
  }
  for (const auto& text : o.headers) {
    auto header = split_pair("--header", text, "=:");
    if (!header) return header.error();
    auto& name = header.value().first;
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
      return static_cast<char>(std::tolower(c));  // names know no case
    });
    if (name == "authorization") std::erase_if(target.headers, is_authorization);
    target.headers.push_back(std::move(header).value());
  }
  if (target.type != "auto") {  // early, before a server is started or waited for
    if (auto found = load::find_dialect(target.type, "--endpoint-type"); !found) {
      return found.error();
    }
  }
  return {};
}

}  // namespace prony::cli
