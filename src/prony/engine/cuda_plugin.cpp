#include "prony/engine/cuda_plugin.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "prony/core/system.hpp"

namespace prony::engine {
namespace {

using kernels::cuda::Api;
using kernels::cuda::kPluginName;

struct Opened {
  void* library = nullptr;
  std::string path;
};

Result<Opened> open_library() {
  constexpr int kHow = RTLD_NOW | RTLD_LOCAL;
  const auto reason = [] {
    const char* text = ::dlerror();
    return std::string(text != nullptr ? text : "unknown reason");
  };
  if (const auto path = core::environment_variable("PRONY_CUDA_PLUGIN"); path && !path->empty()) {
    if (void* library = ::dlopen(path->c_str(), kHow)) return Opened{library, *path};
    return environment_error(fmt::format("PRONY_CUDA_PLUGIN: {}", reason()));
  }
  std::string first;
  for (const char* folder : {"", "/../lib"}) {
    const auto path = fmt::format("{}{}/{}", core::program_folder(), folder, kPluginName);
    if (void* library = ::dlopen(path.c_str(), kHow)) return Opened{library, path};
    if (const auto why = reason(); first.empty()) first = why;
  }
  return environment_error(fmt::format(
      "--device cuda needs {}, which cannot be opened: {}; build it with nvcc installed (./run "
      "cuda)",
      kPluginName, first));
}

}  // namespace

Result<const Api*> check_cuda_api(const Api* api, const std::string& path) {
  if (api != nullptr && api->version == kernels::cuda::kAbiVersion) return api;
  return environment_error(fmt::format("{}: found interface version {}, expected {}", path,
                                       api != nullptr ? api->version : 0,
                                       kernels::cuda::kAbiVersion));
}

Result<const Api*> open_cuda_plugin() {
  const Result<Opened> opened = open_library();
  if (!opened.ok()) return opened.error();
  const auto function =
      reinterpret_cast<kernels::cuda::ApiFunction*>(::dlsym(opened->library, "prony_cuda_api"));
  return check_cuda_api(function != nullptr ? function() : nullptr, opened->path);
}

}  // namespace prony::engine
