// MockServer over the wire: that every fault does what its line in the table says and nothing else.
// When things happen is tested on the timeline (timeline_test) and on the stamps (stamps_test).
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

constexpr int kTokens = 8;

Options quick(std::vector<std::string> faults = {}) {
  Options options;
  options.ttft_ns = 4 * kNanosPerMilli;
  options.itl_ns = kNanosPerMilli;
  options.faults = std::move(faults);
  return options;
}

class Mock {
 public:
  explicit Mock(const Options& options)
      : loop({.spin_ns = 50 * core::kNanosPerMicro}),
        server(std::move(MockServer::create(loop, options)).value()),
        request(loop, server->port()) {}

  Outcome stream() { return request.stream(kTokens); }

  net::EventLoop loop;
  std::unique_ptr<MockServer> server;
  TestRequest request;
};

std::string words(int64_t count, Text text = Text::kWords) {
  return tokens_text(text, 0, count);
}

// ---- each fault, by name

using Check = std::function<void(const Outcome&)>;

/// All of the answer arrived as without a fault: `text` of kTokens, finish, usage, end marker.
void expect_whole(const Outcome& o, const std::string& text = words(kTokens)) {
  EXPECT_TRUE(o.complete);
  EXPECT_EQ(o.status, 200);
  EXPECT_EQ(o.text, text);
  EXPECT_EQ(o.finish_reason, "length");
  EXPECT_EQ(o.usage_tokens, kTokens);
  EXPECT_TRUE(o.done);
  EXPECT_EQ(o.bad_json, 0);
  EXPECT_EQ(o.errors, 0);
}

/// Half of the tokens arrived, and nothing that ends an answer well.
void expect_half(const Outcome& o) {
  EXPECT_EQ(o.status, 200);
  EXPECT_EQ(o.text, words(kTokens / 2));
  EXPECT_EQ(o.finish_reason, "");
  EXPECT_FALSE(o.usage_tokens.has_value());
}

Check error_status(int status, const std::string& part) {
  return [=](const Outcome& o) {
    EXPECT_TRUE(o.complete);
    EXPECT_EQ(o.status, status);
    EXPECT_THAT(o.body, HasSubstr(part));
    EXPECT_THAT(o.events, IsEmpty());
  };
}

