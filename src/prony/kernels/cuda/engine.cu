#include "prony/kernels/cuda/engine.cuh"

#include <algorithm>
#include <array>

#include "prony/kernels/cuda/ops.hpp"

namespace prony::kernels::cuda {
namespace {

std::string said(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return {};
  return std::string(what) + ": " + cudaGetErrorString(result);
}

std::string take(char*& out, int64_t bytes, const char* what) {
  const cudaError_t result = cudaMalloc(&out, static_cast<size_t>(bytes));
  if (result == cudaSuccess) return {};
  out = nullptr;
  cudaGetLastError();  // not to be found by the next question
  return "cannot take " + std::to_string(bytes) + " bytes of device memory for " + what + ": " +
         cudaGetErrorString(result);
}

}  // namespace

Engine::Engine(const ModelShape& shape, const EngineLimits& limits)
    : shape_(shape),
      limits_(limits),
      weights_at_(plan_weights(shape, limits.max_context)),
      at_(plan_buffers(shape, limits)) {}

Engine::~Engine() {
  if (stream_ != nullptr) cudaStreamSynchronize(stream_);
  for (auto& [rows, graph] : graphs_) cudaGraphExecDestroy(graph);
  if (done_ != nullptr) cudaEventDestroy(done_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
  cudaFreeHost(staging_);
  cudaFreeHost(results_);
  for (char* memory : {weights_, pages_, buffers_}) cudaFree(memory);
}

std::string Engine::open() {
  const int64_t kv = kv_bytes(shape_, limits_);
  layer_page_bytes_ = kv / shape_.layers;
  if (auto e = take(weights_, weights_at_.total_bytes, "weights"); !e.empty()) return e;
  if (auto e = take(buffers_, at_.total_bytes, "buffers"); !e.empty()) return e;
  if (auto e = take(pages_, kv, "the KV cache"); !e.empty()) return e;
  // Values that no token has written yet must be numbers: they are multiplied by 0.
  if (auto e = said(cudaMemset(pages_, 0, static_cast<size_t>(kv)), "cudaMemset"); !e.empty()) {
    return e;
  }
  const auto rows = static_cast<size_t>(decode_bucket(limits_.max_sequences));
  if (auto e = said(cudaMemset(buffers_ + at_.tickets, 0, rows * static_cast<size_t>(shape_.kv_heads) * 4),
                    "cudaMemset");
      !e.empty()) {
    return e;
  }
  if (auto e = said(cudaMallocHost(&staging_, static_cast<size_t>(at_.batch_words) * 4),
                    "cudaMallocHost");
      !e.empty()) {
    return e;
  }
  if (auto e = said(cudaMallocHost(&results_, rows * 3 * 4), "cudaMallocHost"); !e.empty()) return e;
  if (auto e = said(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
      !e.empty()) {
    return e;
  }
  if (auto e = said(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming), "cudaEventCreate");
      !e.empty()) {
    return e;
  }
  prepare_kernels();
  if (auto e = said(cudaGetLastError(), "kernels"); !e.empty()) return e;
  return gemm_.open(buffers_ + at_.gemm, kGemmScratchBytes);
}

std::string Engine::upload(Tensor tensor, int32_t layer, int64_t first, int64_t count,
                           const void* data) {
  const bool of_layer = tensor >= Tensor::kInputNorm;
  if (of_layer && (layer < 0 || layer >= shape_.layers)) return "no such layer";
  const LayerOffsets none;
  const LayerOffsets& l = of_layer ? weights_at_.layers[static_cast<size_t>(layer)] : none;
  int64_t at = 0, element = 4;
  switch (tensor) {
    case Tensor::kEmbedding: at = weights_at_.embedding, element = 2; break;
    case Tensor::kHead: at = weights_at_.head, element = 2; break;
    case Tensor::kFinalNorm: at = weights_at_.final_norm; break;
    case Tensor::kCosine: at = weights_at_.cosine; break;
    case Tensor::kSine: at = weights_at_.sine; break;
    case Tensor::kInputNorm: at = l.input_norm; break;
    case Tensor::kMlpNorm: at = l.mlp_norm; break;
    case Tensor::kQkv: at = l.qkv, element = 2; break;
    case Tensor::kQkvBias: at = l.qkv_bias; break;
    case Tensor::kQNorm: at = l.q_norm; break;
    case Tensor::kKNorm: at = l.k_norm; break;
    case Tensor::kO: at = l.o, element = 2; break;
    case Tensor::kGateUp: at = l.gate_up, element = 2; break;
    case Tensor::kDown: at = l.down, element = 2; break;
  }
  const int64_t begin = at + first * element, bytes = count * element;
  if (first < 0 || count < 0 || begin + bytes > weights_at_.total_bytes) return "outside a tensor";
  return said(cudaMemcpy(weights_ + begin, data, static_cast<size_t>(bytes), cudaMemcpyHostToDevice),
              "cudaMemcpy");
}

Engine::Places Engine::places_of(const Sizes& s) {
  int64_t used = 0;
  const auto take_words = [&](int64_t count) {
    const int64_t at = used;
    used += count;
    return at;
  };
  Places p{};
  p.token_ids = take_words(s.tokens);
  p.positions = take_words(s.tokens);
  p.slots = take_words(s.tokens);
  p.row_start = take_words(s.rows);
  p.row_tokens = take_words(s.rows);
  p.kv_tokens = take_words(s.rows);
  p.table_start = take_words(s.rows);
  p.samples = take_words(s.samples);
  p.tiles = take_words(2 * s.tiles);
  p.tables = used;
  return p;
}

// The step's numbers to pinned memory; a graph's are padded to its bucket with rows that read and
// write the page nobody has.
Engine::Sizes Engine::pack(const StepBatch& b, bool graph) {
  Sizes s{b.tokens, b.rows, b.decode_rows, b.samples, 0};
  if (graph) {
    const int32_t bucket = decode_bucket(b.rows);
    s = {bucket, bucket, bucket, bucket, 0};
  }
  for (int32_t r = b.decode_rows; r < b.rows; ++r) {
    s.tiles += (b.row_tokens[r] + kQueryTile - 1) / kQueryTile;
  }
  const Places p = places_of(s);
  const auto copy = [&](int64_t at, const int32_t* from, int32_t count, int32_t padded,
                        int32_t value) {
    std::copy(from, from + count, staging_ + at);
    std::fill(staging_ + at + count, staging_ + at + padded, value);
  };
  const int32_t pad_page = limits_.block_count;
  copy(p.token_ids, b.token_ids, b.tokens, s.tokens, 0);
  copy(p.positions, b.positions, b.tokens, s.tokens, 0);
  copy(p.slots, b.slots, b.tokens, s.tokens, pad_page * kPageTokens);
  copy(p.row_start, b.row_start, b.rows, s.rows, 0);
  copy(p.row_tokens, b.row_tokens, b.rows, s.rows, 1);
  copy(p.kv_tokens, b.kv_tokens, b.rows, s.rows, 1);
  copy(p.table_start, b.table_start, b.rows, s.rows, b.table_entries);
  if (graph) {  // every row, whether it samples or not
    for (int32_t i = 0; i < s.samples; ++i) staging_[p.samples + i] = i;
  } else {
    copy(p.samples, b.sample_tokens, b.samples, s.samples, 0);
  }
  // The tiles that see most first: the last blocks to run are then the short ones.
  std::vector<std::array<int32_t, 3>> tiles;
  for (int32_t r = b.decode_rows; r < b.rows; ++r) {
    for (int32_t first = 0; first < b.row_tokens[r]; first += kQueryTile) {
      tiles.push_back({b.kv_tokens[r] - b.row_tokens[r] + first, r, first});
    }
  }
  std::sort(tiles.begin(), tiles.end(),
            [](const auto& x, const auto& y) { return x[0] != y[0] ? x[0] > y[0] : x < y; });
  for (size_t i = 0; i < tiles.size(); ++i) {
    staging_[p.tiles + 2 * static_cast<int64_t>(i)] = tiles[i][1];
    staging_[p.tiles + 2 * static_cast<int64_t>(i) + 1] = tiles[i][2];
  }
  std::copy(b.tables, b.tables + b.table_entries, staging_ + p.tables);
  staging_[p.tables + b.table_entries] = pad_page;
  table_words_ = p.tables + b.table_entries + 1;
  return s;
}

std::string Engine::submit(const StepBatch& batch) {
  // Graphs serve the steps of pure decode.
  const bool graph = limits_.graphs != 0 && batch.rows == batch.decode_rows && batch.rows > 0;
  const Sizes sizes = pack(batch, graph);
  if (auto e = said(cudaMemcpyAsync(buffers_ + at_.batch, staging_,
                                    static_cast<size_t>(table_words_) * 4, cudaMemcpyHostToDevice,
                                    stream_),
                    "cudaMemcpyAsync");
      !e.empty()) {
    return e;
  }
  result_rows_ = sizes.samples;
  if (graph) {
    auto at = graphs_.find(sizes.rows);
    if (at == graphs_.end()) {
      // Once without a graph: modules are loaded and algorithms chosen outside of a capture.
      if (auto e = forward(sizes); !e.empty()) return e;
      if (auto e = said(cudaStreamSynchronize(stream_), "a decode step"); !e.empty()) return e;
      cudaGraphExec_t made = nullptr;
      if (auto e = capture(sizes, made); !e.empty()) return e;
      at = graphs_.emplace(sizes.rows, made).first;
    }
    if (auto e = said(cudaGraphLaunch(at->second, stream_), "cudaGraphLaunch"); !e.empty()) return e;
  } else if (auto e = forward(sizes); !e.empty()) {
    return e;
  }
  if (sizes.samples > 0) {
    if (auto e = said(cudaMemcpyAsync(results_, buffers_ + at_.results,
                                      static_cast<size_t>(sizes.samples) * 12,
                                      cudaMemcpyDeviceToHost, stream_),
                      "cudaMemcpyAsync");
        !e.empty()) {
      return e;
    }
  }
  return said(cudaEventRecord(done_, stream_), "cudaEventRecord");
}

std::string Engine::capture(const Sizes& sizes, cudaGraphExec_t& out) {
  if (auto e = said(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture");
      !e.empty()) {
    return e;
  }
  const std::string failed = forward(sizes);
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream_, &graph);
  if (!failed.empty()) return failed;
  if (auto e = said(ended, "capture"); !e.empty()) return e;
  const cudaError_t made = cudaGraphInstantiate(&out, graph, 0);
  cudaGraphDestroy(graph);
  return said(made, "cudaGraphInstantiate");
}

std::string Engine::poll(bool& done, StepOutput& out) {
  const cudaError_t state = cudaEventQuery(done_);
  done = state == cudaSuccess;
  if (state == cudaErrorNotReady) return {};
  if (state != cudaSuccess) return said(state, "the device failed");
  out.tokens = results_;
  out.logprobs = reinterpret_cast<const float*>(results_ + result_rows_);
  out.finite = results_ + 2 * result_rows_;
  return {};
}

std::string Engine::logits(int32_t sample, float* out) {
  const float* row = buffer<float>(at_.logits) + int64_t{sample} * shape_.vocab;
  if (auto e = said(cudaMemcpyAsync(out, row, static_cast<size_t>(limits_.sample_vocab) * 4,
                                    cudaMemcpyDeviceToHost, stream_),
                    "cudaMemcpyAsync");
      !e.empty()) {
    return e;
  }
  return said(cudaStreamSynchronize(stream_), "cudaMemcpyAsync");
}

std::string Engine::product(const void* x, int64_t weight_at, int32_t m, int32_t n, int32_t k,
                            Store store, void* y) {
  const void* w = weight<void>(weight_at);
  if (m > kFewRows) return gemm_.product(x, w, m, n, k, store, y, stream_);
  product_few(x, w, m, n, k, store, y, stream_);
  return {};
}

std::string Engine::layer(int32_t index, const Sizes& s) {
  const LayerOffsets& w = weights_at_.layers[static_cast<size_t>(index)];
  const Places p = places_of(s);
  const int32_t q = shape_.heads * shape_.head_dim;
  const int32_t qkv = q + 2 * shape_.kv_heads * shape_.head_dim;
  auto* hidden = buffer<float>(at_.hidden);
  void* normed = buffer<void>(at_.normed);
  char* pages = pages_ + index * layer_page_bytes_;
  const auto optional = [&](int32_t has, int64_t at) {
    return has != 0 ? weight<float>(at) : nullptr;
  };

  rms_norm(hidden, nullptr, weight<float>(w.input_norm), shape_.rms_epsilon, s.tokens,
           shape_.hidden, normed, stream_);
  if (auto e = product(normed, w.qkv, s.tokens, qkv, shape_.hidden, Store::kBf16,
                       buffer<void>(at_.qkv));
      !e.empty()) {
    return e;
  }
  rope_and_store({.qkv = buffer<void>(at_.qkv),
                  .bias = optional(shape_.qkv_bias, w.qkv_bias),
                  .q_norm = optional(shape_.qk_norm, w.q_norm),
                  .k_norm = optional(shape_.qk_norm, w.k_norm),
                  .cosine = weight<float>(weights_at_.cosine),
                  .sine = weight<float>(weights_at_.sine),
                  .positions = batch_words(p.positions),
                  .slots = batch_words(p.slots),
                  .pages = pages,
                  .count = s.tokens,
                  .heads = shape_.heads,
                  .kv_heads = shape_.kv_heads,
                  .head_dim = shape_.head_dim,
                  .epsilon = shape_.rms_epsilon},
                 stream_);
  const AttentionArguments attention{.qkv = buffer<void>(at_.qkv),
                                     .pages = pages,
                                     .tables = batch_words(p.tables),
                                     .table_start = batch_words(p.table_start),
                                     .kv_tokens = batch_words(p.kv_tokens),
                                     .out = buffer<void>(at_.attention),
                                     .heads = shape_.heads,
                                     .kv_heads = shape_.kv_heads,
                                     .head_dim = shape_.head_dim,
                                     .q_stride = qkv,
                                     .scale = shape_.attention_scale};
  if (s.decode_rows > 0) {
    // The bucket's, graph or not, so that both give the same bits.
    const int32_t splits = decode_splits(decode_bucket(s.decode_rows), shape_.kv_heads);
    attention_decode(attention, s.decode_rows, splits, buffer<float>(at_.partial),
                     buffer<int32_t>(at_.tickets), stream_);
  }
  if (s.tiles > 0) {
    attention_prefill(attention, batch_words(p.tiles), s.tiles, batch_words(p.row_start),
                      batch_words(p.row_tokens), stream_);
  }
  if (auto e = product(buffer<void>(at_.attention), w.o, s.tokens, shape_.hidden, q, Store::kAdd,
                       hidden);
      !e.empty()) {
    return e;
  }
  rms_norm(hidden, nullptr, weight<float>(w.mlp_norm), shape_.rms_epsilon, s.tokens, shape_.hidden,
           normed, stream_);
  const int32_t inner = shape_.intermediate;
  if (s.tokens <= kFewRows) {
    product_few(normed, weight<void>(w.gate_up), s.tokens, 2 * inner, shape_.hidden,
                Store::kSiluPair, buffer<void>(at_.inner), stream_);
  } else {
    if (auto e = product(normed, w.gate_up, s.tokens, 2 * inner, shape_.hidden, Store::kBf16,
                         buffer<void>(at_.gate_up));
        !e.empty()) {
      return e;
    }
    silu_multiply(buffer<void>(at_.gate_up), s.tokens, inner, buffer<void>(at_.inner), stream_);
  }
  return product(buffer<void>(at_.inner), w.down, s.tokens, shape_.hidden, inner, Store::kAdd,
                 hidden);
}

std::string Engine::forward(const Sizes& s) {
  const Places p = places_of(s);
  auto* hidden = buffer<float>(at_.hidden);
  embed(batch_words(p.token_ids), weight<void>(weights_at_.embedding), s.tokens, shape_.hidden,
        hidden, stream_);
  for (int32_t i = 0; i < shape_.layers; ++i) {
    if (auto e = layer(i, s); !e.empty()) return e;
  }
  if (s.samples > 0) {
    rms_norm(hidden, batch_words(p.samples), weight<float>(weights_at_.final_norm),
             shape_.rms_epsilon, s.samples, shape_.hidden, buffer<void>(at_.last), stream_);
    auto* logits = buffer<float>(at_.logits);
    if (auto e = product(buffer<void>(at_.last), weights_at_.head, s.samples, shape_.vocab,
                         shape_.hidden, Store::kFloat, logits);
        !e.empty()) {
      return e;
    }
    auto* results = buffer<int32_t>(at_.results);
    choose_greedy(logits, s.samples, limits_.sample_vocab, shape_.vocab, results,
                  reinterpret_cast<float*>(results + s.samples), results + 2 * s.samples, stream_);
  }
  return said(cudaGetLastError(), "a kernel could not be launched");
}

}  // namespace prony::kernels::cuda
