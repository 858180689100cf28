// Tests of the request parser: defaults, every form of a prompt, refusals with their field named.
#include "prony/server/api.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace prony::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

GenerationRequest parsed(std::string_view body, bool chat = false) {
  auto result = parse_generation(body, chat);
  if (const auto* error = std::get_if<ApiError>(&result)) ADD_FAILURE() << error->message;
  return std::get<GenerationRequest>(std::move(result));
}
ApiError refused(std::string_view body, bool chat = false) {
  auto result = parse_generation(body, chat);
  EXPECT_TRUE(std::holds_alternative<ApiError>(result)) << body;
  return std::get<ApiError>(std::move(result));
}

TEST(ParseGeneration, CompletionDefaults) {
  const auto request = parsed(R"({"model":"m","prompt":"hi"})");
  EXPECT_EQ(request.model, "m");
  ASSERT_EQ(request.prompts.size(), 1U);
  EXPECT_EQ(std::get<std::string>(request.prompts[0]), "hi");
  EXPECT_FALSE(request.max_tokens.has_value());
  EXPECT_EQ(request.temperature, 1.0F);
  EXPECT_EQ(request.logprobs, -1);
  EXPECT_FALSE(request.stream);
}

TEST(ParseGeneration, EveryFormOfAPrompt) {
  EXPECT_THAT(std::get<1>(parsed(R"({"prompt":[1,2,3]})").prompts[0]), ElementsAre(1, 2, 3));
  EXPECT_EQ(parsed(R"({"prompt":["a","b"]})").prompts.size(), 2U);
  EXPECT_THAT(std::get<1>(parsed(R"({"prompt":[[1],[2,3]]})").prompts[1]), ElementsAre(2, 3));
}

TEST(ParseGeneration, ChatContentPartsAndNewerTokenLimit) {
  const auto request = parsed(
      R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"},
          {"type":"text","text":"b"}]}],
          "max_tokens":5,"max_completion_tokens":7,"logprobs":true,"top_logprobs":3,"stream":true,
          "stream_options":{"include_usage":true,"continuous_usage_stats":true},"stop":"x"})",
      true);
  EXPECT_EQ(request.messages[0].content, "ab");
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_EQ(request.logprobs, 3);
  EXPECT_TRUE(request.include_usage);
  EXPECT_TRUE(request.continuous_usage);
  EXPECT_THAT(request.stop, ElementsAre("x"));
}

TEST(ParseGeneration, RefusalsNameTheField) {
  const auto error = refused(R"({"prompt":"a","temperature":-1})");
  EXPECT_EQ(error.param, "temperature");
  EXPECT_EQ(error.message, "temperature: found -1, expected a number from 0 to 100");
  EXPECT_EQ(refused(R"({"prompt":"a","max_tokens":0})").param, "max_tokens");
  EXPECT_EQ(refused(R"({"prompt":"a","max_tokens":1.5})").param, "max_tokens");
  EXPECT_EQ(refused(R"({"prompt":"a","max_tokens":99999999999999999999})").param, "max_tokens");
  EXPECT_EQ(refused(R"({"prompt":[]})").param, "prompt");
  EXPECT_EQ(refused(R"({"prompt":[1,"a"]})").param, "prompt");
  EXPECT_EQ(refused(R"({"prompt":[-1]})").param, "prompt");
  EXPECT_EQ(refused(R"({})").message,
            "prompt: found nothing, expected a string, token ids, or a list of either");
  EXPECT_EQ(refused(R"({"prompt":"a","stop":[""]})").param, "stop");
  EXPECT_EQ(refused(R"({"prompt":"a","n":2})").param, "n");
  EXPECT_EQ(refused(R"({"prompt":"a","echo":true})").param, "echo");
  EXPECT_EQ(refused(R"({"prompt":"a","stream_options":{}})").param, "stream_options");
  EXPECT_EQ(refused(R"({"messages":[{"role":"user"}]})", true).param, "messages");
  EXPECT_EQ(
      refused(R"({"messages":[{"role":"user","content":[{"type":5,"text":"a"}]}]})", true).param,
      "messages");
  EXPECT_EQ(refused(R"({"messages":[{"role":"user","content":[{"text":"a"}]}]})", true).param,
            "messages");
  EXPECT_THAT(refused("{\"prompt\":").message, HasSubstr("not JSON at byte"));
  EXPECT_EQ(refused("[1]").message, "body: expected a JSON object");
}

TEST(FormatError, IsTheTypedObject) {
  EXPECT_EQ(
      format_error({404, "NotFoundError", "no \"x\"", "model"}),
      R"({"error":{"message":"no \"x\"","type":"NotFoundError","param":"model","code":404}})");
}

TEST(ParseDetokenize, ListOfIds) {
  EXPECT_THAT(std::get<std::vector<int32_t>>(parse_detokenize(R"({"tokens":[1,2]})")),
              ElementsAre(1, 2));
  EXPECT_TRUE(std::holds_alternative<ApiError>(parse_detokenize(R"({"tokens":"a"})")));
}

}  // namespace
}  // namespace prony::server
