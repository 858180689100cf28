# Version and commit as build/.../gen/prony/version.hpp, rewritten at build time when they change.
# Included by CMakeLists.txt; run as a script (cmake -P) by the target prony_version.
if(CMAKE_SCRIPT_MODE_FILE)
  execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=12
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT commit)
    set(commit "unknown")
  endif()
  file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT
"// Generated. Version of the program and the commit it was built from.
#pragma once
namespace prony {
inline constexpr const char* kVersion = \"${VERSION}\";
inline constexpr const char* kCommit = \"${commit}\";
}  // namespace prony
")
  return()
endif()

set(prony_version_header ${CMAKE_BINARY_DIR}/gen/prony/version.hpp)
set(prony_version_command ${CMAKE_COMMAND} -DSOURCE_DIR=${CMAKE_SOURCE_DIR} -DVERSION=${PROJECT_VERSION}
    -DOUT=${prony_version_header} -P ${CMAKE_CURRENT_LIST_FILE})
execute_process(COMMAND ${prony_version_command})  # there before the first compile
add_custom_target(prony_version COMMAND ${prony_version_command} BYPRODUCTS ${prony_version_header}
                  COMMENT "" VERBATIM)

# What includes prony/version.hpp names this library; nobody else sees a path of the build folder, so
# that a compiler cache serves all presets alike.
add_library(prony_version_header INTERFACE)
target_include_directories(prony_version_header INTERFACE ${CMAKE_BINARY_DIR}/gen)
add_dependencies(prony_version_header prony_version)
set(PRONY_LIB_version prony_version_header)