const std::map<std::string, Check>& checks() {
  static const std::map<std::string, Check> all = {
      {"role-first",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_THAT(o.events[0], HasSubstr(R"("role":"assistant","content":"")"));
       }},
      {"role-null",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_THAT(o.events[0], HasSubstr(R"("role":"assistant","content":null)"));
       }},
      {"role-always",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_THAT(o.events[5], HasSubstr(R"("role":"assistant")"));
       }},
      {"multi-token",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_THAT(o.token_ns, SizeIs(2));
       }},
      {"varied-chunks",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_THAT(o.token_ns, SizeIs(4));  // 1 + 2 + 1 + 4
       }},
      {"held-tokens",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_THAT(o.token_ns, SizeIs(6));
       }},
      {"giant-chunk",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_THAT(o.token_ns, SizeIs(2));
       }},
      {"coalesced",
       [](const Outcome& o) {
         expect_whole(o);
         ASSERT_THAT(o.token_ns, SizeIs(kTokens));
         EXPECT_EQ(o.token_ns[0], o.token_ns[3]);
       }},
      {"reasoning",
       [](const Outcome& o) {
         expect_whole(o, words(kTokens).substr(words(kTokens / 2).size()));
         EXPECT_EQ(o.reasoning, words(kTokens / 2));
         EXPECT_THAT(o.events[1], HasSubstr(R"("reasoning":)"));
       }},
      {"reasoning-content",
       [](const Outcome& o) {
         EXPECT_EQ(o.reasoning + o.text, words(kTokens));
         EXPECT_THAT(o.events[1], HasSubstr(R"("reasoning_content":)"));
       }},
      {"tool-call",
       [](const Outcome& o) {
         EXPECT_EQ(o.tool_arguments, words(kTokens));
         EXPECT_EQ(o.text, "");
         EXPECT_EQ(o.finish_reason, "tool_calls");
         EXPECT_THAT(o.token_ns, SizeIs(2));
       }},
      {"empty-events",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_EQ(o.events.size(), 1U + 2 * kTokens - 1 + 2);
       }},
      {"empty-first",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_EQ(o.events.size(), 3U + 1 + kTokens + 2);
       }},
      {"progress",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_THAT(o.events[0], HasSubstr("prompt_progress"));
       }},
      {"late-head",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_GE(o.t_head_ns, o.t_send_ns + 4 * kNanosPerMilli);  // never early
       }},
      {"error-first",
       [](const Outcome& o) {
         EXPECT_TRUE(o.complete && o.done);
         EXPECT_THAT(o.events, SizeIs(1));
         EXPECT_EQ(o.errors, 1);
       }},
      {"error-mid",
       [](const Outcome& o) {
         expect_half(o);
         EXPECT_TRUE(o.complete && o.done);
         EXPECT_EQ(o.errors, 1);
       }},
      {"error-mid-no-done",
       [](const Outcome& o) {
         expect_half(o);
         EXPECT_TRUE(o.complete && !o.done);
         EXPECT_EQ(o.errors, 1);
       }},
      {"error-field",
       [](const Outcome& o) {
         expect_half(o);
         EXPECT_TRUE(o.complete && !o.done);
         ASSERT_THAT(o.other_fields, SizeIs(1));
         EXPECT_THAT(o.other_fields[0], StartsWith("error:{"));
       }},
      {"abort-finish",
       [](const Outcome& o) {
         EXPECT_EQ(o.text, words(kTokens / 2));
         EXPECT_EQ(o.finish_reason, "abort");
         EXPECT_TRUE(o.complete && o.done);
       }},
      {"eof-mid",
       [](const Outcome& o) {
         expect_half(o);
         EXPECT_TRUE(o.complete && !o.done);
       }},
      {"close-mid",
       [](const Outcome& o) {
         expect_half(o);
         ASSERT_TRUE(o.error.has_value());
         EXPECT_EQ(o.error->kind, net::NetErrorKind::kClosed);
         EXPECT_THAT(o.error->message, HasSubstr("closed by the peer"));
       }},
      {"close-in-event",
       [](const Outcome& o) {
         expect_half(o);
         ASSERT_TRUE(o.error.has_value());
         EXPECT_THAT(o.body, ::testing::Not(::testing::EndsWith("\n")));
       }},
      {"reset-mid",
       [](const Outcome& o) {
         ASSERT_TRUE(o.error.has_value());
         EXPECT_THAT(o.error->message, HasSubstr("reset"));
       }},
      {"zero-tokens",
       [](const Outcome& o) {
         EXPECT_TRUE(o.complete && o.done);
         EXPECT_EQ(o.text, "");
         EXPECT_EQ(o.finish_reason, "stop");
         EXPECT_EQ(o.usage_tokens, 0);
       }},
      {"done-only",
       [](const Outcome& o) {
         EXPECT_TRUE(o.complete && o.done);
         EXPECT_THAT(o.events, IsEmpty());
       }},
      {"empty-body",
       [](const Outcome& o) {
         EXPECT_TRUE(o.complete && !o.done);
         EXPECT_EQ(o.status, 200);
         EXPECT_EQ(o.content_type, "text/event-stream");
         EXPECT_EQ(o.body, "");
       }},
      {"stall",
       [](const Outcome& o) {
         expect_half(o);
         EXPECT_TRUE(o.silent);
       }},
      {"no-first-token",
       [](const Outcome& o) {
         EXPECT_TRUE(o.silent);
         EXPECT_EQ(o.status, 200);
         EXPECT_THAT(o.events, SizeIs(1));
         EXPECT_EQ(o.text, "");
       }},
      {"hang",
       [](const Outcome& o) {
         EXPECT_TRUE(o.silent);
         EXPECT_EQ(o.status, 0);
       }},
      {"503",
       [](const Outcome& o) {
         error_status(503, R"({"error":{"message":)")(o);
         EXPECT_EQ(o.retry_after, "1");
       }},
      {"503-fifth", [](const Outcome& o) { expect_whole(o); }},
      {"loading", error_status(503, "Loading model")},
      {"429",
       [](const Outcome& o) {
         error_status(429, "rate limit")(o);
         EXPECT_EQ(o.retry_after, "2");
       }},
      {"400", error_status(400, R"({"error":{"message":)")},
      {"400-flat", error_status(400, R"({"object":"error","message":)")},
      {"404", error_status(404, R"("code":404)")},
      {"500", error_status(500, R"("code":500)")},
      {"json-200",
       [](const Outcome& o) {
         error_status(200, words(kTokens))(o);
         EXPECT_EQ(o.content_type, "application/json");
         EXPECT_TRUE(core::parse_json(o.body, "body").ok());
       }},
      {"html-502",
       [](const Outcome& o) {
         error_status(502, "<html>")(o);
         EXPECT_EQ(o.content_type, "text/html");
       }},
      {"html-200", error_status(200, "<html>")},
      {"not-http",
       [](const Outcome& o) {
         ASSERT_TRUE(o.error.has_value());
         EXPECT_EQ(o.error->kind, net::NetErrorKind::kProtocol);
       }},
      {"short-body",
       [](const Outcome& o) {
         ASSERT_TRUE(o.error.has_value());
         EXPECT_EQ(o.error->kind, net::NetErrorKind::kClosed);
         EXPECT_TRUE(o.error->response_started);
       }},
      {"close-after", [](const Outcome& o) { expect_whole(o); }},
      {"close-announced",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_FALSE(o.reusable);
       }},
      {"close-on-reuse", [](const Outcome& o) { expect_whole(o); }},
      {"idle-close", [](const Outcome& o) { expect_whole(o); }},
      {"short-answer",
       [](const Outcome& o) {
         EXPECT_EQ(o.text, words(kTokens / 2));
         EXPECT_EQ(o.finish_reason, "stop");
         EXPECT_EQ(o.usage_events, 0);
         EXPECT_TRUE(o.complete && o.done);
       }},
      {"usage-absent",
       [](const Outcome& o) {
         EXPECT_EQ(o.text, words(kTokens));
         EXPECT_EQ(o.usage_events, 0);
         EXPECT_TRUE(o.complete && o.done);
       }},
      {"usage-unasked", [](const Outcome& o) { expect_whole(o); }},
      {"usage-every-chunk",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_EQ(o.usage_events, kTokens + 2);  // role and finish too
       }},
      {"usage-null",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_EQ(o.usage_nulls, kTokens + 2);
         EXPECT_EQ(o.usage_events, 1);
       }},
      {"usage-with-finish",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_EQ(o.usage_events, 1);
         EXPECT_EQ(o.events.size(), kTokens + 2U);
       }},
      {"text-with-finish",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_EQ(o.events.size(), kTokens + 2U);
       }},
      {"no-finish",
       [](const Outcome& o) {
         EXPECT_EQ(o.text, words(kTokens));
         EXPECT_EQ(o.finish_reason, "");
         EXPECT_TRUE(o.complete && o.done);
       }},
      {"no-done",
       [](const Outcome& o) {
         EXPECT_EQ(o.finish_reason, "length");
         EXPECT_TRUE(o.complete && !o.done);
       }},
      {"no-done-hang",
       [](const Outcome& o) {
         EXPECT_EQ(o.finish_reason, "length");
         EXPECT_TRUE(o.silent && !o.done);
       }},
      {"crlf",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_THAT(o.body, HasSubstr("\r\n\r\ndata: [DONE]\r\n\r\n"));
       }},
      {"cr",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_EQ(o.body.find('\n'), std::string::npos);
       }},
      {"no-space",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_THAT(o.body, StartsWith("data:{"));
       }},
      {"multi-line",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_THAT(o.events[0], HasSubstr(",\n"));
       }},
      {"bom",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_THAT(o.body, StartsWith("\xEF\xBB\xBF"));
       }},
      {"fields",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_THAT(o.body, StartsWith("event: message\nid: 0\nretry: 3000\ndata: {"));
       }},
      {"pings",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_EQ(o.comments, 3 + 1);
       }},
      {"no-final-blank",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_TRUE(o.unterminated);
       }},
      {"pieces-1", [](const Outcome& o) { expect_whole(o); }},
      {"pieces-3", [](const Outcome& o) { expect_whole(o); }},
      {"split-utf8", [](const Outcome& o) { expect_whole(o, words(kTokens, Text::kMultiByte)); }},
      {"multi-byte", [](const Outcome& o) { expect_whole(o, words(kTokens, Text::kMultiByte)); }},
      {"separators",
       [](const Outcome& o) {
         expect_whole(o, words(kTokens, Text::kSeparators));
         EXPECT_THAT(o.body, HasSubstr("\xE2\x80\xA8"));  // raw, not escaped
       }},
      {"hostile-text", [](const Outcome& o) { expect_whole(o, words(kTokens, Text::kMarkup)); }},
      {"huge-event",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_GT(o.largest_event, size_t{1} << 20);
       }},
      {"garbage-event",
       [](const Outcome& o) {
         EXPECT_EQ(o.text, words(kTokens));
         EXPECT_EQ(o.bad_json, 1);
         EXPECT_TRUE(o.done);
       }},
      {"no-choices",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_EQ(o.choiceless, kTokens - 1);
       }},
      {"chunk-extensions", [](const Outcome& o) { expect_whole(o); }},
      {"chunk-trailers", [](const Outcome& o) { expect_whole(o); }},
      {"raw-pieces", [](const Outcome& o) { expect_whole(o); }},
      {"until-close",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_FALSE(o.chunked || o.reusable);
       }},
      {"http-1.0",
       [](const Outcome& o) {
         expect_whole(o);
         EXPECT_FALSE(o.chunked || o.reusable);
       }},
  };
  return all;
}

