#include "prony/mock/fault_tables.hpp"

#include <string>
#include <utility>

#include "prony/mock/render.hpp"

namespace prony::mock {
namespace {

using Facts = RequestFacts;

void whole(Plan& plan, int status, std::string body,
           std::string_view content_type = "application/json") {
  plan.whole = true;
  plan.status = status;
  plan.body = std::move(body);
  plan.content_type = content_type;
}

void busy(Plan& plan) {
  whole(plan, 503, error_body("the queue is full", "overloaded_error", 503));
  plan.headers.emplace_back("Retry-After", "1");
}

void error_503(Plan& plan, const Facts&) {
  busy(plan);
}
void error_503_fifth(Plan& plan, const Facts& facts) {
  if (facts.index % 5 == 4) busy(plan);
}
void loading(Plan& plan, const Facts& facts) {
  if (facts.index < 3) {
    whole(plan, 503, error_body("Loading model", "unavailable_error", 503));
  }
}
void error_429(Plan& plan, const Facts&) {
  whole(plan, 429, error_body("rate limit reached", "rate_limit_error", 429));
  plan.headers.emplace_back("Retry-After", "2");
}
void error_400(Plan& plan, const Facts&) {
  whole(plan, 400, error_body("the prompt is longer than the context", "BadRequestError", 400));
}
void error_400_flat(Plan& plan, const Facts&) {
  whole(plan, 400,
        R"({"object":"error","message":"the prompt is longer than the context",)"
        R"("type":"BadRequestError","param":null,"code":400})");
}
void error_404(Plan& plan, const Facts&) {
  whole(plan, 404, error_body("the model does not exist", "NotFoundError", 404));
}
void error_500(Plan& plan, const Facts&) {
  whole(plan, 500, error_body("the engine died", "InternalServerError", 500));
}
void json_200(Plan& plan, const Facts& facts) {
  Facts quiet = facts;
  quiet.stream = false;
  whole(plan, 200, Renderer(plan, quiet, "whole", "mock", 0).whole());
}
void html(Plan& plan, int status) {
  whole(plan, status, "<html><head><title>Bad gateway</title></head><body>nginx</body></html>",
        "text/html; charset=utf-8");
}
void html_502(Plan& plan, const Facts&) {
  html(plan, 502);
}
void redirect(Plan& plan, const Facts&) {
  whole(plan, 307, "");
  plan.headers.emplace_back("Location", "/v2/chat/completions");
}
void html_200(Plan& plan, const Facts&) {
  html(plan, 200);
}
void empty_body(Plan& plan, const Facts&) {
  whole(plan, 200, "", "text/event-stream");
}
void not_http(Plan& plan, const Facts&) {
  whole(plan, 200, "220 mail.example.com ESMTP ready\r\n");
  plan.raw = true;
}
void short_body(Plan& plan, const Facts&) {
  whole(plan, 200,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"id\":");
  plan.raw = true;
}
void hang(Plan& plan, const Facts&) {
  plan.never_answer = true;
}

// ---- the connection

void close_first(Plan& plan, const Facts&) {
  plan.close_unanswered = true;
}
void close_after(Plan& plan, const Facts&) {
  plan.after = After::kCloseSilently;
}
void close_announced(Plan& plan, const Facts&) {
  plan.after = After::kCloseAnnounced;
}
void close_on_reuse(Plan& plan, const Facts& facts) {
  plan.close_unanswered = facts.index_on_connection > 0;
}
void idle_close(Plan&, const Facts&) {}  // a setting of the server: see mock_server.cpp

// Failures that clients take for success or hang on: vllm#26478, vllm-omni#7058,
// #7130, #1374; guidellm#444; dynamo#3728.
constexpr Fault kFaults[] = {
    {"empty-body", kStream, "200 and an event stream without an event", empty_body},
    {"hang", kStream, "the request is read and never answered", hang},
    {"503", kStream, "always 503, with Retry-After", error_503},
    {"503-fifth", kStatus, "every fifth answer is 503", error_503_fifth},
    {"loading", kStatus, "the first three answers are 503, loading model", loading},
    {"429", kStream, "always 429, with Retry-After", error_429},
    {"400", kStream, "always 400", error_400},
    {"400-flat", kStream, "always 400, the error object flat as older vLLM had it", error_400_flat},
    {"404", kStream, "always 404", error_404},
    {"500", kStream, "always 500", error_500},
    {"json-200", kStream, "200 with one JSON document instead of a stream", json_200},
    {"html-502", kStream, "a gateway's HTML page with 502", html_502},
    {"html-200", kStream, "an HTML page with 200", html_200},
    {"redirect", kStream, "307 to another path", redirect},
    {"not-http", kStream, "the greeting of a mail server", not_http},
    {"short-body", kStream, "fewer bytes than Content-Length says, then close", short_body},
    {"close-first", kStream | kConnection, "closes instead of answering", close_first},
    {"close-after", kConnection, "closes after each answer without a word", close_after},
    {"close-announced", kConnection, "Connection: close after each answer", close_announced},
    {"close-on-reuse", kConnection, "closes when a connection is used again", close_on_reuse},
    {"idle-close", kConnection, "closes a connection that was idle for 200 ms", idle_close},
};

}  // namespace

std::span<const Fault> whole_answer_faults() {
  return kFaults;
}

}  // namespace prony::mock
