// Dialects: request bodies, the table, and every shape of event that servers are known to send.
#include "prony/load/dialect.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace prony::load {
namespace {

using ::testing::HasSubstr;

Delta parse(const Dialect& dialect, std::string_view data, std::string_view event = {}) {
  // Kept per dialect, so that the views of the delta outlive the call.
  static std::map<const Dialect*, std::unique_ptr<EventParser>> parsers;
  auto& parser = parsers[&dialect];
  if (!parser) parser = dialect.make_parser();
  StreamMemory memory;
  Delta delta;
  parser->parse(data, event, memory, delta);
  return delta;
}
Delta chat(std::string_view data, std::string_view event = {}) {
  return parse(openai_chat(), data, event);
}
Delta chat_delta(const std::string& delta) {
  return chat(R"({"choices":[{"index":0,"delta":)" + delta + "}]}");
}

TEST(DialectTable, FindsNamesAndAliases) {
  EXPECT_EQ(find_dialect("openai-chat", "--endpoint-type").value(), &openai_chat());
  EXPECT_EQ(find_dialect("openai", "--endpoint-type").value(), &openai_completions());
  EXPECT_EQ(find_dialect("vllm", "--endpoint-type").value(), &openai_completions());
  const auto unknown = find_dialect("grpc", "--endpoint-type");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().message,
            "--endpoint-type: found 'grpc', expected one of openai-chat, openai-completions, "
            "openai-responses, sglang, llamacpp, tgi, ollama, vllm-generate, triton, trtllm, "
            "lightllm");
}

TEST(DialectTable, PathTellsTheDialect) {
  using Found = std::vector<const Dialect*>;
  EXPECT_EQ(dialects_of_path("/v1/chat/completions"), Found{&openai_chat()});
  EXPECT_EQ(dialects_of_path("/openai/deployments/x/chat/completions?api-version=1"),
            Found{&openai_chat()});
  EXPECT_EQ(dialects_of_path("/v1/completions"), Found{&openai_completions()});
  EXPECT_EQ(dialects_of_path("/completion"), Found{&llamacpp()});
  EXPECT_EQ(dialects_of_path("/gw/v1/responses"), Found{&openai_responses()});
  EXPECT_EQ(dialects_of_path("/generate"), (Found{&sglang(), &vllm_generate()}));
  EXPECT_EQ(dialects_of_path("/api/generate"), Found{&ollama()});
  EXPECT_EQ(dialects_of_path("/generate_stream"), (Found{&tgi(), &lightllm()}));
  EXPECT_EQ(dialects_of_path("/v2/models/ensemble/generate_stream"), Found{&triton()});
  EXPECT_TRUE(dialects_of_path("/predict").empty());
}

TEST(DialectBody, ChatHoldsPromptLimitAndUsage) {
  BodyOptions options;
  options.model = "m";
  const auto body = core::parse_json(
      openai_chat().body({.text = "say \"hi\"\n", .ids = {}, .output_tokens = 5}, options), "body");
  ASSERT_TRUE(body.ok());
  EXPECT_EQ(body.value().dump(),
            R"({"model":"m","messages":[{"role":"user","content":"say \"hi\"\n"}],)"
            R"("max_tokens":5,"stream":true,"stream_options":{"include_usage":true}})");
}

TEST(DialectBody, ChatPutsTheHistoryBeforeThePrompt) {
  const BodyMessage history[] = {{"user", "one"}, {"assistant", "two \"2\""}};
  BodyOptions options;
  options.usage = UsageRequest::kNone;
  const auto body = core::parse_json(
      openai_chat().body({.text = "three", .ids = {}, .output_tokens = 5, .history = history},
                         options),
      "body");
  ASSERT_TRUE(body.ok());
  EXPECT_EQ(body.value()["messages"].dump(),
            R"([{"role":"user","content":"one"},{"role":"assistant","content":"two \"2\""},)"
            R"({"role":"user","content":"three"}])");
}

