# What nearly every source parses, parsed once a build folder: half the compile time of a test. Only where
# PRONY_PCH is on (the preset asan): elsewhere a source must name all that it uses, and the
# preset `ci`, which builds everything too, finds the ones that do not.
# prony_use_pch(target source|test)
option(PRONY_PCH "precompiled headers (preset asan)" OFF)

if(PRONY_PCH)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/gen/pch.cpp CONTENT "// Carries a precompiled header.\n" @ONLY)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    set(prony_pch_options -Xclang -fno-pch-timestamp)  # so that ccache can keep what was built with it
  else()
    set(prony_pch_options -fpch-preprocess)
  endif()
  foreach(kind source test)
    add_library(prony_pch_${kind} OBJECT ${CMAKE_BINARY_DIR}/gen/pch.cpp)
    target_include_directories(prony_pch_${kind} PRIVATE ${CMAKE_SOURCE_DIR}/src)
    target_compile_options(prony_pch_${kind} PRIVATE ${prony_pch_options})
    target_link_libraries(prony_pch_${kind} PRIVATE prony_flags fmt::fmt nlohmann_json::nlohmann_json Threads::Threads)
    target_precompile_headers(prony_pch_${kind} PRIVATE <algorithm> <functional> <map> <memory> <optional> <string>
                              <string_view> <vector> <fmt/format.h> <prony/core/json.hpp>)
  endforeach()
  if(PRONY_TESTS)
    target_link_libraries(prony_pch_test PRIVATE GTest::gmock)
    target_precompile_headers(prony_pch_test PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  endif()
endif()

function(prony_use_pch target kind)
  if(NOT PRONY_PCH)
    return()
  endif()
  target_precompile_headers(${target} REUSE_FROM prony_pch_${kind})
  target_compile_options(${target} PRIVATE ${prony_pch_options})
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "_(avx2|avx512|amx)\\.cpp$|\\.c$")  # other flags, other headers
  set_source_files_properties(${sources} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
endfunction()
