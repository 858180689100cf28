// Endpoint: base URLs, readiness, the server's own words, the dialect by asking.
#include "prony/load/endpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prony/load/endpoint_detect.hpp"
#include "prony/load/test_server.hpp"

namespace prony::load {
namespace {

using core::kNanosPerMilli;
using core::kNanosPerSecond;
using ::testing::HasSubstr;

void quiet(std::string_view) {}

TEST(EndpointUrl, WithOrWithoutV1) {
  for (const char* text :
       {"http://h:8000", "http://h:8000/", "http://h:8000/v1", "http://h:8000/v1/"}) {
    const auto url = parse_base_url(text);
    ASSERT_TRUE(url.ok()) << text;
    EXPECT_EQ(url.value().path, "") << text;
    EXPECT_EQ(url.value().origin.port, 8000);
  }
  EXPECT_EQ(parse_base_url("https://gw/llm/v1").value().path, "/llm");
  EXPECT_FALSE(parse_base_url("h:8000").ok());
  EXPECT_THAT(parse_base_url("ftp://h").error().message, HasSubstr("--base-url"));
}

TEST(EndpointUrl, Target) {
  EXPECT_EQ(request_target("", std::nullopt, &openai_chat(), "m"), "/v1/chat/completions");
  EXPECT_EQ(request_target("/llm", std::nullopt, &openai_completions(), "m"),
            "/llm/v1/completions");
  EXPECT_EQ(request_target("", "/api/chat/completions", &openai_chat(), "m"),
            "/api/chat/completions");
  EXPECT_EQ(request_target("", "v1/completions", nullptr, "m"), "/v1/completions");
  EXPECT_EQ(request_target("", std::nullopt, &triton(), "a/b c"),
            "/v2/models/a%2Fb%20c/generate_stream");
}

EndpointOptions options_for(const TestServer& server) {
  EndpointOptions options;
  options.base_url = server.url() + "/v1";
  options.ready_timeout_ns = 3 * kNanosPerSecond;
  return options;
}

TEST(Endpoint, ModelOwnerAndDevice) {
  TestServer server([](TestServer&, const net::HttpRequest& request,
                       const std::shared_ptr<net::Exchange>& exchange) {
    EXPECT_EQ(request.path, "/v1/models");
    EXPECT_EQ(request.header("authorization"), "Bearer k");
    exchange->respond(200, {{"X-Prony-Device", "emulated:h100-sxm"}},
                      R"({"object":"list","data":[{"id":"llama","owned_by":"vllm"}]})");
  });
  auto options = options_for(server);
  options.type = "openai-chat";
  options.headers = {{"Authorization", "Bearer k"}};
  const auto endpoint = open_endpoint(options, quiet, nullptr);
  ASSERT_TRUE(endpoint.ok()) << endpoint.error().message;
  EXPECT_EQ(endpoint.value().model, "llama");
  EXPECT_EQ(endpoint.value().owner, "vllm");
  EXPECT_TRUE(endpoint.value().counts_every_chunk());
  EXPECT_EQ(endpoint.value().prony_device, "emulated:h100-sxm");
  EXPECT_EQ(endpoint.value().base_url, server.url());
  EXPECT_EQ(endpoint.value().target, "/v1/chat/completions");
  EXPECT_EQ(server.requests, 1);
}

TEST(Endpoint, AnyAnswerIsReady) {
  // What a server of one path says to a GET it does not know, streams included.
  for (int kind = 0; kind < 5; ++kind) {
    TestServer server([kind](TestServer&, const net::HttpRequest&,
                             const std::shared_ptr<net::Exchange>& exchange) {
      if (kind == 0) exchange->respond(404, {}, "no");
      if (kind == 1) exchange->respond(503, {}, "busy");
      if (kind == 2) exchange->respond(200, {}, "not json");
      if (kind == 3) exchange->respond(200, {}, R"({"data":[5]})");
      if (kind == 4) exchange->start_stream(200, {{"Content-Type", "text/event-stream"}});
    });
    auto options = options_for(server);
    options.type = "openai-chat";
    options.model = "m";
    const auto begin = core::monotonic_ns();
    const auto endpoint = open_endpoint(options, quiet, nullptr);
    ASSERT_TRUE(endpoint.ok()) << kind << endpoint.error().message;
    EXPECT_EQ(endpoint.value().model, "m");
    EXPECT_LT(core::monotonic_ns() - begin, kNanosPerSecond);
    EXPECT_EQ(server.requests, 1);
  }
}

TEST(Endpoint, WaitsForALoadingModel) {
  TestServer server([](TestServer& self, const net::HttpRequest&,
                       const std::shared_ptr<net::Exchange>& exchange) {
    if (self.requests < 3) {
      exchange->respond(503, {}, R"({"error":{"code":503,"message":"Loading model"}})");
    } else {
      exchange->respond(200, {}, R"({"data":[{"id":"m","owned_by":"llamacpp"}]})");
    }
  });
  auto options = options_for(server);
  options.type = "openai-chat";
  const auto endpoint = open_endpoint(options, quiet, nullptr);
  ASSERT_TRUE(endpoint.ok());
  EXPECT_EQ(server.requests, 3);
  EXPECT_TRUE(endpoint.value().dislikes_idle_connections());
}

TEST(Endpoint, NeverThere) {
  EndpointOptions options;
  options.base_url = "http://127.0.0.1:9";  // discard: nothing listens
  options.type = "openai-chat";
  options.model = "m";
  options.ready_timeout_ns = 300 * kNanosPerMilli;
  const auto endpoint = open_endpoint(options, quiet, nullptr);
  ASSERT_FALSE(endpoint.ok());
  EXPECT_EQ(endpoint.error().code, ErrorCode::kEnvironment);
  EXPECT_THAT(endpoint.error().message, HasSubstr("not ready within 0.3 s (--ready-timeout)"));

  const std::atomic<bool> interrupt{true};
  options.ready_timeout_ns = 60 * kNanosPerSecond;
  EXPECT_EQ(open_endpoint(options, quiet, &interrupt).error().code, ErrorCode::kFailed);
}

TEST(Endpoint, ModelMissing) {
  TestServer server(
      [](TestServer&, const net::HttpRequest&, const std::shared_ptr<net::Exchange>& exchange) {
        exchange->respond(404, {}, "");
      });
  auto options = options_for(server);
  options.type = "openai-chat";
  const auto endpoint = open_endpoint(options, quiet, nullptr);
  ASSERT_FALSE(endpoint.ok());
  EXPECT_EQ(endpoint.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(endpoint.error().message, HasSubstr("--model: missing"));
}

TEST(Endpoint, AutoByPath) {
  auto options = EndpointOptions{};
  options.base_url = "http://127.0.0.1:9";
  options.path = "/predict";
  EXPECT_THAT(open_endpoint(options, quiet, nullptr).error().message,
              HasSubstr("name it with --endpoint-type"));
  options.path = "/api/chat/completions";
  options.ready_timeout_ns = 0;  // do not look
  options.model = "m";
  const auto endpoint = open_endpoint(options, quiet, nullptr);
  ASSERT_TRUE(endpoint.ok());
  EXPECT_EQ(endpoint.value().dialect, &openai_chat());
  EXPECT_EQ(endpoint.value().target, "/api/chat/completions");
}

}  // namespace
}  // namespace prony::load
