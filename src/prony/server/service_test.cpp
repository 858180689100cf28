// Tests of the whole server over a scripted executor: routes, streams, limits, cancellation, drain,
// a failing device. HTTP is real (loopback); only the forward pass is not.
#include "prony/server/service.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "prony/net/http_client.hpp"
#include "prony/token/byte_tokenizer.hpp"

namespace prony::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Continues the alphabet from the last prompt token, "ab" -> c d e ..., one step a millisecond; its
// steps can be held.
class AlphabetExecutor final : public sched::Executor {
 public:
  explicit AlphabetExecutor(int depth) : depth_(depth) {}

  Capacity capacity() const override {
    return {.block_count = 64, .max_tokens_per_step = 64, .max_sequences = 4, .max_context = 256};
  }
  int depth() const override { return depth_; }
  std::string device() const override { return "emulated:alphabet"; }
  void start(sched::Handle handle, sched::RequestInput input) override {
    std::lock_guard lock(mutex_);
    PRONY_CHECK(tokens_.emplace(handle, std::move(input.prompt)).second, "handle started twice");
  }
  void finish(sched::Handle handle) override {
    std::lock_guard lock(mutex_);
    PRONY_CHECK(tokens_.erase(handle) == 1, "handle not started");
  }
  void submit(const sched::StepPlan& plan) override {
    std::lock_guard lock(mutex_);
    std::vector<sched::SampledToken> step;
    for (const auto& row : plan.rows) {
      auto& tokens = tokens_.at(row.handle);
      if (!row.samples) continue;
      PRONY_CHECK(static_cast<size_t>(row.first_position + row.token_count) == tokens.size(),
                  "the row does not reach the last known token");
      const int32_t last = tokens.back();
      tokens.push_back(last >= 'a' && last < 'z' ? last + 1 : 'a');
      step.push_back({.handle = row.handle, .token = tokens.back(), .logprob = -1.0F});
    }
    steps_.push_back({plan.step, std::move(step)});
  }
  Result<sched::StepResult> wait() override {
    std::unique_lock lock(mutex_);
    resume_.wait(lock, [this] { return !held_; });
    clock_.sleep_until(clock_.now_ns() + core::kNanosPerMilli);
    if (broken_) return environment_error("the device fell off the bus");
    PRONY_CHECK(!steps_.empty());
    current_ = std::move(steps_.front());
    steps_.erase(steps_.begin());
    return sched::StepResult{current_.first, current_.second};
  }

  void hold(bool held) {
    {
      std::lock_guard lock(mutex_);
      held_ = held;
    }
    resume_.notify_all();
  }
  void break_down() {
    std::lock_guard lock(mutex_);
    broken_ = true;
  }
  size_t live() {
    std::lock_guard lock(mutex_);
    return tokens_.size();
  }

 private:
  const int depth_;
  core::MonotonicClock clock_;
  std::mutex mutex_;
  std::condition_variable resume_;
  std::map<sched::Handle, std::vector<int32_t>> tokens_;
  std::vector<std::pair<uint64_t, std::vector<sched::SampledToken>>> steps_;
  std::pair<uint64_t, std::vector<sched::SampledToken>> current_;
  bool held_ = false, broken_ = false;
};

