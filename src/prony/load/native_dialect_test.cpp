// The dialects other than OpenAI's chat and completions: bodies as golden JSON, what is broken,
// what is an error, what they remember between events. Whole streams are in wire_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prony/core/file.hpp"
#include "prony/load/timeline_test_util.hpp"

namespace prony::load {
namespace {

using ::testing::HasSubstr;

std::string golden(const Dialect& dialect, const BodyOptions& options,
                   std::span<const int32_t> ids = {}) {
  return dialect.body({.text = "say \"hi\"\n", .ids = ids, .output_tokens = 5}, options);
}

TEST(NativeBody, Golden) {
  BodyOptions options;
  options.model = "m";
  options.temperature = 0.5;
  options.ignore_eos = true;
  EXPECT_EQ(golden(openai_responses(), options),
            R"({"model":"m","input":"say \"hi\"\n","max_output_tokens":5,"stream":true,)"
            R"("store":false,"temperature":0.5,"ignore_eos":true})");
  EXPECT_EQ(golden(sglang(), options),
            R"({"text":"say \"hi\"\n","sampling_params":{"max_new_tokens":5,"temperature":0.5,)"
            R"("ignore_eos":true},"stream":true})");
  EXPECT_EQ(golden(llamacpp(), options),
            R"({"model":"m","prompt":"say \"hi\"\n","n_predict":5,"stream":true,)"
            R"("temperature":0.5,"ignore_eos":true})");
  EXPECT_EQ(golden(tgi(), options),
            R"({"inputs":"say \"hi\"\n","parameters":{"max_new_tokens":5,"do_sample":true,)"
            R"("temperature":0.5,"details":true,"ignore_eos_token":true}})");
  EXPECT_EQ(golden(ollama(), options),
            R"({"model":"m","prompt":"say \"hi\"\n","raw":true,"stream":true,)"
            R"("options":{"num_predict":5,"temperature":0.5}})");
  EXPECT_EQ(golden(vllm_generate(), options),
            R"({"prompt":"say \"hi\"\n","max_tokens":5,"stream":true,"temperature":0.5,)"
            R"("ignore_eos":true})");
  EXPECT_EQ(golden(triton(), options),
            R"({"text_input":"say \"hi\"\n","max_tokens":5,"stream":true,"temperature":0.5,)"
            R"("ignore_eos":true})");
  EXPECT_EQ(golden(trtllm(), options),
            R"({"model":"m","prompt":"say \"hi\"\n","max_tokens":5,"stream":true,)"
            R"("temperature":0.5,"ignore_eos":true,"stream_options":{"include_usage":true}})");
  EXPECT_EQ(golden(lightllm(), options),
            R"({"inputs":"say \"hi\"\n","parameters":{"max_new_tokens":5,"do_sample":true,)"
            R"("temperature":0.5,"ignore_eos":true}})");
}

TEST(NativeBody, ResponsesPutTheHistoryBeforeThePrompt) {
  const BodyMessage history[] = {{"user", "one"}, {"assistant", "two"}};
  const auto body = core::parse_json(
      openai_responses().body({.text = "three", .ids = {}, .output_tokens = 5, .history = history},
                              {}),
      "body");
  ASSERT_TRUE(body.ok());
  EXPECT_EQ(body.value()["input"].dump(),
            R"([{"role":"user","content":"one"},{"role":"assistant","content":"two"},)"
            R"({"role":"user","content":"three"}])");
}

TEST(NativeBody, TemperatureZeroIsGreedy) {
  BodyOptions options;
  options.temperature = 0.0;
  EXPECT_THAT(golden(tgi(), options), HasSubstr(R"("do_sample":false,"details":true)"));
  EXPECT_THAT(golden(lightllm(), options), HasSubstr(R"("do_sample":false})"));
  EXPECT_THAT(golden(sglang(), options), HasSubstr(R"("temperature":0.0)"));
}

TEST(NativeBody, TokenIds) {
  const std::vector<int32_t> ids = {1, 2};
  EXPECT_THAT(golden(sglang(), {}, ids), HasSubstr(R"("input_ids":[1,2])"));
  EXPECT_THAT(golden(llamacpp(), {}, ids), HasSubstr(R"("prompt":[1,2])"));
  EXPECT_THAT(golden(trtllm(), {}, ids), HasSubstr(R"("prompt":[1,2])"));
}

