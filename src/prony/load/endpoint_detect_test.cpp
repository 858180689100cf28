// --endpoint-type auto: fake servers of every kind, found by what they answer.
#include "prony/load/endpoint_detect.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prony/load/endpoint.hpp"
#include "prony/load/test_server.hpp"

namespace prony::load {
namespace {

using ::testing::HasSubstr;

/// A server that knows some pages: path -> answer; all else is 404.
struct Page {
  std::string path, content_type, body;
  std::string must_hold;  // in the request, else 400
};

class Pages {
 public:
  explicit Pages(std::vector<Page> pages)
      : pages_(std::move(pages)),
        server_([this](TestServer&, const net::HttpRequest& request,
                       const std::shared_ptr<net::Exchange>& exchange) {
          for (const auto& page : pages_) {
            if (page.path != request.path) continue;
            if (request.body.find(page.must_hold) == std::string::npos) {
              exchange->respond(400, {}, R"({"error":"a field is missing"})");
              return;
            }
            exchange->respond(200, {{"Content-Type", page.content_type}}, page.body);
            return;
          }
          exchange->respond(404, {}, "no");
        }) {}

  Result<Endpoint> open(std::optional<std::string> path = std::nullopt, std::string model = "",
                        std::string type = "auto") {
    EndpointOptions options;
    options.type = std::move(type);
    options.base_url = server_.url();
    options.path = std::move(path);
    options.model = std::move(model);
    options.ready_timeout_ns = 3 * core::kNanosPerSecond;
    return open_endpoint(
        options, [this](std::string_view text) { note = text; }, nullptr);
  }
  int requests() const { return server_.requests; }

  std::string note;

