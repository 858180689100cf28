# Flags of every target of ours. Warnings are errors. -ffp-contract=off keeps results equal on every
# machine; kernels that want FMA ask for it by intrinsics.
add_library(prony_flags INTERFACE)
target_compile_options(prony_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual -Wno-missing-field-initializers -Werror -ffp-contract=off -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports false positives of these in libstdc++ at -O2.
  target_compile_options(prony_flags INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
endif()
target_include_directories(prony_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)

if(PRONY_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
elseif(PRONY_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread)
  add_link_options(-fsanitize=thread)
  # Asio's fences are unknown to ThreadSanitizer.
  add_compile_definitions(BOOST_ASIO_DISABLE_FENCED_BLOCK)
elseif(NOT PRONY_SANITIZE STREQUAL "")
  message(FATAL_ERROR "PRONY_SANITIZE is '${PRONY_SANITIZE}', expected address, thread or nothing")
endif()

if(PRONY_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "PRONY_FUZZ: found ${CMAKE_CXX_COMPILER_ID}, expected clang (libFuzzer)")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
