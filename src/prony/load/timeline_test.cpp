// Timeline: each status, each stamp, the counts and the merging rule, one behaviour a test.
#include "prony/load/timeline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prony/load/timeline_test_util.hpp"

namespace prony::load {
namespace {

using record::Status;
using record::TokenSource;
using ::testing::HasSubstr;

const std::string kRole = chat_chunk(R"({"role":"assistant","content":""})");
const std::string kStop = chat_chunk("{}", "stop");

TEST(TimelineOk, StampsOfAnOrdinaryStream) {
  TimelineRig rig;
  rig.timeline.on_connected(940, 950);
  rig.head(2000);
  rig.event(kRole, 3000);
  rig.event(content("a"), 4000);
  rig.event(content("b"), 5000);
  rig.event(kStop, 5500);
  rig.event(R"({"choices":[],"usage":)" + usage_json(10, 2) + "}", 5600);
  EXPECT_FALSE(rig.timeline.saw_done());
  rig.event("[DONE]", 5700);
  EXPECT_TRUE(rig.timeline.saw_done());
  const auto row = rig.complete(5800);
  EXPECT_EQ(row.index, 7);
  EXPECT_EQ(row.id, "test-7");
  EXPECT_EQ(row.status, Status::kOk);
  EXPECT_EQ(row.error, "");
  EXPECT_EQ(row.http_status, 200);
  EXPECT_EQ(row.t_intended_ns, 900);
  EXPECT_EQ(row.t_connect_begin_ns, 940);
  EXPECT_EQ(row.t_connect_ns, 950);
  EXPECT_EQ(row.t_send_ns, 1000);
  EXPECT_EQ(row.t_sent_ns, 1001);
  EXPECT_EQ(row.t_headers_ns, 2000);
  EXPECT_EQ(row.t_first_event_ns, 3000);  // the role chunk: TTFE, not TTFT
  EXPECT_EQ(row.t_first_token_ns, 4000);
  EXPECT_EQ(row.t_first_output_ns, 4000);
  EXPECT_EQ(row.t_last_token_ns, 5000);
  EXPECT_EQ(row.t_done_ns, 5700);
  EXPECT_EQ(row.t_close_ns, 5800);
  EXPECT_EQ(row.finish_reason, "stop");
  EXPECT_EQ(row.output_tokens, 2);
  EXPECT_EQ(row.prompt_tokens, 10);
  EXPECT_EQ(row.token_source, TokenSource::kUsage);
  EXPECT_TRUE(row.tokens_per_event_exact);  // two events, two tokens
  EXPECT_EQ(row.first_event_tokens, 1);
  EXPECT_EQ(row.text, "ab");
  EXPECT_EQ(row.merged_events, 0);
  EXPECT_EQ(rig.meters.token_events, 2);
}

TEST(TimelineOk, FinishReasonAloneIsAnEnd) {
  TimelineRig rig;
  rig.head();
  rig.event(content("a"), 3000);
  rig.event(chat_chunk(R"({"content":"b"})", "stop"), 4000);
  const auto row = rig.complete(5000);
  EXPECT_EQ(row.status, Status::kOk);
  EXPECT_EQ(row.t_done_ns, 4000);
  EXPECT_EQ(row.t_last_token_ns, 4000);
  EXPECT_EQ(row.output_tokens, 2);
  EXPECT_EQ(row.token_source, TokenSource::kEventCount);
  EXPECT_FALSE(row.tokens_per_event_exact);
}

TEST(TimelineOk, DoneAloneIsAnEnd) {
  TimelineRig rig;
  rig.head();
  rig.event(content("a"), 3000);
  rig.body("data: [DONE]", 4000);  // neither newline nor empty line
  EXPECT_EQ(rig.complete(4500).status, Status::kOk);
}

TEST(TimelineOk, EverythingAfterTheEndMarkerIsIgnored) {
  for (int ending = 0; ending < 4; ++ending) {
    TimelineRig rig;
    rig.head();
    rig.event(content("a"), 3000);
    rig.event("[DONE]", 4000);
    rig.event("garbage", 4100);
    rig.event(content("b"), 4200);
    EXPECT_FALSE(rig.timeline.wants_close());
    const net::NetError closed{net::NetErrorKind::kClosed, "reset", true};
    const net::NetError bad{net::NetErrorKind::kProtocol, "bad chunk", true};
    if (ending == 0) rig.timeline.on_complete(stamp_at(5000));
    if (ending == 1) rig.timeline.on_error(closed, stamp_at(5000));
    if (ending == 2) rig.timeline.on_error(bad, stamp_at(5000));
    if (ending == 3) rig.timeline.on_stopped(Status::kTimeoutStall, "stall", 5000);
    const auto row = rig.timeline.take_row();
    EXPECT_EQ(row.status, Status::kOk) << ending;
    EXPECT_EQ(row.error, "");
    EXPECT_EQ(row.text, "a");
    EXPECT_EQ(row.events.size(), 1u);
    EXPECT_EQ(row.t_close_ns, 5000);
  }
}

TEST(TimelineOk, ReasoningIsTheFirstTokenAndNotTheFirstOutput) {
  TimelineRig rig;
  rig.head();
  rig.event(kRole, 2500);
  rig.event(chat_chunk(R"({"reasoning_content":"hm","content":null})"), 3000);
  rig.event(content("42"), 6000);
  rig.event(kStop, 6100);
  const auto row = rig.complete(6200);
  EXPECT_EQ(row.t_first_token_ns, 3000);
  EXPECT_EQ(row.t_first_output_ns, 6000);
  EXPECT_EQ(row.reasoning, "hm");
  EXPECT_EQ(row.text, "42");
}

TEST(TimelineOk, ToolCallsAreOutput) {
  TimelineRig rig;
  rig.head();
  rig.event(chat_chunk(R"({"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}}]})"),
            3000);
  rig.event(chat_chunk("{}", "tool_calls"), 3100);
  const auto row = rig.complete(3200);
  EXPECT_EQ(row.status, Status::kOk);
  EXPECT_EQ(row.t_first_output_ns, 3000);
  EXPECT_EQ(row.tool_calls, "f");
}

