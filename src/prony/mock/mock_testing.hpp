// For the tests of mock: one request to a MockServer through our own client, and all that came of
// it. Thread safety: loop thread.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/mock/faults.hpp"
#include "prony/mock/mock_server.hpp"
#include "prony/mock/render.hpp"
#include "prony/net/event_loop.hpp"
#include "prony/net/http_client.hpp"
#include "prony/net/sse.hpp"

namespace prony::mock {

struct Outcome {
  int status = 0;
  std::string content_type, retry_after, body;
  bool chunked = false, complete = false, reusable = false, silent = false;
  std::optional<net::NetError> error;
  std::vector<std::string> events;  // data of each event but the end marker
  std::vector<core::Nanos> event_ns;
  int comments = 0;
  std::vector<std::string> other_fields;
  bool done = false;          // the end marker
  bool unterminated = false;  // the last event had no empty line
  core::Nanos t_send_ns = 0, t_head_ns = 0;
  int idle_closes = 0;

  // From the events.
  std::string text, reasoning, tool_arguments, finish_reason;
  std::vector<int> piece_tokens;  // growth of usage.completion_tokens from event to event
  std::optional<int64_t> usage_tokens;
  int usage_events = 0, usage_nulls = 0, bad_json = 0, errors = 0, choiceless = 0;
  size_t largest_event = 0;
  std::vector<core::Nanos> token_ns;  // of token-bearing events
};

/// Reads the events as a client would.
inline void interpret(Outcome& o) {
  for (size_t i = 0; i < o.events.size(); ++i) {
    o.largest_event = std::max(o.largest_event, o.events[i].size());
    const auto parsed = core::parse_json(o.events[i], "event");
    if (!parsed) {
      ++o.bad_json;
      continue;
    }
    const core::Json& json = parsed.value();
    if (json.contains("error")) ++o.errors;
    if (json.contains("usage")) {
      if (json["usage"].is_null()) {
        ++o.usage_nulls;
      } else {
        ++o.usage_events;
        o.usage_tokens = json["usage"]["completion_tokens"].get<int64_t>();
      }
    }
    if (!json.contains("choices") || json["choices"].is_null()) {
      ++o.choiceless;
      continue;
    }
    if (json["choices"].empty()) continue;
    const core::Json& choice = json["choices"][0];
    const std::string before = o.text + o.reasoning + o.tool_arguments;
    if (choice.contains("text")) o.text += choice["text"];
    if (choice.contains("delta")) {
      const core::Json& delta = choice["delta"];
      if (delta.contains("content") && delta["content"].is_string()) o.text += delta["content"];
      for (const char* name : {"reasoning", "reasoning_content"}) {
        if (delta.contains(name)) o.reasoning += delta[name];
      }
      if (delta.contains("tool_calls")) {
        o.tool_arguments += delta["tool_calls"][0]["function"]["arguments"];
      }
    }
    if (o.text + o.reasoning + o.tool_arguments != before) o.token_ns.push_back(o.event_ns[i]);
    if (choice["finish_reason"].is_string()) o.finish_reason = choice["finish_reason"];
  }
}

class TestRequest final : net::HttpConnection::Handler, net::SseFramer::Sink {
 public:
  TestRequest(net::EventLoop& loop, uint16_t port)
      : loop_(loop),
        origin_{.host = "127.0.0.1", .port = port},
        connection_(loop, origin_, {.ip = "127.0.0.1", .port = port}, *this),
        patience_(loop, [this] { tick(); }) {}

  /// Sends on a new connection, or on the kept one, and waits for the end, or for 120 ms without
  /// anything but comments.
  Outcome run(const std::string& body, const std::string& path = "/v1/chat/completions",
              const std::string& id = "test-1") {
    outcome_ = {};
    framer_.reset();
    request_ = net::format_request("POST", origin_, path, {{"X-Request-Id", id}}, body);
    arm();
    if (connection_.connected()) {
      connection_.send(request_);
    } else {
      connection_.connect();
    }
    loop_.run();
    patience_.cancel();
    interpret(outcome_);
    return outcome_;
  }
  Outcome stream(int tokens, bool usage = true) {
    return run(R"({"model":"m","messages":[{"role":"user","content":"one two three"}],)"
               R"("max_tokens":)" +
               std::to_string(tokens) + R"(,"stream":true)" +
               (usage ? R"(,"stream_options":{"include_usage":true}})" : "}"));
  }

