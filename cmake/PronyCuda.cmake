# The GPU part: libprony_cuda.so beside the program, the only target linked to CUDA, from
# src/prony/kernels/cuda/*.cu. PRONY_CUDA=AUTO: where nvcc is found; ON: else an error; OFF: never.
# Not a dependency of `prony`: `./run cuda` builds it (half a minute of nvcc), and so does target `all`.
# Included at file scope: a language cannot be enabled in a function.
#   prony_cuda        the library            prony_gpu_check   tests that need a GPU (./run gpu-test)
#   prony_gpu_bench   speeds beside ceilings (./run gpu-bench)
set(PRONY_CUDA "AUTO" CACHE STRING "plugin for --device cuda: AUTO, ON or OFF")
if(NOT PRONY_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "PRONY_CUDA is '${PRONY_CUDA}', expected AUTO, ON or OFF")
endif()
find_program(PRONY_NVCC nvcc HINTS /usr/local/cuda/bin)
# A device library under a sanitizer of the host has nothing to say.
if(PRONY_CUDA STREQUAL "OFF" OR ((PRONY_SANITIZE OR PRONY_FUZZ) AND NOT PRONY_CUDA STREQUAL "ON"))
  return()
endif()
if(NOT PRONY_NVCC)
  if(PRONY_CUDA STREQUAL "ON")
    message(FATAL_ERROR "PRONY_CUDA=ON: found no nvcc")
  endif()
  return()
endif()

set(CMAKE_CUDA_COMPILER ${PRONY_NVCC})
set(CMAKE_CUDA_ARCHITECTURES 90a-real)
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

file(GLOB cuda_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/prony/kernels/cuda/*.cu)
add_library(prony_cuda_objects OBJECT EXCLUDE_FROM_ALL ${cuda_sources})
set_target_properties(prony_cuda_objects PROPERTIES POSITION_INDEPENDENT_CODE ON
                      CUDA_STANDARD_REQUIRED OFF)
target_include_directories(prony_cuda_objects PUBLIC ${CMAKE_SOURCE_DIR}/src)
# CMake 3.25 drops CMAKE_CUDA_STANDARD 20 silently. A kernel that spills does not compile.
target_compile_options(prony_cuda_objects PRIVATE -std=c++20 -Xptxas=-warn-spills
                       -Xptxas=-Werror -Xcompiler=-Wall,-Wextra,-Werror)
add_library(prony_cuda MODULE $<TARGET_OBJECTS:prony_cuda_objects>)
set_target_properties(prony_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
                      CUDA_RUNTIME_LIBRARY Static LINKER_LANGUAGE CXX)
target_link_libraries(prony_cuda PRIVATE CUDA::cudart_static CUDA::cublasLt)
# Only the one symbol of the interface is seen from outside.
target_link_options(prony_cuda PRIVATE -Wl,--exclude-libs,ALL)

# What needs a GPU to run; compiled without one. After the modules: called by CMakeLists.txt.
function(prony_gpu_programs)
  set(folder ${CMAKE_SOURCE_DIR}/tests/gpu)
  if(PRONY_TESTS)
    add_executable(prony_gpu_kernels_check EXCLUDE_FROM_ALL ${folder}/kernels_check.cpp
                   $<TARGET_OBJECTS:prony_cuda_objects>)
    target_link_libraries(prony_gpu_kernels_check PRIVATE prony_core prony_flags GTest::gtest_main
                          CUDA::cudart_static CUDA::cublasLt)
    add_executable(prony_gpu_executor_check EXCLUDE_FROM_ALL ${folder}/executor_check.cpp)
    target_link_libraries(prony_gpu_executor_check PRIVATE prony_engine prony_flags fmt::fmt
                          GTest::gtest_main)
    set_target_properties(prony_gpu_kernels_check prony_gpu_executor_check PROPERTIES
                          CUDA_ARCHITECTURES OFF)
    add_dependencies(prony_gpu_executor_check prony_cuda)
  endif()
  add_executable(prony_gpu_bench EXCLUDE_FROM_ALL ${folder}/gpu_bench.cpp)
  target_link_libraries(prony_gpu_bench PRIVATE prony_engine prony_flags fmt::fmt)
  add_dependencies(prony_gpu_bench prony_cuda)
endfunction()