class EachFault : public ::testing::TestWithParam<std::string> {};
std::vector<std::string> fault_names() {
  std::vector<std::string> names;
  for (const Fault& fault : all_faults()) names.emplace_back(fault.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Mock, EachFault, ::testing::ValuesIn(fault_names()),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); },
                               '_');
                           return name;
                         });

TEST_P(EachFault, DoesWhatItsLineSays) {
  const auto check = checks().find(GetParam());
  ASSERT_NE(check, checks().end()) << "no check for this fault";
  Mock mock(quick({GetParam()}));
  check->second(mock.stream());
}

// Each fault also on the other endpoint: it must not break off or crash, whatever it does.
TEST_P(EachFault, HoldsOnCompletionsAndWithoutAStream) {
  Mock mock(quick({GetParam()}));
  mock.request.run(R"({"prompt":"a b","max_tokens":6,"stream":true})", "/v1/completions");
  TestRequest other(mock.loop, mock.server->port());
  const Outcome whole = other.run(R"({"messages":[],"max_tokens":6})");
  EXPECT_TRUE(whole.complete || whole.silent || whole.error.has_value());
  if (whole.status == 200 && whole.complete && whole.content_type == "application/json") {
    EXPECT_TRUE(core::parse_json(whole.body, "body").ok()) << whole.body;
  }
}

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
