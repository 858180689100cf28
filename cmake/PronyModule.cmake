# prony_module(name USES modules... LIBS libraries...)
#   a static library prony_<name> from src/prony/<name>/*.cpp (all but *_test.cpp, *_bench.cpp) and,
#   with PRONY_TESTS, the test program prony_<name>_test from its *_test.cpp, with PRONY_FUZZ a
#   libFuzzer program of each *_fuzz.cpp under its name (all: target prony_fuzzers). A module without a
#   folder does not exist yet and is skipped; so is a use of it.
# prony_program(name): the command line over every module.
# prony_checks(): the tests that read sources instead of running them.
set_property(GLOBAL PROPERTY PRONY_MODULES "")
include(GoogleTest)

# Sources that need instruction sets beyond the baseline are named *_avx2.cpp, *_avx512.cpp or
# *_amx.cpp; everything else is plain x86-64 and chooses at run time.
function(prony_isa_flags sources)
  foreach(source ${sources})
    if(source MATCHES "_avx2\\.cpp$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-mf16c")
    elseif(source MATCHES "_avx512\\.cpp$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
        "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512bf16;-mfma")
    elseif(source MATCHES "_amx\\.cpp$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
        "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512bf16;-mamx-tile;-mamx-bf16;-mamx-int8")
    endif()
  endforeach()
endfunction()