TEST(TimelineFailed, ErrorEventAfterTokens) {
  TimelineRig rig;
  rig.head();
  rig.event(content("a"), 3000);
  rig.event(R"({"error":{"message":"boom","code":500}})", 4000);
  EXPECT_TRUE(rig.timeline.wants_close());
  const auto row = rig.finish(4100);
  EXPECT_EQ(row.status, Status::kStreamError);
  EXPECT_EQ(row.error, "error event: boom (code 500)");
  EXPECT_EQ(row.output_tokens, 1);  // they did arrive, and count in the throughput
  EXPECT_EQ(row.t_first_token_ns, 3000);
  EXPECT_FALSE(row.t_done_ns.has_value());
}

TEST(TimelineFailed, ErrorAfterFinishReasonAndBeforeDone) {
  TimelineRig rig;
  rig.head();
  rig.event(content("a"), 3000);
  rig.event(kStop, 3500);
  rig.event(R"({"error":{"message":"late"}})", 4000);
  EXPECT_EQ(rig.finish(4100).status, Status::kStreamError);
}

TEST(TimelineFailed, ErrorAndDoneInOnePiece) {
  TimelineRig rig;
  rig.head();
  rig.body("data: {\"error\":{\"message\":\"x\"}}\n\ndata: [DONE]\n\n", 3000);
  EXPECT_EQ(rig.finish(3100).status, Status::kStreamError);
}

TEST(TimelineFailed, OldLlamaCppErrorLine) {
  TimelineRig rig;
  rig.head();
  rig.event(content("a"), 3000);
  rig.body("error: {\"code\":500,\"message\":\"slot gone\"}\n\n", 4000);
  const auto row = rig.finish(4100);
  EXPECT_EQ(row.status, Status::kStreamError);
  EXPECT_EQ(row.error, "error line: slot gone");
}

TEST(TimelineFailed, AbortIsNoSuccess) {
  TimelineRig rig;
  rig.head();
  rig.event(content("a"), 3000);
  rig.event(chat_chunk("{}", "abort"), 3100);
  const auto row = rig.finish(3200);
  EXPECT_EQ(row.status, Status::kStreamError);
  EXPECT_EQ(row.finish_reason, "abort");
}