class ServiceTest : public ::testing::TestWithParam<int> {
 protected:
  ServiceTest() : executor_(GetParam()) {
    ServiceOptions options;
    options.model_name = "alphabet";
    options.version = "test";
    options.max_waiting = 2;
    options.scheduler = sched::options_for(executor_);
    service_ =
        Service::create(loop_, executor_, tokenizer_, chat_, clock_, options, [this](const Error&) {
          failed_ = true;
        }).value();
    url_ = net::parse_url(fmt::format("http://127.0.0.1:{}", service_->port()), "--url").value();
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~ServiceTest() override {
    executor_.hold(false);
    loop_.post([this] {
      service_.reset();
      loop_.stop();
    });
    thread_.join();
  }

  net::SimpleResponse ask(const std::string& path, const std::string& body = "",
                          const net::Headers& headers = {}) {
    net::Url url = url_;
    url.path = path;
    auto response =
        net::fetch(url, body.empty() ? "GET" : "POST", body, headers, 10 * core::kNanosPerSecond);
    return response ? response.value() : net::SimpleResponse{.status = -1};
  }
  void wait_for(const std::function<bool()>& condition) {
    for (int i = 0; i < 2000 && !condition(); ++i) {
      clock_.sleep_until(clock_.now_ns() + core::kNanosPerMilli);
    }
    EXPECT_TRUE(condition());
  }

  core::MonotonicClock clock_;
  token::ByteTokenizer tokenizer_;
  token::ByteChatTemplate chat_;
  AlphabetExecutor executor_;
  net::EventLoop loop_;
  std::unique_ptr<Service> service_;
  std::atomic<bool> failed_ = false;
  net::Url url_;
  std::thread thread_;
};

TEST_P(ServiceTest, WholeCompletion) {
  const auto response =
      ask("/v1/completions", R"({"model":"alphabet","prompt":"ab","max_tokens":4})",
          {{"X-Request-Id", "r-1"}});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.prony_device, "emulated:alphabet");
  EXPECT_THAT(response.body, HasSubstr("\"id\":\"cmpl-r-1\""));
  EXPECT_THAT(response.body, HasSubstr("\"text\":\"cdef\""));
  EXPECT_THAT(response.body, HasSubstr("\"finish_reason\":\"length\""));
  // The begin marker counts.
  EXPECT_THAT(response.body, HasSubstr("\"prompt_tokens\":3,\"total_tokens\":7"));
}

TEST_P(ServiceTest, StreamedChatAsVllmWritesIt) {
  const auto response =
      ask("/v1/chat/completions",
          R"({"messages":[{"role":"user","content":"x"}],"max_tokens":3,"stream":true,
                                "stream_options":{"include_usage":true}})");
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(response.body, StartsWith("data: {\"id\":\"chatcmpl-"));
  std::vector<std::string> contents;
  size_t at = 0;
  while ((at = response.body.find("\"content\":\"", at)) != std::string::npos) {
    at += 11;
    contents.push_back(response.body.substr(at, response.body.find('"', at) - at));
  }
  EXPECT_THAT(contents, ::testing::ElementsAre("", "a", "b", "c"));
  EXPECT_THAT(response.body, HasSubstr("\"choices\":[],\"usage\":{\"prompt_tokens\":5"));
  EXPECT_THAT(response.body, ::testing::EndsWith("data: [DONE]\n\n"));
}

TEST_P(ServiceTest, ListsIdsStopAndLogprobs) {
  const auto several = ask("/v1/completions", R"({"prompt":["a","m"],"max_tokens":2})");
  EXPECT_THAT(several.body, HasSubstr("\"index\":0,\"text\":\"bc\""));
  EXPECT_THAT(several.body, HasSubstr("\"index\":1,\"text\":\"no\""));
  const auto stopped =
      ask("/v1/completions", R"({"prompt":[97],"max_tokens":20,"stop":["ef"],"logprobs":0})");
  EXPECT_THAT(stopped.body, HasSubstr("\"text\":\"bcd\""));
  EXPECT_THAT(stopped.body, HasSubstr("\"stop_reason\":\"ef\""));
  EXPECT_THAT(stopped.body, HasSubstr("\"token_logprobs\":[-1.0,"));
}

TEST_P(ServiceTest, RefusesByName) {
  const auto model = ask("/v1/completions", R"({"model":"other","prompt":"a"})");
  EXPECT_EQ(model.status, 404);
  EXPECT_THAT(model.body, HasSubstr("found 'other', this server has 'alphabet'"));
  const std::string text(300, 'a');
  const auto prompt = ask("/v1/completions", fmt::format(R"({{"prompt":"{}"}})", text));
  EXPECT_EQ(prompt.status, 400);
  EXPECT_THAT(prompt.body, HasSubstr("256 tokens, the prompt has 301"));
  const auto output = ask("/v1/completions", R"({"prompt":"a","max_tokens":1000})");
  EXPECT_EQ(output.status, 400);
  EXPECT_THAT(output.body, HasSubstr("256 tokens, but 1002 were asked for (2 in the prompt"));
  EXPECT_EQ(ask("/v1/completions", R"({"prompt":[99999]})").status, 400);
  EXPECT_EQ(ask("/v1/completions").status, 405);
  EXPECT_EQ(ask("/nowhere").status, 404);
  EXPECT_EQ(ask("/v1/chat/completions", R"({"messages":[{"role":"x","content":""}]})").status, 400);
}