TEST(NativeBody, ExtraBodyWinsEverywhere) {
  BodyOptions options;
  options.extra = core::Json{{"seed", 7}, {"stream", nullptr}};
  for (const auto* dialect : dialects()) {
    const auto body = core::parse_json(golden(*dialect, options), "body");
    ASSERT_TRUE(body.ok()) << dialect->info().name;
    EXPECT_EQ(body.value()["seed"], 7) << dialect->info().name;
    EXPECT_FALSE(body.value().contains("stream")) << dialect->info().name;
  }
}

TEST(NativeBody, ManyAnswersAreRefusedWhereverTheyAreAsked) {
  for (const char* extra : {R"({"sampling_params":{"n":2}})", R"({"parameters":{"best_of":3}})",
                            R"({"n_cmpl":2})", R"({"parameters":{"n":4}})"}) {
    EXPECT_FALSE(check_extra_body(core::parse_json(extra, "x").value(), "--extra-body").ok())
        << extra;
  }
  EXPECT_TRUE(
      check_extra_body(
          core::parse_json(R"({"sampling_params":{"n":1,"top_k":2},"options":5})", "x").value(),
          "--extra-body")
          .ok());
}

// One event of a fresh stream; the parser lives on so that the views do.
struct One {
  explicit One(const Dialect& dialect) : parser(dialect.make_parser()) {}
  Delta operator()(std::string_view data, std::string_view event = {}) {
    Delta delta;
    parser->parse(data, event, memory, delta);
    return delta;
  }
  std::unique_ptr<EventParser> parser;
  StreamMemory memory;
};

struct Shape {
  const Dialect* dialect;
  const char* data;
};
void PrintTo(const Shape& shape, std::ostream* out) {
  *out << shape.dialect->info().name << " " << shape.data;
}

class NativeBroken : public ::testing::TestWithParam<Shape> {};
TEST_P(NativeBroken, IsFound) {
  One one(*GetParam().dialect);
  const auto delta = one(GetParam().data);
  EXPECT_EQ(delta.kind, Delta::Kind::kBroken);
  EXPECT_FALSE(delta.message.empty());
}
INSTANTIATE_TEST_SUITE_P(
    All, NativeBroken,
    ::testing::Values(
        Shape{&openai_responses(), R"({"type":"response.output_text.delta","delta":5})"},
        Shape{&openai_responses(), R"({"type":"response.completed","response":5})"},
        Shape{&sglang(), R"({"text":["a","b"],"meta_info":{}})"},
        Shape{&sglang(), R"({"text":"a","index":1,"meta_info":{}})"},
        Shape{&sglang(), R"({"text":"a","meta_info":{"finish_reason":5}})"},
        Shape{&sglang(), R"({"text":"a","meta_info":5})"},
        Shape{&llamacpp(), R"({"content":5,"stop":false})"},
        Shape{&llamacpp(), R"({"content":"a","stop":"yes"})"},
        Shape{&llamacpp(), R"({"content":"a","index":1,"stop":false})"},
        Shape{&tgi(), R"({"token":5})"}, Shape{&tgi(), R"({"token":{"text":5}})"},
        Shape{&tgi(), R"({"token":{"text":"a"},"generated_text":5})"},
        Shape{&tgi(), R"({"token":{"text":"a"},"details":5})"},
        Shape{&ollama(), R"({"response":5})"}, Shape{&ollama(), R"({"response":"a","done":"yes"})"},
        Shape{&ollama(), R"({"response":"a")"}, Shape{&vllm_generate(), R"({"text":"a"})"},
        Shape{&vllm_generate(), R"({"text":["a","b"]})"}, Shape{&vllm_generate(), R"({"text":[]})"},
        Shape{&vllm_generate(), R"({"text":[5]})"}, Shape{&triton(), R"({"text_output":5})"},
        Shape{&triton(), R"({"text_output":["a","b"]})"},
        Shape{&trtllm(), R"({"choices":[{"index":0,"text":5}]})"},
        Shape{&trtllm(), R"({"choices":[{"index":1,"text":"a"}]})"},
        Shape{&lightllm(), R"({"token":{"text":"a"},"finished":"yes"})"},
        Shape{&lightllm(), R"([1])"}));