TEST(TimelineFailed, TruncatedByEveryEnding) {
  {
    TimelineRig rig;  // the HTTP body is whole, the stream is not
    rig.head();
    rig.event(content("a"), 3000);
    const auto row = rig.complete(4000);
    EXPECT_EQ(row.status, Status::kTruncated);
    EXPECT_EQ(row.output_tokens, 1);
  }
  {
    TimelineRig rig;
    rig.head();
    rig.event(content("a"), 3000);
    rig.timeline.on_error({net::NetErrorKind::kClosed, "closed by the peer", true}, stamp_at(4000));
    const auto row = rig.timeline.take_row();
    EXPECT_EQ(row.status, Status::kTruncated);
    EXPECT_EQ(row.error, "closed by the peer");
  }
  {
    TimelineRig rig;  // in the middle of an event: that is cut, not broken
    rig.head();
    rig.event(content("a"), 3000);
    rig.body("data: {\"choices\":[{\"del", 3500);
    EXPECT_EQ(rig.complete(4000).status, Status::kTruncated);
  }
  {
    TimelineRig rig;  // role chunk alone
    rig.head();
    rig.event(kRole, 3000);
    EXPECT_EQ(rig.complete(4000).status, Status::kTruncated);
  }
}

TEST(TimelineFailed, EmptyStreams) {
  {
    TimelineRig rig;
    rig.head();
    rig.event(kRole, 2500);
    rig.event(kStop, 2600);
    rig.event("[DONE]", 2700);
    const auto row = rig.complete(2800);
    EXPECT_EQ(row.status, Status::kEmpty);
    EXPECT_EQ(row.output_tokens, 0);
    EXPECT_FALSE(row.t_first_token_ns.has_value());
    EXPECT_EQ(row.t_first_event_ns, 2500);
  }
  {
    TimelineRig rig;
    rig.head();
    rig.event("[DONE]", 2700);
    EXPECT_EQ(rig.complete(2800).status, Status::kEmpty);
  }
  {
    TimelineRig rig;
    rig.head();
    EXPECT_EQ(rig.complete(2800).status, Status::kEmpty);
  }
  {
    TimelineRig rig;
    rig.head();
    rig.body(": ping\n\n", 2500);
    EXPECT_EQ(rig.complete(2800).status, Status::kEmpty);
  }
}

TEST(TimelineFailed, HttpErrors) {
  struct Case {
    int code;
    const char* body;
    Status status;
    const char* error;
  };
  for (const auto& [code, body, status, error] : std::initializer_list<Case>{
           {400, R"({"error":{"message":"too long"}})", Status::kHttp4xx, "http 400: too long"},
           {429, R"({"error":"busy"})", Status::kHttp4xx, "http 429: busy"},
           {500, "", Status::kHttp5xx, "http 500"},
           {502, "<html>bad\ngateway</html>", Status::kHttp5xx,
            "http 502: <html>bad gateway</html>"},
           {503, "data: [DONE]\n\n", Status::kHttp5xx, "http 503: data: [DONE]"},
           {204, "", Status::kNotStream, "http 204"},
           {307, "moved", Status::kNotStream, "http 307: moved"}}) {
    TimelineRig rig;
    rig.timeline.on_head(sse_head(code, "application/json"), stamp_at(2000));
    if (*body != '\0') rig.body(body, 2100);
    const auto row = rig.complete(2200);
    EXPECT_EQ(row.status, status) << code;
    EXPECT_EQ(row.error, error);
    EXPECT_EQ(row.http_status, code);
    EXPECT_FALSE(row.output_tokens.has_value());
    EXPECT_EQ(row.token_source, TokenSource::kNone);
  }
}

TEST(TimelineFailed, BigErrorBodiesAreCut) {
  TimelineRig rig;
  rig.timeline.on_head(sse_head(500, "text/plain"), stamp_at(2000));
  for (int i = 0; i < 100; ++i) rig.body(std::string(1000, 'x'), 2100 + i);
  const auto row = rig.complete(2900);
  EXPECT_LT(row.error.size(), 400u);
}