TEST(DialectBody, CompletionsTakesIdsAndExtras) {
  BodyOptions options;
  options.model = "m";
  options.usage = UsageRequest::kContinuous;
  options.ignore_eos = true;
  options.temperature = 0.0;
  options.extra = core::Json{{"top_p", 0.5},
                             {"max_tokens", nullptr},
                             {"stream_options", {{"continuous_usage_stats", false}}}};
  const std::vector<int32_t> ids = {1, 2, 3};
  const auto body = core::parse_json(
      openai_completions().body({.text = "", .ids = ids, .output_tokens = 9}, options), "body");
  ASSERT_TRUE(body.ok());
  EXPECT_EQ(
      body.value().dump(),
      R"({"model":"m","prompt":[1,2,3],"stream":true,"temperature":0.0,"ignore_eos":true,)"
      R"("stream_options":{"include_usage":true,"continuous_usage_stats":false},"top_p":0.5})");
}

TEST(DialectBody, ManyChoicesAreRefused) {
  const auto n = check_extra_body(core::Json{{"n", 2}}, "--extra-body");
  ASSERT_FALSE(n.ok());
  EXPECT_EQ(n.error().message, "--extra-body: found n = 2, expected 1 (one answer a request)");
  EXPECT_FALSE(check_extra_body(core::Json{{"best_of", 3}}, "--extra-body").ok());
  EXPECT_FALSE(check_extra_body(core::Json{{"stream", false}}, "--extra-body").ok());
  EXPECT_FALSE(check_extra_body(core::Json::array({1}), "--extra-body").ok());
  EXPECT_TRUE(check_extra_body(core::Json{{"n", 1}, {"stream", true}, {"seed", 4}}, "x").ok());
}

TEST(DialectParse, TextReasoningAndToolsAreTold) {
  EXPECT_EQ(chat_delta(R"({"content":"a\u00e9\n"})").text, "a\xC3\xA9\n");
  EXPECT_EQ(chat_delta(R"({"reasoning":"hm"})").reasoning, "hm");
  EXPECT_EQ(chat_delta(R"({"reasoning_content":"hm","content":null})").reasoning, "hm");
  EXPECT_EQ(chat_delta(R"({"reasoning":"hm","reasoning_content":"hm"})").reasoning, "hm");
  EXPECT_EQ(chat_delta(R"({"refusal":"no"})").text, "no");
  EXPECT_EQ(
      chat_delta(R"({"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]})").text,
      "ab");
  EXPECT_EQ(chat_delta(R"({"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{"}},
                                         {"index":1,"function":{"name":"g"}}]})")
                .tool_calls,
            "f{g");
  EXPECT_EQ(chat_delta(R"({"function_call":{"name":"f","arguments":""}})").tool_calls, "f");
  EXPECT_TRUE(chat_delta(R"({"tool_calls":[{"function":{"arguments":{"k":1}}}]})").bears_tokens());
}

TEST(DialectParse, EventsWithoutTokens) {
  for (const char* delta :
       {R"({"role":"assistant"})", R"({"role":"assistant","content":""})",
        R"({"role":"assistant","content":null})", "{}", "null",
        R"({"role":null,"content":null,"reasoning_content":null,"tool_calls":null})",
        R"({"tool_calls":[]})", R"({"tool_calls":[{"index":0,"id":"c","type":"function"}]})"}) {
    const auto got = chat_delta(delta);
    EXPECT_EQ(got.kind, Delta::Kind::kChunk) << delta;
    EXPECT_FALSE(got.bears_tokens()) << delta;
  }
  for (const char* data : {R"({"choices":[]})", R"({"choices":null})", "{}", "", " ",
                           R"({"choices":[],"usage":null,"error":null})",
                           R"({"prompt_progress":{"total":9,"processed":3}})"}) {
    EXPECT_EQ(chat(data).kind, Delta::Kind::kChunk) << data;
    EXPECT_FALSE(chat(data).bears_tokens()) << data;
  }
}

