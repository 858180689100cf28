#include "prony/report/assets.hpp"

#if !__has_include("web/report_assets.hpp")
#error "no page assets: include(PronyWeb) is missing in CMakeLists.txt"
#endif
#include "web/report_assets.hpp"  // generated: PRONY_WEB_DIR, kStyleHash, kScriptHash

// The assembler copies each file into the read-only data; NAME_end stands right behind it.
#define PRONY_EMBED(name, file)                        \
  __asm__(                                             \
      ".pushsection .rodata\n"                         \
      ".global prony_report_" #name                    \
      "_begin\n"                                       \
      ".global prony_report_" #name                    \
      "_end\n"                                         \
      "prony_report_" #name                            \
      "_begin:\n"                                      \
      ".incbin \"" PRONY_WEB_DIR "/" file              \
      "\"\n"                                           \
      "prony_report_" #name                            \
      "_end:\n"                                        \
      ".byte 0\n"                                      \
      ".popsection\n");                                \
  extern "C" const char prony_report_##name##_begin[]; \
  extern "C" const char prony_report_##name##_end[]

PRONY_EMBED(style, "report.css");
PRONY_EMBED(script, "report.js");
PRONY_EMBED(licenses, "licenses.txt");
PRONY_EMBED(sweep_script, "sweep.js");
PRONY_EMBED(sweep_licenses, "sweep_licenses.txt");

namespace prony::report {
namespace {

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace

const Assets& assets() {
  static const Assets kAssets = {
      .style = between(prony_report_style_begin, prony_report_style_end),
      .style_hash = web::kStyleHash,
      .script = between(prony_report_script_begin, prony_report_script_end),
      .script_hash = web::kScriptHash,
      .licenses = between(prony_report_licenses_begin, prony_report_licenses_end),
  };
  return kAssets;
}

const Assets& sweep_assets() {
  static const Assets kAssets = {
      .style = assets().style,
      .style_hash = assets().style_hash,
      .script = between(prony_report_sweep_script_begin, prony_report_sweep_script_end),
      .script_hash = web::kSweepScriptHash,
      .licenses = between(prony_report_sweep_licenses_begin, prony_report_sweep_licenses_end),
  };
  return kAssets;
}

}  // namespace prony::report