TEST(TimelineFailed, AnswersThatAreNoStream) {
  for (const char* body : {R"({"choices":[{"message":{"content":"whole answer"}}]})", "  \n[1,2]",
                           "<!doctype html><p>hello", R"({"error":"x"})"}) {
    for (const char* type : {"application/json", "text/html", "text/event-stream"}) {
      TimelineRig rig;
      rig.timeline.on_head(sse_head(200, type), stamp_at(2000));
      rig.body(body, 2500);
      EXPECT_EQ(rig.complete(3000).status, Status::kNotStream) << body << type;
    }
  }
  TimelineRig rig;
  rig.timeline.on_head(sse_head(200, "application/json"), stamp_at(2000));
  EXPECT_EQ(rig.complete(3000).status, Status::kNotStream);
}

TEST(TimelineOk, MislabelledStreamIsAStream) {
  for (const char* type : {"application/json", "text/plain", "application/octet-stream", ""}) {
    TimelineRig rig;
    rig.timeline.on_head(sse_head(200, type), stamp_at(2000));
    rig.body("\xEF\xBB\xBF\n", 2100);
    rig.event(content("a"), 3000);
    rig.event("[DONE]", 3100);
    EXPECT_EQ(rig.complete(3200).status, Status::kOk) << type;
  }
}

TEST(TimelineFailed, BrokenEvent) {
  TimelineRig rig;
  rig.head();
  rig.event(content("a"), 3000);
  rig.event(R"({"choices":[{"delta":{"content":"b"}])", 3100);
  EXPECT_TRUE(rig.timeline.wants_close());
  rig.event("[DONE]", 3200);
  const auto row = rig.finish(3300);
  EXPECT_EQ(row.status, Status::kParse);
  EXPECT_THAT(row.error, HasSubstr("event 2: an event is not JSON, found '{\"choices\""));
  EXPECT_EQ(row.output_tokens, 1);
}

TEST(TimelineFailed, OversizedEvent) {
  TimelineRig rig(openai_chat(), {.keep_text = false, .event_limit_bytes = 1000});
  rig.head();
  rig.body("data: " + std::string(2000, 'x'), 3000);
  EXPECT_EQ(rig.finish(3300).status, Status::kParse);
}

TEST(TimelineFailed, NoConnectionAndNoResponse) {
  for (const auto& [kind, status] : std::initializer_list<std::pair<net::NetErrorKind, Status>>{
           {net::NetErrorKind::kConnect, Status::kConnect},
           {net::NetErrorKind::kClosed, Status::kTruncated},
           {net::NetErrorKind::kProtocol, Status::kParse}}) {
    TimelineRig rig;
    rig.timeline.on_error({kind, "why", false}, stamp_at(2000));
    const auto row = rig.timeline.take_row();
    EXPECT_EQ(row.status, status);
    EXPECT_EQ(row.error, "why");
    EXPECT_FALSE(row.http_status.has_value());
  }
}

TEST(TimelineStopped, TimeOutsAndInterruptsKeepTokens) {
  for (const auto status : {Status::kTimeoutStall, Status::kTimeoutTotal, Status::kInterrupted,
                            Status::kUnfinished, Status::kCancelled}) {
    TimelineRig rig;
    rig.head();
    rig.event(content("a", usage_json(10, 1)), 3000);
    rig.event(content("bc", usage_json(10, 3)), 4000);
    rig.timeline.on_stopped(status, "why", 9000);
    const auto row = rig.timeline.take_row();
    EXPECT_EQ(row.status, status);
    EXPECT_EQ(row.error, "why");
    EXPECT_EQ(row.output_tokens, 3);
    EXPECT_EQ(row.token_source, TokenSource::kContinuousUsage);
    EXPECT_EQ(row.t_close_ns, 9000);
    EXPECT_FALSE(row.t_done_ns.has_value());
  }
  TimelineRig rig;  // nothing came at all
  rig.timeline.on_stopped(Status::kTimeoutTtft, "why", 9000);
  EXPECT_EQ(rig.timeline.take_row().status, Status::kTimeoutTtft);
}

