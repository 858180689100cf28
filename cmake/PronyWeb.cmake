# The report's page script: npm fetches what web/package-lock.json names, esbuild bundles web/src,
# and src/prony/report/assets.cpp embeds the result. include(PronyWeb) anywhere in the top
# CMakeLists.txt; it attaches itself to prony_report when all targets are there.
#   PRONY_WEB=AUTO  where npm is missing or does not answer within 20 s: one line, and the page has
#                   its tables without figures. The next configure tries again.
#   PRONY_WEB=ON    the same is an error.      PRONY_WEB=OFF  never asks npm.
# Run as a script (cmake -P) by the build, it makes one folder: report.css, report.js, licenses.txt
# and report_assets.hpp with the hashes that the page's Content-Security-Policy names.
set(PRONY_WEB_ANSWER_S 20)    # to answer at all
set(PRONY_WEB_INSTALL_S 300)  # to deliver everything
set(PRONY_WEB_BUNDLE_S 120)

# "sha256-<base64>" of a file. CMake hashes to hex only; three bytes are six hex digits or four
# base64 ones, and the 32 bytes of a hash leave two bytes, which end in one '='.
function(prony_csp_hash file out)
  set(digits "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  file(SHA256 ${file} hex)
  set(text "sha256-")
  foreach(at RANGE 0 60 6)
    string(SUBSTRING "${hex}00" ${at} 6 group)
    foreach(shift 18 12 6 0)
      math(EXPR digit "(0x${group} >> ${shift}) & 63")
      string(SUBSTRING ${digits} ${digit} 1 character)
      string(APPEND text ${character})
    endforeach()
  endforeach()
  string(REGEX REPLACE "A$" "=" text ${text})  # the padding byte
  set(${out} ${text} PARENT_SCOPE)
endfunction()

# Installs the locked packages into WORK unless they are there. `reason`: why not, else empty.
function(prony_web_install reason)
  set(${reason} "" PARENT_SCOPE)
  find_program(NPM npm NO_CACHE)
  find_program(NODE node NO_CACHE)
  if(NOT NPM OR NOT NODE)
    set(${reason} "found no npm" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ${NODE} --version OUTPUT_VARIABLE node_version
                  OUTPUT_STRIP_TRAILING_WHITESPACE TIMEOUT ${PRONY_WEB_ANSWER_S})
  if(NOT node_version MATCHES "^v([0-9]+)" OR CMAKE_MATCH_1 LESS 18)
    set(${reason} "found node '${node_version}', which is older than v18" PARENT_SCOPE)
    return()
  endif()
  file(SHA256 ${WEB}/package-lock.json wanted)
  string(APPEND wanted " dev=${DEV}\n")
  set(stamp ${WORK}/installed.txt)
  if(EXISTS ${stamp})
    file(READ ${stamp} installed)
    if(installed STREQUAL wanted)
      return()
    endif()
  endif()
  file(REMOVE ${stamp})
  file(MAKE_DIRECTORY ${WORK})
  file(COPY ${WEB}/package.json ${WEB}/package-lock.json ${WEB}/.npmrc DESTINATION ${WORK})
  # A question about one package tells quickly whether anyone answers; what an earlier build
  # fetched is answered from npm's own cache.
  execute_process(COMMAND ${NPM} view --prefer-offline --fetch-retries=0 tslib version
                  WORKING_DIRECTORY ${WORK} OUTPUT_QUIET ERROR_QUIET RESULT_VARIABLE result
                  TIMEOUT ${PRONY_WEB_ANSWER_S})
  if(result MATCHES "timeout")
    set(${reason} "npm did not answer within ${PRONY_WEB_ANSWER_S} s" PARENT_SCOPE)
    return()
  elseif(NOT result EQUAL 0)
    set(${reason} "npm reached no registry" PARENT_SCOPE)
    return()
  endif()
  set(omit --omit=dev)
  if(DEV)
    set(omit --include=dev)
  endif()
  execute_process(COMMAND ${NPM} ci ${omit} --prefer-offline --ignore-scripts --no-audit --no-fund
                  WORKING_DIRECTORY ${WORK} OUTPUT_QUIET ERROR_VARIABLE errors
                  RESULT_VARIABLE result TIMEOUT ${PRONY_WEB_INSTALL_S})
  if(NOT result EQUAL 0)
    string(REGEX MATCH "[^\n]*\n?[^\n]*" errors "${errors}")
    string(REPLACE "\n" " " errors "${errors}")
    set(${reason} "npm ci failed (${result}): ${errors}" PARENT_SCOPE)
    return()
  endif()
  file(WRITE ${stamp} ${wanted})
endfunction()

function(prony_web_make)
  file(MAKE_DIRECTORY ${OUT})
  configure_file(${WEB}/src/report.css ${OUT}/report.css COPYONLY)
  set(reason "")
  set(figures OFF)
  if(NOT MODE STREQUAL "OFF")
    prony_web_install(reason)
    if(reason STREQUAL "")
      set(figures ON)
      # A bundle that does not build is our fault, never the network's: an error in every mode.
      execute_process(COMMAND node ${WEB}/build.mjs --out ${OUT} --modules ${WORK}/node_modules
                      RESULT_VARIABLE result TIMEOUT ${PRONY_WEB_BUNDLE_S})
      if(NOT result EQUAL 0)
        message(FATAL_ERROR "web/build.mjs: failed (${result})")
      endif()
    elseif(MODE STREQUAL "ON")
      message(FATAL_ERROR "PRONY_WEB=ON: ${reason}")
    else()
      message(NOTICE "prony: ${reason}: reports will have their tables without figures")
    endif()
  endif()
  file(REMOVE ${OUT}/without_figures)
  if(NOT figures)
    foreach(name report.js licenses.txt sweep.js sweep_licenses.txt)
      file(WRITE ${OUT}/${name} "")
    endforeach()
    file(WRITE ${OUT}/without_figures "${reason}\n")
  endif()
  prony_csp_hash(${OUT}/report.css style_hash)
  prony_csp_hash(${OUT}/report.js script_hash)
  prony_csp_hash(${OUT}/sweep.js sweep_script_hash)
  file(WRITE ${OUT}/report_assets.hpp
"// Generated. Where the page's fixed parts lie and how its policy names them.
// Thread safety: constants.
#pragma once
#define PRONY_WEB_DIR \"${OUT}\"
namespace prony::report::web {
inline constexpr const char* kStyleHash = \"${style_hash}\";
inline constexpr const char* kScriptHash = \"${script_hash}\";
inline constexpr const char* kSweepScriptHash = \"${sweep_script_hash}\";
}  // namespace prony::report::web
")
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  prony_web_make()
  return()
endif()

if(NOT PRONY_WEB MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "PRONY_WEB is '${PRONY_WEB}', expected AUTO, ON or OFF")
endif()

set(prony_web_out ${CMAKE_BINARY_DIR}/gen/web)
set(prony_web_work ${CMAKE_BINARY_DIR}/web)
set(prony_web_files report_assets.hpp report.js report.css licenses.txt sweep.js sweep_licenses.txt)
list(TRANSFORM prony_web_files PREPEND ${prony_web_out}/)
if(EXISTS ${prony_web_out}/without_figures AND NOT PRONY_WEB STREQUAL "OFF")
  file(REMOVE ${prony_web_files})  # npm may answer today
endif()
file(GLOB prony_web_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/web/src/*)
add_custom_command(
  OUTPUT ${prony_web_files}
  COMMAND ${CMAKE_COMMAND} -DMODE=${PRONY_WEB} -DDEV=$<BOOL:${PRONY_TESTS}> -DWEB=${CMAKE_SOURCE_DIR}/web
          -DOUT=${prony_web_out} -DWORK=${prony_web_work} -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${prony_web_sources} ${CMAKE_SOURCE_DIR}/web/package-lock.json
          ${CMAKE_SOURCE_DIR}/web/build.mjs ${CMAKE_CURRENT_LIST_FILE}
  COMMENT "the report's page" VERBATIM)
add_custom_target(prony_web DEPENDS ${prony_web_files})

# Called at the end of the top CMakeLists.txt.
function(prony_web_attach)
  if(NOT TARGET prony_report)
    return()
  endif()
  add_dependencies(prony_report prony_web)
  # The one source that sees the build folder; the assembler reads the files behind its back.
  set_property(SOURCE ${CMAKE_SOURCE_DIR}/src/prony/report/assets.cpp APPEND PROPERTY
               INCLUDE_DIRECTORIES ${CMAKE_BINARY_DIR}/gen)
  set_property(SOURCE ${CMAKE_SOURCE_DIR}/src/prony/report/assets.cpp APPEND PROPERTY
               OBJECT_DEPENDS ${prony_web_files})
  if(NOT PRONY_TESTS)
    return()
  endif()
  prony_web_tests()
endfunction()

# The pages of every kind of run; then, where sanitizers do not slow everything for nothing, type
# check and unit tests of the page script, and the pages in a browser. The last two exit with 77
# (skipped) where their tools are not installed.
function(prony_web_tests)
  set(pages ${CMAKE_BINARY_DIR}/e2e/report)
  add_executable(prony_report_pages ${CMAKE_SOURCE_DIR}/tests/e2e/report_pages.cpp)
  target_link_libraries(prony_report_pages PRIVATE prony_report prony_flags fmt::fmt)
  add_test(NAME report.pages COMMAND prony_report_pages ${pages})
  set_tests_properties(report.pages PROPERTIES FIXTURES_SETUP report_pages LABELS report
                       TIMEOUT 120)
  find_program(NODE_PROGRAM node)
  if(NOT NODE_PROGRAM OR PRONY_SANITIZE)
    return()
  endif()
  add_test(NAME web.check COMMAND ${NODE_PROGRAM} ${CMAKE_SOURCE_DIR}/web/check.mjs
           --modules ${prony_web_work}/node_modules)
  add_test(NAME report.e2e COMMAND ${NODE_PROGRAM} ${CMAKE_SOURCE_DIR}/tests/e2e/report.mjs ${pages})
  set_tests_properties(report.e2e PROPERTIES FIXTURES_REQUIRED report_pages RUN_SERIAL TRUE)
  set_tests_properties(web.check report.e2e PROPERTIES SKIP_RETURN_CODE 77 LABELS report
                       TIMEOUT 300)
endfunction()

cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL prony_web_attach)
