// What libprony_cuda.so offers, as plain C: the program is linked to no CUDA and opens the library
// when a GPU is asked for (engine/cuda_plugin.hpp). One symbol, prony_cuda_api, returns the table
// below; its version is checked before anything else of it is read. The library owns the device: it
// holds the weights, the KV pages and the buffers of one model and runs one step at a time.
// Functions return 0, or 1 with one line of text in `error`.
// Thread safety: upload() from any thread at once; everything else from one thread at a time.
#pragma once
#include <cstdint>

namespace prony::kernels::cuda {

inline constexpr uint32_t kAbiVersion = 1;
inline constexpr const char* kPluginName = "libprony_cuda.so";

/// Tokens of a KV page; the scheduler's block.
inline constexpr int32_t kPageTokens = 16;

/// A dense decoder of the Llama family.
struct ModelShape {
  int32_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, intermediate = 0;
  int32_t vocab = 0;
  int32_t tied_embeddings = 0, qkv_bias = 0, qk_norm = 0;  // 0 or 1
  float rms_epsilon = 0, attention_scale = 0;
};

struct EngineLimits {
  int32_t max_tokens = 0;  // of a step
  int32_t max_sequences = 0;
  int32_t max_context = 0;   // positions
  int32_t block_count = 0;   // KV pages
  int32_t sample_vocab = 0;  // ids that may be sampled: those below
  int32_t graphs = 1;        // decode steps replay a CUDA graph of their bucket
};

/// The tensors of a model. Matrices are bf16, row-major [outputs][inputs]; the others float.
enum class Tensor : int32_t {
  kEmbedding,  // [vocab][hidden]
  kHead,       // [vocab][hidden]; none if tied
  kFinalNorm,  // [hidden]
  kCosine,     // [max_context][head_dim / 2]
  kSine,       // [max_context][head_dim / 2]
  kInputNorm,  // [hidden]; here and below: of a layer
  kMlpNorm,    // [hidden]
  kQkv,        // [(heads + 2 kv_heads) head_dim][hidden]: queries, keys, values
  kQkvBias,    // [(heads + 2 kv_heads) head_dim]
  kQNorm,      // [head_dim]
  kKNorm,      // [head_dim]
  kO,          // [hidden][heads head_dim]
  kGateUp,     // [2 intermediate][hidden]: gate, then up
  kDown,       // [hidden][intermediate]
};

struct DeviceInfo {
  char name[128] = {};
  int64_t total_bytes = 0, free_bytes = 0;
  int32_t multiprocessors = 0, compute_major = 0, compute_minor = 0;
};

/// One step: rows of consecutive tokens, those of one token (decode) first. Host pointers; copied
/// before submit() returns.
struct StepBatch {
  int32_t tokens = 0, rows = 0, decode_rows = 0, samples = 0;
  int32_t table_entries = 0;
  const int32_t* token_ids = nullptr;      // [tokens]
  const int32_t* positions = nullptr;      // [tokens]
  const int32_t* slots = nullptr;          // [tokens]: page * 16 + place in the page
  const int32_t* row_start = nullptr;      // [rows]: first token of the row
  const int32_t* row_tokens = nullptr;     // [rows]
  const int32_t* kv_tokens = nullptr;      // [rows]: cached tokens after this step
  const int32_t* table_start = nullptr;    // [rows]: of its pages in tables
  const int32_t* tables = nullptr;         // [table_entries]
  const int32_t* sample_tokens = nullptr;  // [samples]: tokens of the step whose logits are wanted
};

/// Host memory of the library, valid until the next submit().
struct StepOutput {
  const int32_t* tokens = nullptr;  // [samples]: the largest logit's, the lowest id among equals
  const float* logprobs = nullptr;  // [samples]: of that token
  const int32_t* finite = nullptr;  // [samples]: 0 if a logit of the row is not finite
};

/// What this device reaches with the plainest code for each: what speeds are held against.
struct Ceilings {
  double read_gb_s = 0;     // a sum over 8 GiB
  double copy_gb_s = 0;     // device to device, bytes read and written
  double gemm_tflop_s = 0;  // bf16 8192 x 8192 x 8192 by the matrix library, random numbers
};

struct Engine;

struct Api {
  uint32_t version = 0;
  int (*device)(DeviceInfo* out, char* error, uint32_t error_size) = nullptr;
  int (*create)(const ModelShape* shape, const EngineLimits* limits, Engine** out, char* error,
                uint32_t error_size) = nullptr;
  void (*destroy)(Engine* engine) = nullptr;
  /// Elements [first, first + count) of a tensor, as the device stores them.
  int (*upload)(Engine* engine, Tensor tensor, int32_t layer, int64_t first, int64_t count,
                const void* data, char* error, uint32_t error_size) = nullptr;
  /// Enqueues a step and returns. The step before must have been polled to its end.
  int (*submit)(Engine* engine, const StepBatch* batch, char* error, uint32_t error_size) = nullptr;
  /// 0 when the step is done (then *out is set), 1 for an error, 2 if it still runs.
  int (*poll)(Engine* engine, StepOutput* out, char* error, uint32_t error_size) = nullptr;
  /// Logits [sample_vocab] of a sample of the step that was polled last.
  int (*logits)(Engine* engine, int32_t sample, float* out, char* error,
                uint32_t error_size) = nullptr;
  /// Takes about a second and 17 GB of device memory while it runs.
  int (*measure)(Ceilings* out, char* error, uint32_t error_size) = nullptr;
};

extern "C" using ApiFunction = const Api * ();

}  // namespace prony::kernels::cuda