TEST(TimelineStopped, AnEndedStreamWhoseBodyStaysOpenIsOk) {
  TimelineRig rig;
  rig.head();
  rig.event(content("a"), 3000);
  rig.event(kStop, 4000);
  rig.timeline.on_stopped(Status::kTimeoutStall, "why", 9000);
  EXPECT_EQ(rig.timeline.take_row().status, Status::kOk);
}

TEST(TimelineActivity, PingsDoNotHideAStall) {
  TimelineRig rig;
  EXPECT_EQ(rig.timeline.last_activity_ns(), 0);
  rig.head(2000);
  EXPECT_EQ(rig.timeline.last_activity_ns(), 2000);
  rig.event(content("a"), 3000);
  rig.body(": ping\n\n", 4000);
  EXPECT_EQ(rig.timeline.last_activity_ns(), 3000);
  rig.body("data: {\"cho", 5000);  // a part of an event is progress
  EXPECT_EQ(rig.timeline.last_activity_ns(), 5000);
  rig.event(kRole, 6000);
  EXPECT_EQ(rig.timeline.last_activity_ns(), 6000);
}

TEST(TimelineRetry, BeginAgainForgetsTheDeadConnection) {
  TimelineRig rig;
  rig.timeline.begin_again();
  rig.timeline.on_connected(1400, 1500);
  rig.timeline.on_sent(1600, 1601);
  rig.head(2000);
  rig.event(content("a"), 3000);
  rig.event("[DONE]", 3100);
  const auto row = rig.complete(3200);
  EXPECT_EQ(row.t_connect_ns, 1500);
  EXPECT_EQ(row.t_send_ns, 1600);
  EXPECT_EQ(row.status, Status::kOk);
}

TEST(TimelineMerged, EventsOfOneReadKeepOnlyTheLastStamp) {
  TimelineRig rig;  // three chunks (writes) in one read
  rig.head();
  rig.event(content("a"), 3000);
  rig.event(content("b"), 3000);
  rig.event(content("c"), 3000);
  rig.event(content("d"), 4000);
  rig.event("[DONE]", 4000);  // bears no token: "d" keeps its stamp
  const auto row = rig.complete(4000);
  EXPECT_EQ(row.merged_events, 2);
  EXPECT_EQ(rig.meters.merged_events, 2);
  EXPECT_EQ(rig.meters.token_events, 4);
}

TEST(TimelineMerged, EventsOfOneChunkWereOneWrite) {
  TimelineRig rig;
  rig.head();
  const std::string two = "data: " + content("a") + "\n\ndata: " + content("b") + "\n\n";
  rig.body(two, 3000);
  rig.body(two, 4000);
  EXPECT_EQ(rig.meters.merged_events, 0);
  rig.body(two, 4000);  // a second write in the same read: the first one's two are late
  EXPECT_EQ(rig.meters.merged_events, 2);
  rig.event("[DONE]", 4100);
  EXPECT_EQ(rig.complete(4100).merged_events, 2);
}

TEST(TimelineMerged, WithoutChunksAnyTwoEventsOfARead) {
  TimelineRig rig;
  auto head = sse_head();
  head.chunked = false;
  rig.timeline.on_head(head, stamp_at(2000));
  rig.body("data: " + content("a") + "\n\ndata: " + content("b") + "\n\n", 3000);
  rig.event(content("c"), 4000);
  rig.event("[DONE]", 4100);
  EXPECT_EQ(rig.complete(4100).merged_events, 1);
}

