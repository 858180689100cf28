#include "prony/mock/fault_tables.hpp"

namespace prony::mock {
namespace {

using Facts = RequestFacts;

void crlf(Plan& plan, const Facts&) {
  plan.wire.line_end = "\r\n";
}
void cr(Plan& plan, const Facts&) {
  plan.wire.line_end = "\r";
}
void no_space(Plan& plan, const Facts&) {
  plan.wire.space_after_colon = false;
}
void multi_line(Plan& plan, const Facts&) {
  plan.wire.two_data_lines = true;
}
void bom(Plan& plan, const Facts&) {
  plan.wire.byte_order_mark = true;
}
void fields(Plan& plan, const Facts&) {
  plan.wire.id_event_retry = true;
}
void no_final_blank(Plan& plan, const Facts&) {
  plan.wire.final_blank = false;
}
void pieces_1(Plan& plan, const Facts&) {
  plan.wire.piece_bytes = 1;
}
void pieces_3(Plan& plan, const Facts&) {
  plan.wire.piece_bytes = 3;
}
void split_utf8(Plan& plan, const Facts&) {
  plan.text = Text::kMultiByte;
  plan.wire.cut_characters = true;
}
void chunk_extensions(Plan& plan, const Facts&) {
  plan.wire.framing = Framing::kExtensions;
}
void chunk_trailers(Plan& plan, const Facts&) {
  plan.wire.framing = Framing::kTrailers;
}
void early_hints(Plan& plan, const Facts&) {
  plan.wire.framing = Framing::kEarlyHints;
}
void raw_pieces(Plan& plan, const Facts&) {
  plan.wire.framing = Framing::kRawPieces;
}
void until_close(Plan& plan, const Facts&) {
  plan.wire.framing = Framing::kUntilClose;
}
void http_1_0(Plan& plan, const Facts&) {
  plan.wire.framing = Framing::kHttp10;
}

// Framing and text: vllm#38717, #50868; triton_distributed#264; inference-perf#283;
// the rest from the rules of SSE and HTTP.
constexpr Fault kFaults[] = {
    {"crlf", kLineEnd, "lines end with CRLF", crlf},
    {"cr", kLineEnd, "lines end with CR", cr},
    {"no-space", kField, "no space after data:", no_space},
    {"multi-line", kField, "an event's JSON broken over two data: lines", multi_line},
    {"bom", kStart, "a byte order mark before the first event", bom},
    {"fields", kIds, "event:, id: and retry: lines", fields},
    {"no-final-blank", kDone, "no empty line after the end marker", no_final_blank},
    {"pieces-1", kPieces, "writes of one byte", pieces_1},
    {"pieces-3", kPieces, "writes of three bytes", pieces_3},
    {"split-utf8", kPieces | kText, "writes cut inside multi-byte characters", split_utf8},
    {"chunk-extensions", kFraming, "HTTP chunks with extensions", chunk_extensions},
    {"chunk-trailers", kFraming, "HTTP trailers after the last chunk", chunk_trailers},
    {"early-hints", kFraming, "an HTTP 103 head before the head of the response", early_hints},
    {"raw-pieces", kFraming, "chunk headers and all in writes of three bytes", raw_pieces},
    {"until-close", kFraming, "no length: the body ends with the connection", until_close},
    {"http-1.0", kFraming, "an HTTP/1.0 response, until close", http_1_0},
};

}  // namespace

std::span<const Fault> wire_faults() {
  return kFaults;
}

}  // namespace prony::mock
