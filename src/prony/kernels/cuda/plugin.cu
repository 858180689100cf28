// The C face of libprony_cuda.so (abi.hpp): errors become lines of text, nothing is thrown through.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include "prony/kernels/cuda/ceilings.cuh"
#include "prony/kernels/cuda/engine.cuh"

namespace prony::kernels::cuda {
namespace {

int told(const std::string& failure, char* error, uint32_t size) {
  if (failure.empty()) return 0;
  std::snprintf(error, size, "%s", failure.c_str());
  return 1;
}

// What the standard library throws (no host memory) must not cross a C function.
template <class Body>
int guarded(char* error, uint32_t size, const Body& body) {
  try {
    return told(body(), error, size);
  } catch (const std::exception& failure) {
    return told(failure.what(), error, size);
  }
}

int device(DeviceInfo* out, char* error, uint32_t size) {
  int count = 0;
  if (const auto result = cudaGetDeviceCount(&count); result != cudaSuccess || count == 0) {
    return told(result != cudaSuccess ? cudaGetErrorString(result) : "no CUDA device", error, size);
  }
  cudaDeviceProp properties{};
  size_t free_bytes = 0, total_bytes = 0;
  auto result = cudaGetDeviceProperties(&properties, 0);
  if (result == cudaSuccess) result = cudaMemGetInfo(&free_bytes, &total_bytes);
  if (result != cudaSuccess) return told(cudaGetErrorString(result), error, size);
  std::snprintf(out->name, sizeof(out->name), "%.127s", properties.name);
  out->total_bytes = static_cast<int64_t>(total_bytes);
  out->free_bytes = static_cast<int64_t>(free_bytes);
  out->multiprocessors = properties.multiProcessorCount;
  out->compute_major = properties.major;
  out->compute_minor = properties.minor;
  return 0;
}

int create(const ModelShape* shape, const EngineLimits* limits, Engine** out, char* error,
           uint32_t size) {
  *out = nullptr;
  return guarded(error, size, [&] {
    auto engine = std::make_unique<Engine>(*shape, *limits);
    std::string failure = engine->open();
    if (failure.empty()) *out = engine.release();
    return failure;
  });
}

void destroy(Engine* engine) { delete engine; }

int upload(Engine* engine, Tensor tensor, int32_t layer, int64_t first, int64_t count,
           const void* data, char* error, uint32_t size) {
  return guarded(error, size,
                 [&] { return engine->upload(tensor, layer, first, count, data); });
}

int submit(Engine* engine, const StepBatch* batch, char* error, uint32_t size) {
  return guarded(error, size, [&] { return engine->submit(*batch); });
}

int poll(Engine* engine, StepOutput* out, char* error, uint32_t size) {
  bool done = false;
  const int failed = guarded(error, size, [&] { return engine->poll(done, *out); });
  return failed != 0 ? 1 : done ? 0 : 2;
}

int logits(Engine* engine, int32_t sample, float* out, char* error, uint32_t size) {
  return guarded(error, size, [&] { return engine->logits(sample, out); });
}

int measure(Ceilings* out, char* error, uint32_t size) {
  return guarded(error, size, [&] { return measure_ceilings(*out); });
}

constexpr Api kApi{kAbiVersion, device, create, destroy, upload, submit, poll, logits, measure};

}  // namespace
}  // namespace prony::kernels::cuda

extern "C" const prony::kernels::cuda::Api* prony_cuda_api() {
  return &prony::kernels::cuda::kApi;
}
