#include "prony/mock/fault_tables.hpp"

#include <algorithm>

namespace prony::mock {
namespace {

using Facts = RequestFacts;

void role_first(Plan& plan, const Facts&) {
  plan.role = Role::kAtOnce;
}
void role_null(Plan& plan, const Facts&) {
  plan.role = Role::kNullContent;
}
void role_always(Plan& plan, const Facts&) {
  plan.role = Role::kInEveryChunk;
}
void multi_token(Plan& plan, const Facts&) {
  plan.chunk_tokens = {4};
}
void varied_chunks(Plan& plan, const Facts&) {
  plan.chunk_tokens = {1, 2, 1, 5, 3};
}
void held_tokens(Plan& plan, const Facts&) {
  plan.held_every = 3;
}
void giant_chunk(Plan& plan, const Facts&) {
  plan.rest_at_once = true;
}
void coalesced(Plan& plan, const Facts&) {
  plan.group_chunks = 4;
  plan.wire.merge_instant = true;
}
void reasoning(Plan& plan, const Facts&) {
  plan.channel = Channel::kReasoning;
}
void reasoning_content(Plan& plan, const Facts&) {
  plan.channel = Channel::kReasoningContent;
}
void tool_call(Plan& plan, const Facts&) {
  plan.channel = Channel::kToolCall;
  plan.finish_reason = "tool_calls";
}
void multi_byte(Plan& plan, const Facts&) {
  plan.text = Text::kMultiByte;
}
void separators(Plan& plan, const Facts&) {
  plan.text = Text::kSeparators;
}
void hostile_text(Plan& plan, const Facts&) {
  plan.text = Text::kMarkup;
}
void zero_tokens(Plan& plan, const Facts&) {
  plan.tokens = 0;
  plan.finish_reason = "stop";
}
void short_answer(Plan& plan, const Facts&) {
  plan.tokens = std::max<int64_t>(1, plan.tokens / 2);
  plan.finish_reason = "stop";
  plan.usage = Usage::kNever;
}

// ---- usage and the end of an answer

void usage_absent(Plan& plan, const Facts&) {
  plan.usage = Usage::kNever;
}
void usage_unasked(Plan& plan, const Facts&) {
  plan.usage = Usage::kAlways;
}
void usage_every_chunk(Plan& plan, const Facts&) {
  plan.usage = Usage::kEveryChunk;
}
void usage_null(Plan& plan, const Facts&) {
  plan.usage = Usage::kNullInChunks;
}
void usage_with_finish(Plan& plan, const Facts&) {
  plan.usage = Usage::kWithFinish;
}
void text_with_finish(Plan& plan, const Facts&) {
  plan.finish_with_text = true;
}
void finish_error(Plan& plan, const Facts&) {
  plan.tokens = std::max<int64_t>(1, plan.tokens / 2);
  plan.finish_reason = "error";
}
void done_twice(Plan& plan, const Facts&) {
  plan.done_twice = true;
}
void no_finish(Plan& plan, const Facts&) {
  plan.finish_event = false;
}
void abort_finish(Plan& plan, const Facts&) {
  plan.tokens = std::max<int64_t>(1, plan.tokens / 2);
  plan.finish_reason = "abort";
}
void no_done(Plan& plan, const Facts&) {
  plan.done_marker = false;
}
void no_done_hang(Plan& plan, const Facts&) {
  plan.done_marker = false;
  plan.hold_open_after_end = true;
}
void done_only(Plan& plan, const Facts&) {
  plan.tokens = 0;
  plan.role = Role::kNone;
  plan.finish_event = false;
  plan.usage = Usage::kNever;
}

// ---- breaks

void cut(Plan& plan, Cut how, bool at_start = false) {
  plan.cut = how;
  plan.cut_at_tokens = at_start ? 0 : std::max<int64_t>(1, plan.tokens / 2);
}
void error_first(Plan& plan, const Facts&) {
  cut(plan, Cut::kError, true);
}
void error_mid(Plan& plan, const Facts&) {
  cut(plan, Cut::kError);
}
void error_mid_no_done(Plan& plan, const Facts&) {
  cut(plan, Cut::kErrorNoDone);
}
void error_field(Plan& plan, const Facts&) {
  cut(plan, Cut::kErrorField);
}
void eof_mid(Plan& plan, const Facts&) {
  cut(plan, Cut::kEof);
}
void close_mid(Plan& plan, const Facts&) {
  cut(plan, Cut::kClose);
}
void close_in_event(Plan& plan, const Facts&) {
  cut(plan, Cut::kCloseInEvent);
}
void reset_mid(Plan& plan, const Facts&) {
  cut(plan, Cut::kReset);
}
void stall(Plan& plan, const Facts&) {
  cut(plan, Cut::kStall);
}
void ping_hang(Plan& plan, const Facts&) {
  cut(plan, Cut::kPings);
}
void bad_chunk(Plan& plan, const Facts&) {
  cut(plan, Cut::kBadChunk);
}
void no_first_token(Plan& plan, const Facts&) {
  cut(plan, Cut::kStall, true);
  plan.role = Role::kAtOnce;
}

// ---- events that are no tokens

void late_head(Plan& plan, const Facts&) {
  plan.head_at_first_token = true;
}
void pings(Plan& plan, const Facts&) {
  plan.pings = true;
}
void progress(Plan& plan, const Facts&) {
  plan.progress = true;
}
void empty_first(Plan& plan, const Facts&) {
  plan.empty_first = true;
}
void empty_events(Plan& plan, const Facts&) {
  plan.empty_between = true;
}
void no_choices(Plan& plan, const Facts&) {
  plan.no_choices = true;
}
void garbage_event(Plan& plan, const Facts&) {
  plan.garbage = true;
}
void huge_event(Plan& plan, const Facts&) {
  plan.huge = true;
}

// Latency definitions: vllm#3759, #6531, #46652, #5708; guidellm#737; sglang#36272;
// inference-perf#392. Breaks taken for success (C): vllm#57519, #54628, #5895; guidellm#743.
// Token counts (D): sglang#24254; llama.cpp#16048; ik_llama#2189.
constexpr Fault kFaults[] = {
    {"role-first", kRole, "role chunk at once, the first token at TTFT", role_first},
    {"role-null", kRole, "role chunk at once with content null", role_null},
    {"role-always", kRole, "the role in every chunk", role_always},
    {"multi-token", kChunks, "four tokens a chunk", multi_token},
    {"varied-chunks", kChunks, "1, 2, 1, 5, 3 tokens a chunk, in turn", varied_chunks},
    {"held-tokens", kChunks, "every third token shows only in the next chunk", held_tokens},
    {"giant-chunk", kChunks, "one token at TTFT, all others in one chunk at the end", giant_chunk},
    {"coalesced", kChunks, "four events in one write", coalesced},
    {"reasoning", kChannel, "the first half of the tokens in delta.reasoning", reasoning},
    {"reasoning-content", kChannel, "the first half in delta.reasoning_content", reasoning_content},
    {"tool-call", kChannel | kChunks | kFinish, "a tool call, its arguments in one giant chunk",
     tool_call},
    {"empty-events", kEmptyBetween, "a chunk without text after every chunk", empty_events},
    {"empty-first", kEmptyFirst, "chunks without text before the first token", empty_first},
    {"progress", kProgress, "prompt_progress events before the first token", progress},
    {"late-head", kHead, "the head of the response only with the first event", late_head},
    {"error-first", kCut, "the only event is an error, then [DONE]", error_first},
    {"error-mid", kCut, "an error event after half of the tokens, then [DONE]", error_mid},
    {"error-mid-no-done", kCut, "an error event after half, then the end of the body",
     error_mid_no_done},
    {"error-field", kCut, "after half a line `error: {json}`, then the end", error_field},
    {"abort-finish", kLength | kFinish, "half of the tokens, then finish_reason abort",
     abort_finish},
    {"finish-error", kLength | kFinish, "half of the tokens, then finish_reason error",
     finish_error},
    {"eof-mid", kCut, "the body ends in order after half, without an end marker", eof_mid},
    {"close-mid", kCut, "the connection closes after half, the body unfinished", close_mid},
    {"close-in-event", kCut, "the connection closes in the middle of an event", close_in_event},
    {"reset-mid", kCut, "the connection is reset after half of the tokens", reset_mid},
    {"bad-chunk", kCut | kFraming, "after half of the tokens bytes that are no HTTP chunk",
     bad_chunk},
    {"zero-tokens", kLength | kFinish, "role, finish and end marker, but no token", zero_tokens},
    {"done-only", kRole | kLength | kFinish | kUsage, "nothing but the end marker", done_only},
    {"stall", kCut, "silence after half of the tokens", stall},
    {"ping-hang", kCut | kPings, "after half of the tokens nothing but comments, for ever",
     ping_hang},
    {"no-first-token", kCut | kRole, "head and role chunk, then silence", no_first_token},
    {"short-answer", kLength | kFinish | kUsage, "half of what was asked, no usage", short_answer},
    {"usage-absent", kUsage, "no usage though asked for", usage_absent},
    {"usage-unasked", kUsage, "a usage chunk though not asked for", usage_unasked},
    {"usage-every-chunk", kUsage, "usage in every chunk", usage_every_chunk},
    {"usage-null", kUsage, "usage null in every chunk", usage_null},
    {"usage-with-finish", kUsage, "usage in the chunk of the finish_reason", usage_with_finish},
    {"text-with-finish", kFinish, "the last token and the finish_reason in one chunk",
     text_with_finish},
    {"no-finish", kFinish, "no finish_reason, only the end marker", no_finish},
    {"no-done", kDone, "no end marker: the body ends after the finish_reason", no_done},
    {"done-twice", kDone, "the end marker twice", done_twice},
    {"no-done-hang", kDone, "no end marker, and the connection stays open", no_done_hang},
    {"pings", kPings, "comment lines before and between the tokens", pings},
    {"multi-byte", kText, "tokens of two to four bytes a character", multi_byte},
    {"separators", kText, "U+2028, U+2029, U+0085, VT and FF in the text", separators},
    {"hostile-text", kText, "text that is markup and script", hostile_text},
    {"huge-event", kHuge, "the second chunk is 1 MiB long", huge_event},
    {"garbage-event", kGarbage, "an event in the middle that is not JSON", garbage_event},
    {"no-choices", kChoices, "events whose choices are missing or null", no_choices},
};

}  // namespace

std::span<const Fault> stream_faults() {
  return kFaults;
}

}  // namespace prony::mock