function(prony_module name)
  cmake_parse_arguments(ARG "" "" "USES;LIBS" ${ARGN})
  set(dir ${CMAKE_SOURCE_DIR}/src/prony/${name})
  if(NOT IS_DIRECTORY ${dir})
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.cpp)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${dir}/*.hpp)
  set(tests ${sources})
  set(benches ${sources})
  set(fuzzers ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER benches INCLUDE REGEX "_bench\\.cpp$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "(_test|_bench|_fuzz)\\.cpp$")
  if(NOT sources AND NOT headers)
    return()
  endif()
  prony_isa_flags("${sources}")

  set(uses "")
  foreach(used ${ARG_USES})
    if(TARGET prony_${used})
      list(APPEND uses prony_${used})
    endif()
  endforeach()
  set(libs "")
  foreach(lib ${ARG_LIBS})
    list(APPEND libs ${PRONY_LIB_${lib}})
  endforeach()

  if(sources)
    add_library(prony_${name} STATIC ${sources})
    target_link_libraries(prony_${name} PUBLIC ${uses} PRIVATE prony_flags ${libs} fmt::fmt Threads::Threads)
    # core's public headers expose the record format (core/json.hpp) and fmt.
    if(name STREQUAL "core")
      target_link_libraries(prony_core PUBLIC nlohmann_json::nlohmann_json fmt::fmt)
    endif()
    target_include_directories(prony_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  else()
    add_library(prony_${name} INTERFACE)
    target_link_libraries(prony_${name} INTERFACE ${uses})
    target_include_directories(prony_${name} INTERFACE ${CMAKE_SOURCE_DIR}/src)
  endif()
  set_property(GLOBAL APPEND PROPERTY PRONY_MODULES ${name})

  if(PRONY_TESTS AND tests)
    add_executable(prony_${name}_test ${tests})
    target_link_libraries(prony_${name}_test PRIVATE prony_${name} prony_flags ${libs} fmt::fmt
                          GTest::gmock_main)
    # The data folder of this source tree, so that tests run from anywhere.
    target_compile_definitions(prony_${name}_test PRIVATE PRONY_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    gtest_discover_tests(prony_${name}_test TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60
                         PROPERTIES LABELS ${name} TIMEOUT 300)
  endif()
  if(PRONY_BENCH AND benches)
    add_executable(prony_${name}_bench ${benches})
    target_link_libraries(prony_${name}_bench PRIVATE prony_${name} prony_flags ${libs} fmt::fmt
                          benchmark::benchmark_main)
  endif()
  if(PRONY_FUZZ)
    foreach(fuzzer ${fuzzers})
      get_filename_component(fuzzer_name ${fuzzer} NAME_WE)
      add_executable(${fuzzer_name} ${fuzzer})
      target_link_libraries(${fuzzer_name} PRIVATE prony_${name} prony_flags ${libs} fmt::fmt)
      target_link_options(${fuzzer_name} PRIVATE -fsanitize=fuzzer)
      set_target_properties(${fuzzer_name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                            ${CMAKE_BINARY_DIR}/fuzzers)
      set_property(GLOBAL APPEND PROPERTY PRONY_FUZZERS ${fuzzer_name})
    endforeach()
  endif()
  if(PRONY_TESTS AND headers)
    prony_headers_alone(${name} "${headers}" "${libs}")
  endif()
endfunction()

# Every header compiles alone: one generated source a header, compiled and never linked.
function(prony_headers_alone name headers libs)
  set(units "")
  foreach(header ${headers})
    file(RELATIVE_PATH include ${CMAKE_SOURCE_DIR}/src ${header})
    string(REPLACE "/" "_" unit ${include})
    set(unit ${CMAKE_BINARY_DIR}/gen/alone/${unit}.cpp)
    file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${include}\"\n#include \"${include}\"\n" @ONLY)
    list(APPEND units ${unit})
  endforeach()
  add_library(prony_${name}_headers OBJECT EXCLUDE_FROM_ALL ${units})
  target_link_libraries(prony_${name}_headers PRIVATE prony_${name} prony_flags fmt::fmt)
  target_compile_options(prony_${name}_headers PRIVATE -fsyntax-only)
  set_property(GLOBAL APPEND PROPERTY PRONY_HEADER_TARGETS prony_${name}_headers)
endfunction()

function(prony_program name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/prony/cli/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  if(NOT sources)
    return()
  endif()
  get_property(modules GLOBAL PROPERTY PRONY_MODULES)
  list(TRANSFORM modules PREPEND prony_)
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${modules} prony_flags prony_version_header fmt::fmt CLI11::CLI11
                        Threads::Threads)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endfunction()

# Tests that read the tree instead of running the program (label lint), and end-to-end tests that run
# the program from node (label e2e; exit code 77 means skipped, with the reason on the last line).
function(prony_checks)
  get_property(fuzzers GLOBAL PROPERTY PRONY_FUZZERS)
  if(fuzzers)
    add_custom_target(prony_fuzzers DEPENDS ${fuzzers})
  endif()
  if(NOT PRONY_TESTS)
    return()
  endif()
  find_program(PYTHON3 python3 REQUIRED)
  find_program(NODE node)
  add_test(NAME lint.layers COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/scripts/check_layers.py)
  add_test(NAME lint.style COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/scripts/lint.py)
  add_test(NAME lint.format COMMAND ${CMAKE_SOURCE_DIR}/scripts/format.sh --check)
  get_property(header_targets GLOBAL PROPERTY PRONY_HEADER_TARGETS)
  add_custom_target(prony_headers DEPENDS ${header_targets})
  add_test(NAME lint.headers_alone
           COMMAND ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target prony_headers)
  set_tests_properties(lint.layers lint.style lint.format lint.headers_alone
                       PROPERTIES LABELS lint TIMEOUT 300)
  file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/e2e/*.test.mjs)
  foreach(script ${scripts})
    get_filename_component(name ${script} NAME_WE)
    if(NODE AND TARGET prony)
      add_test(NAME e2e.${name} COMMAND ${NODE} ${script} $<TARGET_FILE:prony>)
      # Timed against a clock: alone on the machine.
      set_tests_properties(e2e.${name} PROPERTIES LABELS e2e TIMEOUT 300 RUN_SERIAL ON
                           SKIP_RETURN_CODE 77)
      if(name MATCHES "_slow$")
        set_property(TEST e2e.${name} APPEND PROPERTY LABELS slow)
      elseif(name MATCHES "^(certify|bench_find)$")  # judges times: not under sanitizers
        set_property(TEST e2e.${name} APPEND PROPERTY LABELS timing)
      endif()
    endif()
  endforeach()
endfunction()
