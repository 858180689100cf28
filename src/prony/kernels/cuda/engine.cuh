// Engine: one model on one device: its memory, the forward pass of a step as a list of launches, and
// a CUDA graph for each size of decode step. Nothing is allocated after creation but graphs; a step
// is one copy to the device, the launches (or one graph), and one copy back.
// Thread safety: upload() from any thread; everything else one thread.
#pragma once
#include <cuda_runtime.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "prony/kernels/cuda/abi.hpp"
#include "prony/kernels/cuda/gemm.cuh"
#include "prony/kernels/cuda/layout.hpp"

namespace prony::kernels::cuda {

struct Engine {
 public:
  Engine(const ModelShape& shape, const EngineLimits& limits);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  // Each: empty, or what failed, in one line.
  std::string open();
  std::string upload(Tensor tensor, int32_t layer, int64_t first, int64_t count, const void* data);
  std::string submit(const StepBatch& batch);
  std::string poll(bool& done, StepOutput& out);
  std::string logits(int32_t sample, float* out);

 private:
  /// Where the parts of a step's numbers lie in the batch buffer, in words; a function of the sizes
  /// alone, so a graph finds them where it was captured.
  struct Places {
    int64_t token_ids, positions, slots, row_start, row_tokens, kv_tokens, table_start, samples,
        tiles, tables;
  };
  struct Sizes {
    int32_t tokens = 0, rows = 0, decode_rows = 0, samples = 0, tiles = 0;
  };
  static Places places_of(const Sizes& sizes);
  Sizes pack(const StepBatch& batch, bool graph);
  std::string forward(const Sizes& sizes);
  std::string layer(int32_t index, const Sizes& sizes);
  std::string product(const void* x, int64_t weight, int32_t m, int32_t n, int32_t k, Store store,
                      void* y);
  std::string capture(const Sizes& sizes, cudaGraphExec_t& out);
  template <class T>
  T* weight(int64_t at) const {
    return reinterpret_cast<T*>(weights_ + at);
  }
  template <class T>
  T* buffer(int64_t at) const {
    return reinterpret_cast<T*>(buffers_ + at);
  }
  const int32_t* batch_words(int64_t at) const { return buffer<int32_t>(at_.batch) + at; }

  ModelShape shape_;
  EngineLimits limits_;
  WeightOffsets weights_at_;
  BufferOffsets at_;
  char *weights_ = nullptr, *pages_ = nullptr, *buffers_ = nullptr;
  int64_t layer_page_bytes_ = 0;  // of all pages of one layer
  int32_t* staging_ = nullptr;    // pinned: the batch
  int32_t* results_ = nullptr;    // pinned: [3][rows]
  int64_t table_words_ = 0;       // of the batch being sent
  int32_t result_rows_ = 0;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t done_ = nullptr;
  Gemm gemm_;
  std::map<int32_t, cudaGraphExec_t> graphs_;
};

}  // namespace prony::kernels::cuda
