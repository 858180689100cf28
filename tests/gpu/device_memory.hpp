// Arrays on the device for the kernel checks: filled from the host, poisoned, read back.
// Every call is checked; a failure ends the program, since nothing after it means anything.
// Thread safety: one thread.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace prony::gpu {

inline void must(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
  std::exit(3);
}

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t count) : count_(count) {
    void* memory = nullptr;
    must(cudaMalloc(&memory, count * sizeof(T)), "cudaMalloc");
    data_ = static_cast<T*>(memory);
    poison();
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    must(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), "to device");
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  /// All bits set: a NaN in every float format.
  void poison() { must(cudaMemset(data_, 0xFF, count_ * sizeof(T)), "cudaMemset"); }
  void zero() { must(cudaMemset(data_, 0, count_ * sizeof(T)), "cudaMemset"); }
  /// Waits for the device first.
  std::vector<T> read() const {
    must(cudaGetLastError(), "launch");
    must(cudaDeviceSynchronize(), "kernel");
    std::vector<T> values(count_);
    must(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), "to host");
    return values;
  }
  T* get() const { return data_; }

 private:
  T* data_ = nullptr;
  size_t count_;
};

}  // namespace prony::gpu
