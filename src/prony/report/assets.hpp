// The page's fixed parts, embedded by the build (cmake/PronyWeb.cmake): style sheet, the bundled
// script of the figures with its packages' licences, and the hashes by which the page's policy
// names both. Thread safety: constants.
#pragma once
#include <string_view>

namespace prony::report {

struct Assets {
  std::string_view style;
  std::string_view style_hash;  // "sha256-<base64>", as Content-Security-Policy wants it
  std::string_view script;      // empty if built without figures
  std::string_view script_hash;
  std::string_view licenses;  // of the packages in `script`
};
const Assets& assets();        // of the page of a run
const Assets& sweep_assets();  // of the page of a sweep: the same style, its own script

}  // namespace prony::report