class NativeNoToken : public ::testing::TestWithParam<Shape> {};
TEST_P(NativeNoToken, IsTold) {
  One one(*GetParam().dialect);
  const auto delta = one(GetParam().data);
  EXPECT_EQ(delta.kind, Delta::Kind::kChunk);
  EXPECT_FALSE(delta.bears_tokens());
}
INSTANTIATE_TEST_SUITE_P(
    All, NativeNoToken,
    ::testing::Values(
        Shape{&openai_responses(), R"({"type":"response.output_text.done","text":"all"})"},
        Shape{&openai_responses(), R"({"type":"response.audio.delta","delta":"QUJD"})"},
        Shape{&openai_responses(), R"({"type":"response.output_text.delta","delta":""})"},
        Shape{&openai_responses(), R"({"type":"response.new_thing","delta":"x"})"},
        Shape{&openai_responses(),
              R"({"type":"response.output_item.added","item":{"type":"message"}})"},
        Shape{&sglang(), R"({"text":"","output_ids":[],"meta_info":{"completion_tokens":0}})"},
        Shape{&llamacpp(), R"({"content":"","tokens":[],"stop":true,"stop_type":"eos"})"},
        Shape{&tgi(), R"({"token":null,"generated_text":"x"})"},
        Shape{&ollama(), R"({"response":"","done":true})"},
        Shape{&ollama(), R"({"response":null,"done":false})"},
        Shape{&vllm_generate(), R"({"text":[""]})"}, Shape{&triton(), R"({"text_output":""})"},
        Shape{&triton(), R"({"sequence_end":false})"},
        Shape{&trtllm(), R"({"choices":[{"index":0,"text":"","finish_reason":"stop"}]})"},
        Shape{&lightllm(), R"({"token":{"text":""},"finished":true})"}));