TEST(DialectParse, TokenIdsBearTokensWithoutText) {
  const auto got =
      parse(openai_completions(), R"({"choices":[{"index":0,"text":"","token_ids":[5,6]}]})");
  EXPECT_EQ(got.token_ids, 2);
  EXPECT_TRUE(got.bears_tokens());
  EXPECT_FALSE(
      parse(openai_completions(), R"({"choices":[{"text":"","token_ids":null}]})").bears_tokens());
}

TEST(DialectParse, UsageInEveryForm) {
  const auto got = chat(
      R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":4,"total_tokens":11,
          "prompt_tokens_details":{"cached_tokens":3},
          "completion_tokens_details":{"reasoning_tokens":2}}})");
  EXPECT_TRUE(got.has_usage);
  EXPECT_EQ(got.usage.prompt_tokens, 7);
  EXPECT_EQ(got.usage.completion_tokens, 4);
  EXPECT_EQ(got.usage.cached_tokens, 3);
  EXPECT_EQ(got.usage.reasoning_tokens, 2);
  EXPECT_EQ(chat(R"({"choices":[],"usage":{"completion_tokens":4.0}})").usage.completion_tokens, 4);
  for (const char* usage : {"null", "{}", "[]", R"("many")", R"({"completion_tokens":-1})",
                            R"({"completion_tokens":null})", R"({"completion_tokens":"4"})",
                            R"({"completion_tokens":4.5})", R"({"completion_tokens":1e300})",
                            R"({"completion_tokens":99999999999})"}) {
    const auto none = chat(R"({"choices":[],"usage":)" + std::string(usage) + "}");
    EXPECT_EQ(none.kind, Delta::Kind::kChunk) << usage;
    EXPECT_FALSE(none.has_usage) << usage;
  }
}

TEST(DialectParse, FinishReasons) {
  EXPECT_EQ(chat(R"({"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]})").finish_reason,
            "stop");
  EXPECT_EQ(chat(R"({"choices":[{"delta":{},"finish_reason":null}]})").finish_reason, "");
  EXPECT_EQ(chat(R"({"choices":[{"delta":{},"finish_reason":""}]})").finish_reason, "");
  EXPECT_EQ(chat(R"({"choices":[{"delta":{},"finish_reason":5}]})").kind, Delta::Kind::kBroken);
}

TEST(DialectParse, EndMarkers) {
  for (const char* data : {"[DONE]", " [DONE]", "[DONE] ", "[DONE]\n"}) {
    EXPECT_EQ(chat(data).kind, Delta::Kind::kDone) << data;
  }
  for (const char* data : {"[DONE", "[DONE]x", "DONE", "[done]"}) {
    EXPECT_EQ(chat(data).kind, Delta::Kind::kBroken) << data;
  }
}

