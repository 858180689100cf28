// Every fault over the wire, by name: it does what its line in the table says and nothing else.
// When things happen is tested on the timeline (timeline_test) and on the stamps (stamps_test).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>

#include "prony/mock/mock_testing.hpp"

namespace prony::mock {
namespace {

using core::kNanosPerMilli;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

using Check = std::function<void(const Outcome&)>;

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
      {"finish-error",
       [](const Outcome& o) {
         EXPECT_EQ(o.text, words(kTokens / 2));
         EXPECT_EQ(o.finish_reason, "error");
       }},
      {"done-twice", [](const Outcome& o) { expect_whole(o); }},
      {"early-hints", [](const Outcome& o) { expect_whole(o); }},
      {"ping-hang",
       [](const Outcome& o) {
         expect_half(o);
         EXPECT_TRUE(o.silent);
       }},
      {"bad-chunk",
       [](const Outcome& o) {
         EXPECT_EQ(o.text, words(kTokens / 2));
         EXPECT_TRUE(o.error.has_value());
       }},
      {"redirect",
       [](const Outcome& o) {
         EXPECT_EQ(o.status, 307);
         EXPECT_THAT(o.events, IsEmpty());
       }},
      {"close-first", [](const Outcome& o) { EXPECT_TRUE(o.error.has_value()); }},
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

}  // namespace
}  // namespace prony::mock
