// Opens libprony_cuda.so: the file that PRONY_CUDA_PLUGIN names, else beside the program or in
// ../lib. The program itself is linked to no CUDA. The library stays open until the process ends.
// Thread safety: any thread.
#pragma once
#include "prony/core/result.hpp"
#include "prony/kernels/cuda/abi.hpp"

namespace prony::engine {

/// Error: kEnvironment, one line: it cannot be opened (no plugin, no CUDA runtime), or is of
/// another version than this program.
Result<const kernels::cuda::Api*> open_cuda_plugin();

/// What a table of functions must be before it is used; the version is all that is read of another.
/// `path` is for the message.
Result<const kernels::cuda::Api*> check_cuda_api(const kernels::cuda::Api* api,
                                                 const std::string& path);

}  // namespace prony::engine