TEST(TimelineMerged, AReadThatGoesOnWithTheNextTokensBeginning) {
  for (const bool chunked : {true, false}) {
    for (const char* next : {"", "token", "finish"}) {
      TimelineRig rig;
      auto head = sse_head();
      head.chunked = chunked;
      rig.timeline.on_head(head, stamp_at(2000));
      const std::string second =
          "data: " + (std::string_view(next) == "finish" ? kStop : content("b")) + "\n\n";
      // The first event, then (in a write of its own, but the same read) three bytes of the next.
      rig.event(content("a"), 3000);
      rig.body(second.substr(0, 3), std::string_view(next).empty() ? 3500 : 3000);
      rig.body(second.substr(3), 4000);
      rig.event("[DONE]", 4100);
      const auto row = rig.complete(4200);
      EXPECT_EQ(row.merged_events, std::string_view(next) == "token" ? 1 : 0) << next << chunked;
    }
  }
  TimelineRig rig;  // many small writes of two events in one read: one of the two is late
  rig.head();
  const std::string both = "data: " + content("a") + "\n\ndata: " + content("b") + "\n\n";
  for (size_t at = 0; at < both.size(); at += 3) rig.body(both.substr(at, 3), 3000);
  rig.event("[DONE]", 4100);
  EXPECT_EQ(rig.complete(4200).merged_events, 1);
}

TEST(TimelineStamps, KernelAndUser) {
  TimelineRig rig;
  rig.head();
  rig.timeline.on_body("data: " + content("a") + "\n\n", stamp_at(3000, 70));
  rig.timeline.on_body("data: " + content("b") + "\n\n", stamp_at(4000, 20));
  rig.event("[DONE]", 4100);
  const auto row = rig.complete(4200);
  ASSERT_EQ(row.events.size(), 2u);
  EXPECT_EQ(row.events[0].t_kernel_ns, 3000);
  EXPECT_EQ(row.events[0].t_user_ns, 3070);
  EXPECT_EQ(row.read_lag_max_ns, 70);
  EXPECT_EQ(rig.meters.read_lag_ns.count(), 2u);
}

TEST(TimelineStamps, NoKernelStampMeansUserStampAndNoLag) {
  TimelineRig rig;
  rig.head();
  rig.timeline.on_body("data: " + content("a") + "\n\n", {3000, 3000, false});
  rig.event("[DONE]", 4100);
  const auto row = rig.complete(4200);
  EXPECT_EQ(row.t_first_token_ns, 3000);
  EXPECT_FALSE(row.read_lag_max_ns.has_value());
  EXPECT_EQ(rig.meters.unstamped_events, 1);
}

TEST(TimelineStamps, ASteppedClockCannotMoveAnArrivalBeforeItsCause) {
  TimelineRig rig;
  rig.head(2000);
  // The wall clock jumped: converted stamps lie before the head, or after we read them.
  rig.timeline.on_body("data: " + content("a") + "\n\n", {-5'000'000, 3000, true});
  rig.timeline.on_body("data: " + content("b") + "\n\n", {9'000'000, 3500, true});
  rig.event("[DONE]", 4100);
  const auto row = rig.complete(4200);
  EXPECT_EQ(row.t_first_token_ns, 3000);
  EXPECT_EQ(row.t_last_token_ns, 3500);
  EXPECT_EQ(rig.meters.stamp_faults, 2);
}

TEST(TimelineText, KeptOnlyWhenAsked) {
  TimelineRig rig(openai_chat(), {.keep_text = false});
  rig.head();
  rig.event(content("a"), 3000);
  rig.event("[DONE]", 4100);
  EXPECT_EQ(rig.complete(4200).text, "");
}

TEST(TimelineReuse, NothingLeaksIntoTheNextRequest) {
  TimelineRig rig;
  rig.head();
  rig.event(content("a", usage_json(3, 1)), 3000);
  rig.body("data: {\"half", 3100);
  rig.timeline.on_stopped(Status::kTimeoutTotal, "t", 4000);
  (void)rig.timeline.take_row();
  rig.begin();
  rig.head(5000);
  rig.event(content("b"), 6000);
  rig.event(kStop, 6100);
  const auto row = rig.complete(6200);
  EXPECT_EQ(row.status, Status::kOk);
  EXPECT_EQ(row.text, "b");
  EXPECT_EQ(row.output_tokens, 1);
  EXPECT_EQ(row.token_source, TokenSource::kEventCount);
  EXPECT_FALSE(row.prompt_tokens.has_value());
  EXPECT_EQ(row.events.size(), 1u);
}

}  // namespace
}  // namespace prony::load
