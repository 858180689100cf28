#include "prony/certify/cases.hpp"

namespace prony::certify {
namespace {

using record::Status;
using Source = record::TokenSource;

constexpr Expect kOk{};
// Usage of the last chunk alone, or none: what is left to count by.
constexpr Expect kCounted{.source = Source::kEventCount};
constexpr Expect fails(Status status, int http = 200) {
  return {.status = status, .http = http};
}
// TCP itself holds small segments back (congestion window, auto-corking).
constexpr Expect kPieces{.late_ms = 10};

constexpr FaultCase kCases[] = {
    // Latency definitions.
    {"role-first", "vllm#3759", kOk},
    {"role-null", "llama.cpp: content null", kOk},
    {"role-always", "", kOk},
    {"multi-token", "vllm#27485, llama-benchy#11", kOk},
    {"varied-chunks", "vllm#46652, sglang#12064", kOk},
    {"held-tokens", "inference-perf#364", kOk},
    {"giant-chunk", "sglang#36272", {.bursty = true}},
    {"coalesced", "inference-perf#410", kOk},
    {"reasoning", "guidellm#737", {.thinking = true}},
    {"reasoning-content", "inference-perf#559", {.thinking = true}},
    {"tool-call", "sglang#36272", {.bursty = true}},
    {"empty-events", "inference-perf#392", kOk},
    {"empty-first", "inference-perf#392", kOk},
    {"progress", "llama.cpp: return_progress", kOk},
    {"late-head", "", kOk},
    {"early-hints", "", kOk},
    // Failures counted as success, and the reverse.
    {"error-first", "vllm#57519", fails(Status::kStreamError)},
    {"error-mid", "vllm#57519, guidellm#743", fails(Status::kStreamError)},
    {"error-mid-no-done", "llama.cpp: error, then close", fails(Status::kStreamError)},
    {"error-field", "llama.cpp: field error:", fails(Status::kStreamError)},
    {"abort-finish", "vllm-omni#7058", fails(Status::kStreamError)},
    {"finish-error", "vllm-omni#7058", fails(Status::kStreamError)},
    {"eof-mid", "vllm#54628", fails(Status::kTruncated)},
    {"close-mid", "vllm#54628", fails(Status::kTruncated)},
    {"close-in-event", "vllm#54628", fails(Status::kTruncated)},
    {"reset-mid", "vllm#54628", fails(Status::kTruncated)},
    {"bad-chunk", "", fails(Status::kParse)},
    {"zero-tokens", "vllm#5895", fails(Status::kEmpty)},
    {"done-only", "vllm#5895", fails(Status::kEmpty)},
    {"empty-body", "vllm#5895", fails(Status::kEmpty)},
    {"stall", "vllm-omni#7130", fails(Status::kTimeoutStall)},
    {"ping-hang", "vllm-omni#7130", fails(Status::kTimeoutStall)},
    {"no-first-token", "vllm-omni#7130", fails(Status::kTimeoutTtft)},
    {"hang", "vllm-omni#7130", fails(Status::kTimeoutTtft, 0)},
    {"503", "vllm#26478", fails(Status::kHttp5xx, 503)},
    {"503-fifth", "guidellm#444", {Status::kHttp5xx, 1, 503}},
    {"loading", "dynamo#3728", {Status::kHttp5xx, 3, 503}},
    {"429", "vllm#11167", fails(Status::kHttp4xx, 429)},
    {"400", "gpustack#1677", fails(Status::kHttp4xx, 400)},
    {"400-flat", "gpustack#1677", fails(Status::kHttp4xx, 400)},
    {"404", "gpustack#1677", fails(Status::kHttp4xx, 404)},
    {"500", "vllm-omni#7058", fails(Status::kHttp5xx, 500)},
    {"html-502", "gpustack#1677", fails(Status::kHttp5xx, 502)},
    {"json-200", "gpustack#1677", fails(Status::kNotStream)},
    {"html-200", "gpustack#1677", fails(Status::kNotStream)},
    {"redirect", "", fails(Status::kNotStream, 307)},
    {"not-http", "", fails(Status::kParse, 0)},
    {"short-body", "", fails(Status::kNotStream)},
    // Opened ahead, a connection may have died of lying idle, so each goes once more.
    {"close-first",
     "vllm-omni#1374",
     {.status = Status::kTruncated, .http = 0, .retries = kFaultRequests}},
    // Connections that die between requests.
    {"close-after", "llm-d#1564", kOk},
    {"close-announced", "", kOk},
    {"close-on-reuse",
     "vllm-omni#1374, NeMo-Gym#1555",
     {.one_at_a_time = true, .retries = kFaultRequests - 1}},
    {"idle-close", "vllm-omni#1374", {.one_at_a_time = true, .gap_ms = 300, .retries = -1}},
    // Token counts.
    {"short-answer", "sglang#24254, sglang#10746", kCounted},
    {"usage-absent", "sglang#24254", kCounted},
    {"usage-unasked", "llama.cpp#16048", kOk},
    {"usage-every-chunk", "ik_llama#2189", kOk},
    {"usage-null", "gateways: usage null", kOk},
    {"usage-with-finish", "gateways: usage with the last choice", kOk},
    {"text-with-finish", "", kOk},
    {"no-finish", "", kOk},
    {"no-done", "llama.cpp: no [DONE]", kOk},
    {"no-done-hang", "llama.cpp: no [DONE]", kOk},
    {"done-twice", "", kOk},
    // Framing and text.
    {"pings", "triton_distributed#264", kOk},
    {"multi-byte", "vllm#38717", kOk},
    {"split-utf8", "vllm#38717, vllm#50868", kPieces},
    {"separators", "", kOk},
    {"hostile-text", "", kOk},
    // One MiB at a time: six at once would be measured waiting for each other.
    {"huge-event", "inference-perf#283, vllm#39963", {.gap_ms = 40}},
    {"garbage-event", "", fails(Status::kParse)},
    {"no-choices", "gateways: choices null", kOk},
    {"crlf", "sse-starlette", kOk},
    {"cr", "", kOk},
    {"no-space", "tgi: data without a space", kOk},
    {"multi-line", "", kOk},
    {"bom", "", kOk},
    {"fields", "dynamo: event lines", kOk},
    {"no-final-blank", "", kOk},
    {"pieces-1", "", kPieces},
    {"pieces-3", "", kPieces},
    {"chunk-extensions", "", kOk},
    {"chunk-trailers", "", kOk},
    {"raw-pieces", "", kPieces},
    {"until-close", "", kOk},
    {"http-1.0", "", kOk},
};

}  // namespace

std::span<const FaultCase> fault_cases() {
  return kCases;
}

}  // namespace prony::certify