TEST(NativeParse, ResponsesFormsOfADelta) {
  One one(openai_responses());
  EXPECT_EQ(one(R"({"delta":"a"})", "response.output_text.delta").text, "a");  // type left out
  EXPECT_EQ(one(R"({"type":"response.refusal.delta","delta":"no"})").text, "no");
  EXPECT_EQ(one(R"({"type":"response.reasoning_summary_text.delta","delta":"r"})").reasoning, "r");
  EXPECT_EQ(one(R"({"type":"response.reasoning.delta","delta":{"content":"We"}})").reasoning, "We");
  EXPECT_EQ(one(R"({"type":"response.mcp_call_arguments.delta","delta":"{"})").tool_calls, "{");
  EXPECT_EQ(one(R"({"type":"response.custom_tool_call_input.delta","delta":"x"})").tool_calls, "x");
  const auto cancelled = one(R"({"type":"response.cancelled","response":{"error":null}})");
  EXPECT_EQ(cancelled.finish_reason, "cancelled");
  const auto failed =
      one(R"({"type":"response.failed","response":{"error":{"code":"x","message":"died"}}})");
  EXPECT_EQ(failed.kind, Delta::Kind::kError);
  EXPECT_EQ(failed.message, "died");
}

TEST(NativeParse, EndsWithoutAReason) {
  EXPECT_TRUE(One(tgi())(R"({"token":{"id":1,"text":"a"},"generated_text":"a"})").ended);
  EXPECT_TRUE(One(ollama())(R"({"response":"a","done":true})").ended);
  EXPECT_TRUE(One(llamacpp())(R"({"content":"a","stop":true})").ended);
  EXPECT_FALSE(One(llamacpp())(R"({"content":"a","stop":false,"stop_type":"none"})").ended);
  EXPECT_EQ(One(llamacpp())(R"({"content":"a","stop":false,"stop_type":"limit"})").finish_reason,
            "");
}

TEST(NativeParse, SpecialTokensCountAndAreNoText) {
  One one(tgi());
  const auto end = one(R"({"token":{"special":true,"id":2,"text":"</s>"},"generated_text":""})");
  EXPECT_EQ(end.text, "");
  EXPECT_EQ(end.token_ids, 1);
}

// Zero tokens, then the end: a whole stream, but an empty one.
TEST(NativeStream, WithoutATokenIsEmpty) {
  const std::pair<const Dialect*, const char*> streams[] = {
      {&openai_responses(), "data: {\"type\":\"response.completed\",\"response\":{}}\n\n"},
      {&sglang(),
       "data: {\"text\":\"\",\"meta_info\":{\"finish_reason\":{\"type\":\"stop\"}}}\n\n"},
      {&llamacpp(), "data: {\"content\":\"\",\"stop\":true}\n\n"},
      {&tgi(), "data: {\"token\":null,\"generated_text\":\"\"}\n\n"},
      {&ollama(), "{\"response\":\"\",\"done\":true}\n"},
      {&vllm_generate(), "{\"text\":[\"\"]}\n"},
      {&triton(), "data: {\"text_output\":\"\"}\n\n"},
      {&trtllm(), "data: [DONE]\n\n"},
      {&lightllm(), "data: {\"token\":null,\"finished\":true}\n\n"}};
  for (const auto& [dialect, bytes] : streams) {
    TimelineRig rig(*dialect);
    rig.head();
    rig.body(bytes, 3000);
    EXPECT_EQ(rig.finish(4000).status, record::Status::kEmpty) << dialect->info().name;
  }
}

TEST(NativeStream, AnErrorFirstIsAStreamError) {
  for (const auto* dialect : dialects()) {
    const bool lines = dialect->info().form.framing == StreamForm::Framing::kLines;
    TimelineRig rig(*dialect);
    rig.head();
    rig.body(lines ? "{\"error\":\"no\"}\n" : "data: {\"error\":\"no\"}\n\n", 3000);
    const auto row = rig.finish(4000);
    EXPECT_EQ(row.status, record::Status::kStreamError) << dialect->info().name;
    EXPECT_EQ(row.error, "error event: no");
  }
}

TEST(NativeStream, LinesAreNoStreamIfTheyAreADocument) {
  const auto status = [](std::string_view content_type, bool chunked, bool until_close) {
    TimelineRig rig(ollama());
    auto head = sse_head(200, content_type);
    head.chunked = chunked;
    head.until_close = until_close;
    rig.timeline.on_head(head, stamp_at(2000));
    rig.body("{\"response\":\"a\",\"done\":true}", 3000);
    return rig.finish(4000).status;
  };
  using record::Status;
  EXPECT_EQ(status("application/json", false, false), Status::kNotStream);
  EXPECT_EQ(status("application/json", true, false), Status::kOk);
  EXPECT_EQ(status("application/json", false, true), Status::kOk);
  EXPECT_EQ(status("application/x-ndjson", false, false), Status::kOk);
  TimelineRig html(ollama());
  html.head();
  html.body("<html>", 3000);
  EXPECT_EQ(html.finish(4000).status, Status::kNotStream);
}

TEST(NativeStream, TheStateOfAStreamIsItsOwn) {
  // Two streams of one loop share the parser; their events interleave.
  LoopMeters meters;
  const auto parser = vllm_generate().make_parser();
  Timeline a(*parser, meters, {.keep_text = true}), b(*parser, meters, {.keep_text = true});
  for (auto* timeline : {&a, &b}) {
    timeline->begin({});
    timeline->on_sent(1000, 1001);
    timeline->on_request(std::string("\r\n\r\n") + R"({"prompt":"p"})");
    timeline->on_head(sse_head(200, ""), stamp_at(2000));
  }
  a.on_body("{\"text\":[\"p1\"]}\n", stamp_at(3000));
  b.on_body("{\"text\":[\"pxyz\"]}\n", stamp_at(3001));
  a.on_body("{\"text\":[\"p12\"]}\n", stamp_at(3002));
  b.on_body("{\"text\":[\"pxyz!\"]}\n", stamp_at(3003));
  a.on_complete(stamp_at(4000));
  b.on_complete(stamp_at(4000));
  EXPECT_EQ(a.take_row().text, "12");
  EXPECT_EQ(b.take_row().text, "xyz!");
}

std::string yes(bool value) {
  return value ? "yes" : "no";
}
std::string table_row(const DialectInfo& info) {
  std::string also;
  for (const char c : std::string_view(info.aliases)) {
    also += c == ',' ? "`, `" : std::string(1, c);
  }
  if (!also.empty()) also = "`" + also + "`";
  const bool lines = info.form.framing == StreamForm::Framing::kLines;
  std::string row = "|";
  for (const std::string& cell :
       {"`" + std::string(info.name) + "`", also, "`" + std::string(info.path) + "`",
        std::string(lines ? "JSON lines" : "SSE"), std::string(info.text), std::string(info.end),
        std::string(info.counts), yes(info.takes_token_ids), yes(info.channels),
        yes(info.ignores_eos)}) {
    row += cell.empty() ? " |" : " " + cell + " |";
  }
  return row;
}

TEST(NativeDocs, TheTableIsTheRegistry) {
  const auto docs = core::read_file(std::string(PRONY_SOURCE_DIR) + "/docs/dialects.md").value();
  std::string expected;
  for (const auto* dialect : dialects()) expected += table_row(dialect->info()) + "\n";
  EXPECT_THAT(docs, HasSubstr(expected)) << "docs/dialects.md must hold\n" << expected;
}

}  // namespace
}  // namespace prony::load