TEST_P(ServiceTest, SmallRoutes) {
  EXPECT_THAT(ask("/v1/models").body, HasSubstr("\"id\":\"alphabet\""));
  EXPECT_EQ(ask("/health").status, 200);
  EXPECT_THAT(ask("/version").body, HasSubstr("\"device\":\"emulated:alphabet\""));
  EXPECT_THAT(ask("/tokenize", R"({"prompt":"ab"})").body,
              HasSubstr("\"count\":3,\"max_model_len\":256,\"tokens\":[256,97,98]"));
  EXPECT_EQ(ask("/detokenize", R"({"tokens":[97,98]})").body, R"({"prompt":"ab"})");
  ask("/v1/completions", R"({"prompt":"ab","max_tokens":4})");
  EXPECT_THAT(ask("/metrics").body,
              HasSubstr("vllm:generation_tokens_total{model_name=\"alphabet\",engine=\"0\"} 4"));
}

TEST_P(ServiceTest, QueueIsBounded) {
  executor_.hold(true);
  std::vector<std::thread> clients;
  std::atomic<int> refused = 0, served = 0;
  for (int i = 0; i < 9; ++i) {  // 4 run, 2 wait, 3 are refused
    clients.emplace_back([&] {
      const auto response = ask("/v1/completions", R"({"prompt":"a","max_tokens":2})");
      if (response.status == 503) ++refused;
      if (response.status == 200) ++served;
    });
  }
  wait_for([&] { return refused == 3; });
  executor_.hold(false);
  for (auto& client : clients) client.join();
  EXPECT_EQ(served, 6);
}

TEST_P(ServiceTest, WorkEndsWhenTheClientGoes) {
  executor_.hold(true);
  {
    net::Url url = url_;
    url.path = "/v1/completions";
    const auto gone = net::fetch(url, "POST", R"({"prompt":"a","max_tokens":200,"stream":true})",
                                 {}, 200 * core::kNanosPerMilli);
    EXPECT_FALSE(gone.ok());
  }
  EXPECT_EQ(executor_.live(), 1U);
  executor_.hold(false);
  wait_for([&] { return executor_.live() == 0; });
  EXPECT_NE(ask("/metrics").body.find("finished_reason=\"abort\"} 1"), std::string::npos);
}

TEST_P(ServiceTest, DrainAnswersWhatIsInFlight) {
  executor_.hold(true);
  std::atomic<int> status = 0;
  std::thread client(
      [&] { status = ask("/v1/completions", R"({"prompt":"a","max_tokens":2})").status; });
  wait_for([&] { return executor_.live() == 1; });
  std::atomic<bool> drained = false;
  loop_.post([&] { service_->drain([&] { drained = true; }); });
  clock_.sleep_until(clock_.now_ns() + 20 * core::kNanosPerMilli);
  EXPECT_FALSE(drained);
  executor_.hold(false);
  client.join();
  EXPECT_EQ(status, 200);
  wait_for([&] { return drained.load(); });
}

TEST_P(ServiceTest, DeviceFailureIsAnErrorForEverybody) {
  executor_.hold(true);
  std::atomic<int> status = 0;
  std::thread client(
      [&] { status = ask("/v1/completions", R"({"prompt":"a","max_tokens":2})").status; });
  wait_for([&] { return executor_.live() == 1; });
  executor_.break_down();
  executor_.hold(false);
  client.join();
  EXPECT_EQ(status, 500);
  wait_for([&] { return failed_.load(); });
  EXPECT_EQ(ask("/v1/completions", R"({"prompt":"a"})").status, 500);
}

INSTANTIATE_TEST_SUITE_P(Depth, ServiceTest, ::testing::Values(1, 2));

}  // namespace
}  // namespace prony::server