 private:
  std::vector<Page> pages_;
  TestServer server_;
};

const char* const kSse = "text/event-stream";
const char* const kJson = "application/json";
const Page kModels{"/v1/models", kJson, R"({"data":[{"id":"listed","owned_by":"vllm"}]})", ""};
const Page kChat{"/v1/chat/completions", kSse,
                 "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},"
                 "\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n",
                 "messages"};
const Page kCompletions{"/v1/completions", kSse,
                        "data: {\"choices\":[{\"index\":0,\"text\":\"\","
                        "\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n",
                        "prompt"};

TEST(Detect, ChatFirstWhereModelsAreListed) {
  Pages pages({kModels, kCompletions, kChat});
  const auto endpoint = pages.open();
  ASSERT_TRUE(endpoint.ok()) << endpoint.error().message;
  EXPECT_EQ(endpoint.value().dialect, &openai_chat());
  EXPECT_EQ(endpoint.value().model, "listed");
  EXPECT_EQ(pages.note, "endpoint type openai-chat: /v1/chat/completions gave a token");
  EXPECT_EQ(pages.requests(), 2);  // the list, one token
}

TEST(Detect, CompletionsIfChatFails) {
  Pages pages({kModels, kCompletions});
  const auto endpoint = pages.open();
  ASSERT_TRUE(endpoint.ok()) << endpoint.error().message;
  EXPECT_EQ(endpoint.value().dialect, &openai_completions());  // its one token is held back
  EXPECT_EQ(endpoint.value().target, "/v1/completions");
}

TEST(Detect, AnErrorInTheStreamIsNoAnswer) {
  auto chat = kChat;
  chat.body = "data: {\"error\":{\"message\":\"no chat template\"}}\n\ndata: [DONE]\n\n";
  Pages pages({kModels, chat, kCompletions});
  EXPECT_EQ(pages.open().value().dialect, &openai_completions());
}

struct Native {
  const Dialect* dialect;
  std::vector<Page> pages;
  const char* model;
  const char* note;
};
void PrintTo(const Native& native, std::ostream* out) {
  *out << native.dialect->info().name;
}
class DetectNative : public ::testing::TestWithParam<Native> {};
TEST_P(DetectNative, IsFound) {
  const auto& native = GetParam();
  Pages pages(native.pages);
  const auto endpoint = pages.open();
  ASSERT_TRUE(endpoint.ok()) << endpoint.error().message;
  EXPECT_EQ(endpoint.value().dialect, native.dialect);
  EXPECT_EQ(endpoint.value().model, native.model);
  EXPECT_THAT(pages.note, HasSubstr(native.note));
}
INSTANTIATE_TEST_SUITE_P(
    All, DetectNative,
    ::testing::Values(
        Native{&sglang(),
               {{"/get_model_info", kJson, R"({"model_path":"q/w","is_generation":true})", ""},
                {"/generate", kSse,
                 "data: {\"text\":\"a\",\"meta_info\":{\"finish_reason\":{\"type\":\"length\"},"
                 "\"completion_tokens\":1}}\n\ndata: [DONE]\n\n",
                 "sampling_params"}},
               "q/w",
               "/generate gave a token, GET /get_model_info an answer"},
        Native{&tgi(),
               {{"/info", kJson, R"({"model_id":"big","version":"3.0"})", ""},
                {"/generate_stream", kSse,
                 "data:{\"index\":1,\"token\":{\"id\":1,\"text\":\"a\",\"special\":false},"
                 "\"generated_text\":\"a\",\"details\":null}\n\n",
                 "inputs"}},
               "big",
               "GET /info an answer"},
        Native{&llamacpp(),
               {{"/props", kJson, R"({"model_path":"/m/x.gguf","total_slots":4})", ""},
                {"/completion", kSse, "data: {\"content\":\"a\",\"stop\":true}\n\n", "n_predict"}},
               "/m/x.gguf",
               "GET /props an answer"},
        Native{&ollama(),
               {{"/api/tags", kJson, R"({"models":[{"name":"tiny:1b"}]})", ""},
                {"/api/generate", "application/x-ndjson",
                 "{\"response\":\"a\",\"done\":false}\n{\"response\":\"\",\"done\":true}\n",
                 "tiny:1b"}},
               "tiny:1b",
               "GET /api/tags an answer"},
        Native{&triton(),
               {{"/v2", kJson, R"({"name":"triton","extensions":["generate"]})", ""},
                {"/v2/repository/index", kJson,
                 R"([{"name":"preprocessing"},{"name":"ensemble","state":"READY"}])", ""},
                {"/v2/models/ensemble/generate_stream", kSse, "data: {\"text_output\":\"a\"}\n\n",
                 "text_input"}},
               "ensemble",
               "/v2/models/ensemble/generate_stream gave a token"},
        Native{&vllm_generate(),
               {{"/generate", "", "{\"text\":[\"hi\"]}\n{\"text\":[\"hia\"]}\n", "\"prompt\""}},
               "unnamed",
               "/generate gave a token"},
        Native{&lightllm(),
               {{"/generate_stream", kSse,
                 "data:{\"token\":{\"id\":1,\"text\":\"a\",\"count_output_tokens\":1},"
                 "\"finished\":true,\"finish_reason\":\"length\"}\n\n",
                 "inputs"}},
               "unnamed",
               "/generate_stream gave a token"}));

TEST(Detect, ResponsesAloneWithAModel) {
  Pages pages({{"/v1/responses", kSse,
                "data: {\"type\":\"response.incomplete\",\"response\":{}}\n\n", "input"}});
  const auto without = pages.open();
  ASSERT_FALSE(without.ok());
  EXPECT_EQ(without.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(without.error().message, HasSubstr("--model: missing"));
  const auto endpoint = pages.open(std::nullopt, "m");
  ASSERT_TRUE(endpoint.ok()) << endpoint.error().message;
  EXPECT_EQ(endpoint.value().dialect, &openai_responses());
}

TEST(Detect, APathOfTwoDialectsIsAsked) {
  Pages pages({{"/gw/generate", "", "{\"text\":[\"hia\"]}\n", "\"prompt\""}});
  const auto endpoint = pages.open("/gw/generate");
  ASSERT_TRUE(endpoint.ok()) << endpoint.error().message;
  EXPECT_EQ(endpoint.value().dialect, &vllm_generate());
  EXPECT_EQ(endpoint.value().target, "/gw/generate");
}

TEST(Detect, NothingFits) {
  Pages pages({kModels});
  const auto endpoint = pages.open();
  ASSERT_FALSE(endpoint.ok());
  EXPECT_EQ(endpoint.error().code, ErrorCode::kEnvironment);
  EXPECT_THAT(endpoint.error().message, HasSubstr("openai-chat: http 404: no"));
  EXPECT_THAT(endpoint.error().message, HasSubstr("lightllm: http 404: no"));
}

TEST(Detect, AnInterruptEndsIt) {
  Pages pages({kModels, kChat});
  const std::atomic<bool> interrupt{true};
  Server server;
  server.origin = {.tls = false, .host = "127.0.0.1", .port = 9};
  const auto detected = detect(server, {}, std::nullopt, &interrupt);
  ASSERT_FALSE(detected.ok());
  EXPECT_EQ(detected.error().code, ErrorCode::kFailed);
}

TEST(Detect, TheModelOfAGivenDialect) {
  Pages pages({{"/get_model_info", kJson, R"({"model_path":"q/w"})", ""}});
  const auto endpoint = pages.open(std::nullopt, "", "sglang");
  ASSERT_TRUE(endpoint.ok()) << endpoint.error().message;
  EXPECT_EQ(endpoint.value().model, "q/w");
  EXPECT_EQ(pages.requests(), 2);
  // Its requests name no model, so that none need be known.
  EXPECT_EQ(pages.open(std::nullopt, "", "tgi").value().model, "unnamed");
  EXPECT_FALSE(pages.open(std::nullopt, "", "triton").ok());
  // A thread of llama.cpp's server waits on every idle connection.
  EXPECT_TRUE(pages.open(std::nullopt, "m", "llamacpp").value().dislikes_idle_connections());
}

}  // namespace
}  // namespace prony::load
