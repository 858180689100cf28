// MockServer over the wire: plain answers, routes, refusals, faults over several requests and in
// combination. Each fault alone: each_fault_test.
#include "prony/mock/mock_server.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <set>

#include "prony/core/file.hpp"
#include "prony/mock/faults.hpp"
#include "prony/mock/mock_testing.hpp"
#include "prony/mock/render.hpp"

namespace prony::mock {
namespace {

using core::kNanosPerMilli;
using core::Nanos;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(Mock, WithoutFault) {
  Mock mock(quick());
  const Outcome o = mock.stream();
  expect_whole(o);
  EXPECT_TRUE(o.reusable);
  EXPECT_EQ(o.usage_events, 1);
  EXPECT_THAT(o.token_ns, SizeIs(kTokens));
  expect_whole(mock.stream());  // the same connection again
}

TEST(Mock, CompletionsChatAndWholeAnswersAgree) {
  Mock mock(quick());
  const Outcome text =
      mock.request.run(R"({"prompt":"a b c d","max_tokens":5,"stream":true,"stream_options":)"
                       R"({"include_usage":true,"continuous_usage_stats":true}})",
                       "/v1/completions");
  EXPECT_EQ(text.text, words(5));
  EXPECT_EQ(text.usage_events, 7);
  EXPECT_THAT(text.events[0], HasSubstr(R"("object":"text_completion")"));
  EXPECT_THAT(text.events[0], HasSubstr(R"("prompt_tokens":4,"completion_tokens":1)"));
  const auto whole = core::parse_json(
      mock.request.run(R"({"messages":[{"content":"x y"}],"max_completion_tokens":5})").body, "b");
  EXPECT_EQ((*whole)["choices"][0]["message"]["content"], words(5));
  EXPECT_EQ((*whole)["usage"]["prompt_tokens"], 2);
  EXPECT_EQ((*whole)["object"], "chat.completion");
  const auto completion = core::parse_json(
      mock.request.run(R"({"prompt":[1,2,3],"max_tokens":5})", "/v1/completions").body, "b");
  EXPECT_EQ((*completion)["choices"][0]["text"], words(5));
  EXPECT_EQ((*completion)["usage"]["total_tokens"], 8);
}

TEST(Mock, TokensFlagOverridesTheRequest) {
  Options options = quick();
  options.tokens = 3;
  Mock mock(options);
  EXPECT_EQ(mock.stream().text, words(3));
}

TEST(Mock, BadRequestsAre400And404) {
  Mock mock(quick());
  for (const std::string body :
       {"", "{", "[]", "{}", R"({"messages":"x"})", R"({"messages":[],"max_tokens":0})",
        R"({"messages":[],"max_tokens":"5"})"}) {
    const Outcome o = mock.request.run(body);
    EXPECT_EQ(o.status, 400) << body;
    EXPECT_TRUE((core::parse_json(o.body, "b"))->contains("error")) << o.body;
  }
  EXPECT_EQ(mock.request.run("{}", "/v1/nothing").status, 404);
}

TEST(Mock, InfoRoutes) {
  Mock mock(quick());
  const auto get = [&](const std::string& path) {
    net::EventLoop& loop = mock.loop;
    struct Handler final : net::HttpConnection::Handler {
      void on_connected(Nanos) override { connection->send(request); }
      void on_sent(Nanos, Nanos) override {}
      void on_head(const net::ResponseHead& head, const net::ReceiveStamp&) override {
        status = head.status;
      }
      void on_body(std::string_view piece, const net::ReceiveStamp&) override { body += piece; }
      void on_complete(const net::ReceiveStamp&, bool) override { loop->stop(); }
      void on_error(const net::NetError&, const net::ReceiveStamp&) override { loop->stop(); }
      net::EventLoop* loop = nullptr;
      net::HttpConnection* connection = nullptr;
      std::string request, body;
      int status = 0;
    } handler;
    const net::Origin origin{.host = "127.0.0.1", .port = mock.server->port()};
    net::HttpConnection connection(loop, origin, {.ip = "127.0.0.1", .port = origin.port}, handler);
    handler.loop = &loop;
    handler.connection = &connection;
    handler.request = net::format_request("GET", origin, path, {}, "");
    connection.connect();
    loop.run();
    return std::pair(handler.status, handler.body);
  };
  mock.stream();
  EXPECT_EQ(get("/health").first, 200);
  EXPECT_THAT(get("/version").second, HasSubstr(R"("server":"prony-mock")"));
  EXPECT_THAT(get("/v1/models").second, HasSubstr(R"("id":"mock")"));
  const std::string metrics = get("/metrics").second;
  EXPECT_THAT(metrics, HasSubstr("vllm:generation_tokens_total{model_name=\"mock\"} 8\n"));
  EXPECT_THAT(metrics, HasSubstr("vllm:num_requests_running{model_name=\"mock\"} 0\n"));
  EXPECT_EQ(get("/nothing").first, 404);
}

// ---- faults over several requests

TEST(Mock, EveryFifthIs503AndLoadingEnds) {
  Mock fifth(quick({"503-fifth"}));
  Mock loading(quick({"loading"}));
  std::vector<int> statuses, loading_statuses;
  for (int i = 0; i < 10; ++i) {
    statuses.push_back(fifth.stream().status);
    loading_statuses.push_back(loading.stream().status);
  }
  EXPECT_THAT(statuses, ElementsAre(200, 200, 200, 200, 503, 200, 200, 200, 200, 503));
  EXPECT_THAT(loading_statuses, ElementsAre(503, 503, 503, 200, 200, 200, 200, 200, 200, 200));
}

TEST(Mock, ConnectionsAreClosedAsNamed) {
  Mock silent(quick({"close-after"}));
  EXPECT_TRUE(silent.stream().reusable);  // nothing said so
  net::Timer wait(silent.loop, [&] { silent.loop.stop(); });
  wait.arm(core::monotonic_ns() + 30 * kNanosPerMilli);
  silent.loop.run();
  EXPECT_EQ(silent.request.idle_closes, 1);

  Mock reuse(quick({"close-on-reuse"}));
  expect_whole(reuse.stream());
  const Outcome second = reuse.stream();
  ASSERT_TRUE(second.error.has_value());
  EXPECT_FALSE(second.error->response_started);

  Mock idle(quick({"idle-close"}));
  expect_whole(idle.stream());
  net::Timer longer(idle.loop, [&] { idle.loop.stop(); });
  longer.arm(core::monotonic_ns() + 400 * kNanosPerMilli);
  idle.loop.run();
  EXPECT_EQ(idle.request.idle_closes, 1);
}

// ---- composition

TEST(Faults, NamesAreUniqueAndDescribed) {
  std::set<std::string_view> names;
  for (const Fault& fault : all_faults()) {
    EXPECT_TRUE(names.insert(fault.name).second) << fault.name;
    EXPECT_FALSE(fault.summary.empty());
    EXPECT_NE(fault.parts, 0U);
    EXPECT_LE(fault.name.size(), 19U);
    EXPECT_EQ(fault.summary.find('\n'), std::string_view::npos);
  }
}

TEST(Faults, ThoseThatDecideTheSameDoNotCompose) {
  for (const auto& [a, b] :
       std::vector<std::pair<std::string, std::string>>{{"crlf", "cr"},
                                                        {"503", "stall"},
                                                        {"stall", "reset-mid"},
                                                        {"pings", "pings"},
                                                        {"multi-token", "giant-chunk"},
                                                        {"html-502", "crlf"}}) {
    const auto found = find_faults({a, b});
    ASSERT_FALSE(found.ok()) << a << " " << b;
    EXPECT_EQ(found.error().message,
              fmt::format("--fault: '{}' and '{}' cannot be combined", a, b));
    EXPECT_EQ(found.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_THAT(find_faults({"nope"}).error().message, HasSubstr("found 'nope', expected"));
}

TEST(Faults, OthersDo) {
  Mock mock(
      quick({"pieces-3", "crlf", "no-space", "bom", "pings", "role-first", "multi-token",
             "chunk-extensions", "fields", "separators", "usage-every-chunk", "close-after"}));
  const Outcome o = mock.stream();
  expect_whole(o, words(kTokens, Text::kSeparators));
  EXPECT_THAT(o.token_ns, SizeIs(2));
  EXPECT_GT(o.comments, 0);

  Mock half(quick({"crlf", "stall", "reasoning"}));
  const Outcome stalled = half.stream();
  EXPECT_TRUE(stalled.silent);
  EXPECT_EQ(stalled.reasoning, words(kTokens / 2));

  // Any two that may be combined can be served.
  const auto names = fault_names();
  int pairs = 0;
  for (size_t i = 0; i < names.size(); i += 7) {
    for (size_t j = i + 1; j < names.size(); j += 11) {
      if (!find_faults({names[i], names[j]}).ok()) continue;
      SCOPED_TRACE(names[i] + " " + names[j]);
      Mock both(quick({names[i], names[j]}));
      const Outcome end = both.stream();
      EXPECT_TRUE(end.complete || end.silent || end.error.has_value());
      ++pairs;
    }
  }
  EXPECT_GT(pairs, 20);
}

TEST(MockOptions, OutOfRange) {
  net::EventLoop loop;
  const auto message = [&](auto change) {
    Options options;
    change(options);
    return MockServer::create(loop, options).error().message;
  };
  EXPECT_EQ(message([](Options& o) { o.ttft_ns = -kNanosPerMilli; }),
            "--ttft-ms: found -1, expected >= 0");
  EXPECT_EQ(message([](Options& o) { o.tokens = 0; }), "--tokens: found 0, expected >= 1");
  EXPECT_EQ(message([](Options& o) { o.tokens_per_chunk = 0; }),
            "--tokens-per-chunk: found 0, expected >= 1");
  EXPECT_THAT(message([](Options& o) { o.stamps_path = "/nowhere/x"; }), HasSubstr("/nowhere/x"));
}

}  // namespace
}  // namespace prony::mock