struct ErrorCase {
  const char* data;
  const char* event;
  const char* message;
  int32_t code;
};
// The name of the test, instead of its bytes.
void PrintTo(const ErrorCase& error, std::ostream* out) {
  *out << error.message;
}
class DialectErrors : public ::testing::TestWithParam<ErrorCase> {};
TEST_P(DialectErrors, AreFound) {
  const auto& expected = GetParam();
  for (const auto* dialect : dialects()) {
    const auto got = parse(*dialect, expected.data, expected.event);
    EXPECT_EQ(got.kind, Delta::Kind::kError);
    EXPECT_EQ(got.message, expected.message);
    EXPECT_EQ(got.error_code, expected.code);
  }
}
INSTANTIATE_TEST_SUITE_P(
    All, DialectErrors,
    ::testing::Values(
        ErrorCase{R"({"error":{"message":"engine died","type":"E","param":null,"code":500}})", "",
                  "engine died", 500},
        ErrorCase{R"({"object":"error","message":"too long","type":"BadRequestError","code":400})",
                  "", "too long", 400},
        ErrorCase{R"({"error":"Model is overloaded","error_type":"overloaded"})", "",
                  "Model is overloaded", 0},
        ErrorCase{R"({"error":{"code":503,"message":"Loading model","type":"unavailable_error"}})",
                  "", "Loading model", 503},
        ErrorCase{R"({"type":"error","message":"bad","code":"E7"})", "", "bad", 0},
        ErrorCase{R"({"error":{"type":"OutOfMemory"}})", "", "OutOfMemory", 0},
        ErrorCase{R"({"error":{}})", "", "an error object without a message", 0},
        ErrorCase{R"({"error":true})", "", "an error object without a message", 0},
        ErrorCase{R"({"choices":[],"error":{"message":"late"}})", "", "late", 0},
        ErrorCase{R"({"message":"named event"})", "error", "named event", 0},
        ErrorCase{"plain\ntext", "error", "plain text", 0},
        ErrorCase{R"({"error":{"message":"two\nlines\u0007"}})", "", "two lines", 0}));

TEST(DialectParse, BrokenEvents) {
  for (const char* data :
       {"{", "{\"choices\":[{\"delta\":{\"content\":\"A\"", "[]", "5", "\"x\"", "null", "<html>",
        R"({"choices":{}})", R"({"choices":[5]})", R"({"choices":[{"delta":5}]})",
        R"({"choices":[{"delta":{"content":5}}]})", R"({"choices":[{"delta":{"tool_calls":5}}]})",
        R"({"choices":[{"delta":{"content":"a"}},{"delta":{"content":"b"}}]})",
        R"({"choices":[{"index":1,"delta":{"content":"a"}}]})",
        R"({"choices":[{"delta":{"content":"a"}}]} trailing)",
        "{\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}",
        "{\"id\":@,\"choices\":[{\"delta\":{\"content\":\"a\"}}]}"}) {
    EXPECT_EQ(chat(data).kind, Delta::Kind::kBroken) << data;
    EXPECT_FALSE(chat(data).message.empty());
  }
}

TEST(DialectParse, BigEventsGrowTheBuffer) {
  for (const size_t size : {size_t{1}, size_t{4000}, size_t{4096}, size_t{200'000}, size_t{5}}) {
    const auto got =
        chat(R"({"choices":[{"delta":{"content":")" + std::string(size, 'x') + R"("}}]})");
    EXPECT_EQ(got.text.size(), size);
  }
}

TEST(ErrorText, FindsTheMessage) {
  EXPECT_EQ(error_text(R"({"error":{"message":"m"}})"), "m");
  EXPECT_EQ(error_text(R"({"object":"error","message":"m"})"), "m");
  EXPECT_EQ(error_text(R"({"error":"m"})"), "m");
  EXPECT_EQ(error_text(R"({"detail":"m"})"), "m");
  EXPECT_EQ(error_text(R"({"detail":[{"msg":"m","loc":[]}]})"), "m");
  EXPECT_EQ(error_text("<html>\r\n<b>502</b>"), "<html> <b>502</b>");
  EXPECT_EQ(error_text(""), "");
}

TEST(OneLine, CutsBetweenCharacters) {
  EXPECT_EQ(one_line("a\tb\r\n\r\nc\n"), "a b c");
  EXPECT_EQ(one_line("\x1b[31mred"), "[31mred");
  const std::string text = "\xE6\xB5\xB7\xE6\xB5\xB7\xE6\xB5\xB7";  // three characters of 3 bytes
  EXPECT_EQ(one_line(text, 9), text);
  EXPECT_EQ(one_line(text, 8), text.substr(0, 6) + "...");
  EXPECT_EQ(one_line(text, 7), text.substr(0, 6) + "...");
  EXPECT_EQ(one_line(text, 6), text.substr(0, 3) + "...");  // may drop a whole one, never half
}

}  // namespace
}  // namespace prony::load
