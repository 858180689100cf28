// Golden tests of the bodies and events: these bytes are what clients of vLLM expect.
#include "prony/server/format.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prony/server/metrics.hpp"

namespace prony::server {
namespace {

using ::testing::HasSubstr;

TEST(Formatter, CompletionEvents) {
  const Formatter format({.id = "cmpl-1", .model = "m", .created_s = 7});
  EXPECT_EQ(format.piece_event({.index = 0, .text = "a\"\n"}, nullptr),
            "data: {\"id\":\"cmpl-1\",\"object\":\"text_completion\",\"created\":7,\"model\":\"m\","
            "\"choices\":[{\"index\":0,\"text\":\"a\\\"\\n\",\"logprobs\":null,"
            "\"finish_reason\":null,\"stop_reason\":null}]}\n\n");
  const Usage usage{.prompt_tokens = 3, .completion_tokens = 2, .cached_tokens = 1};
  EXPECT_EQ(format.usage_event(usage),
            "data: {\"id\":\"cmpl-1\",\"object\":\"text_completion\",\"created\":7,\"model\":\"m\","
            "\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"total_tokens\":5,"
            "\"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":1}}}\n\n");
}

TEST(Formatter, ChatEvents) {
  const Formatter format({.chat = true, .id = "chatcmpl-1", .model = "m", .created_s = 7});
  EXPECT_THAT(format.role_event(0, nullptr),
              HasSubstr("\"delta\":{\"role\":\"assistant\",\"content\":\"\"}"));
  EXPECT_THAT(format.piece_event({.text = "x", .finish = Finish::kLength}, nullptr),
              HasSubstr("\"delta\":{\"content\":\"x\"},\"logprobs\":null,"
                        "\"finish_reason\":\"length\""));
  const ChoicePiece piece{.text = "x", .finish = Finish::kStop, .stop_reason = "."};
  EXPECT_THAT(format.whole({&piece, 1}, {}),
              HasSubstr("\"message\":{\"role\":\"assistant\",\"content\":\"x\"},\"logprobs\":null,"
                        "\"finish_reason\":\"stop\",\"stop_reason\":\".\""));
}

TEST(Formatter, Logprobs) {
  const LogprobEntry entry{.token = "a", .bytes = "a", .logprob = -0.5F, .top = {{"a", -0.5F}}};
  const ChoicePiece piece{.text = "a", .token_ids = {97}, .logprobs = {entry}};
  const Formatter completion({.id = "x", .logprobs = true, .token_ids = true});
  EXPECT_THAT(completion.piece_event(piece, nullptr),
              HasSubstr("\"logprobs\":{\"text_offset\":[0],\"token_logprobs\":[-0.5],"
                        "\"tokens\":[\"a\"],\"top_logprobs\":[{\"a\":-0.5}]}"));
  EXPECT_THAT(completion.piece_event(piece, nullptr), HasSubstr("\"token_ids\":[97]"));
  const Formatter chat({.chat = true, .id = "x", .logprobs = true});
  EXPECT_THAT(chat.piece_event(piece, nullptr),
              HasSubstr("\"logprobs\":{\"content\":[{\"token\":\"a\",\"logprob\":-0.5,"
                        "\"bytes\":[97],\"top_logprobs\":[{\"token\":\"a\",\"logprob\":-0.5,"
                        "\"bytes\":[97]}]}]}"));
}

TEST(Metrics, TextUnderVllmNames) {
  Metrics metrics("m\"1");
  metrics.on_step(8, {.running = 2, .waiting = 1, .kv_usage = 0.25});
  metrics.on_prompt_done(100, 16);
  metrics.on_first_token(30 * core::kNanosPerMilli);
  metrics.on_next_token(5 * core::kNanosPerMilli);
  metrics.on_finished({.arrived_ns = 0,
                       .scheduled_ns = core::kNanosPerMilli,
                       .first_token_ns = 30 * core::kNanosPerMilli,
                       .last_token_ns = 35 * core::kNanosPerMilli,
                       .finished_ns = 35 * core::kNanosPerMilli,
                       .prompt_tokens = 100,
                       .output_tokens = 2},
                      Finish::kLength);
  const auto text = metrics.text();
  const std::string label = "{model_name=\"m\\\"1\",engine=\"0\"";
  EXPECT_THAT(text, HasSubstr("vllm:num_requests_running" + label + "} 2\n"));
  EXPECT_THAT(text, HasSubstr("vllm:kv_cache_usage_perc" + label + "} 0.25\n"));
  EXPECT_THAT(text, HasSubstr("vllm:generation_tokens_total" + label + "} 2\n"));
  EXPECT_THAT(text,
              HasSubstr("vllm:time_to_first_token_seconds_bucket" + label + ",le=\"0.02\"} 0\n"));
  EXPECT_THAT(text,
              HasSubstr("vllm:time_to_first_token_seconds_bucket" + label + ",le=\"0.04\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("vllm:time_to_first_token_seconds_sum" + label + "} 0.03\n"));
  EXPECT_THAT(text, HasSubstr("vllm:inter_token_latency_seconds_count" + label + "} 1\n"));
  EXPECT_THAT(text,
              HasSubstr("vllm:request_success_total" + label + ",finished_reason=\"length\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE vllm:e2e_request_latency_seconds histogram\n"));
}

}  // namespace
}  // namespace prony::server