 private:
  void arm() {
    ticks_ = 0;
    patience_.arm(core::monotonic_ns() + 20 * core::kNanosPerMilli);
  }
  /// Many short waits and not one long: a process that was not scheduled meanwhile, on a busy
  /// machine, looks at its sockets between any two of them.
  void tick() {
    if (++ticks_ < 6) {
      return patience_.arm(core::monotonic_ns() + 20 * core::kNanosPerMilli);
    }
    outcome_.silent = true;
    connection_.close();
    loop_.stop();
  }
  void on_connected(core::Nanos) override { connection_.send(request_); }
  void on_sent(core::Nanos t_send_ns, core::Nanos) override { outcome_.t_send_ns = t_send_ns; }
  void on_head(const net::ResponseHead& head, const net::ReceiveStamp& stamp) override {
    outcome_.status = head.status;
    outcome_.content_type = head.content_type;
    outcome_.retry_after = head.retry_after;
    outcome_.chunked = head.chunked;
    outcome_.t_head_ns = stamp.kernel_ns;
    arm();
  }
  void on_body(std::string_view piece, const net::ReceiveStamp& stamp) override {
    if (!piece.starts_with(": ping")) arm();  // comments alone are silence
    outcome_.body += piece;
    stamp_ns_ = stamp.kernel_ns;
    if (outcome_.content_type == "text/event-stream") framer_.feed(piece, *this);
  }
  void on_complete(const net::ReceiveStamp&, bool reusable) override {
    framer_.finish(*this);
    outcome_.complete = true;
    outcome_.reusable = reusable;
    loop_.stop();
  }
  void on_error(const net::NetError& error, const net::ReceiveStamp&) override {
    outcome_.error = error;
    loop_.stop();
  }
  void on_idle_close() override { ++idle_closes; }
  bool on_event(const net::SseEvent& event) override {
    if (event.data == "[DONE]") {
      outcome_.done = true;
      outcome_.unterminated = !event.terminated;
      return true;
    }
    outcome_.events.emplace_back(event.data);
    outcome_.event_ns.push_back(stamp_ns_);
    return true;
  }
  void on_comment() override { ++outcome_.comments; }
  void on_other_field(std::string_view name, std::string_view value) override {
    outcome_.other_fields.push_back(std::string(name) + ":" + std::string(value));
  }

  net::EventLoop& loop_;
  net::Origin origin_;
  std::string request_;
  net::SseFramer framer_;
  Outcome outcome_;
  core::Nanos stamp_ns_ = 0;
  int ticks_ = 0;
  net::HttpConnection connection_;
  net::Timer patience_;

 public:
  int idle_closes = 0;
};

inline constexpr int kTokens = 8;

inline Options quick(std::vector<std::string> faults = {}) {
  Options options;
  options.ttft_ns = 4 * core::kNanosPerMilli;
  options.itl_ns = core::kNanosPerMilli;
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

inline std::string words(int64_t count, Text text = Text::kWords) {
  return tokens_text(text, 0, count);
}

/// All of the answer arrived as without a fault: `text` of kTokens, finish, usage, end marker.
inline void expect_whole(const Outcome& o, const std::string& text = words(kTokens)) {
  EXPECT_TRUE(o.complete);
  EXPECT_EQ(o.status, 200);
  EXPECT_EQ(o.text, text);
  EXPECT_EQ(o.finish_reason, "length");
  EXPECT_EQ(o.usage_tokens, kTokens);
  EXPECT_TRUE(o.done);
  EXPECT_EQ(o.bad_json, 0);
  EXPECT_EQ(o.errors, 0);
}

inline std::vector<std::string> fault_names() {
  std::vector<std::string> names;
  for (const Fault& fault : all_faults()) names.emplace_back(fault.name);
  return names;
}

}  // namespace prony::mock
