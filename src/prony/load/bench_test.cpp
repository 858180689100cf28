// run_bench: from options and an endpoint to a record that validates, against a server in this
// process.
#include "prony/load/bench.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "prony/load/test_server.hpp"

namespace prony::load {
namespace {

using core::kNanosPerMilli;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::shared_ptr<const workload::PromptBuilder> prompts() {
  workload::PromptOptions options;
  options.salt = 5;
  auto built = workload::PromptBuilder::create(nullptr, options);
  return std::make_shared<const workload::PromptBuilder>(std::move(built).value());
}

Endpoint endpoint_of(const TestServer& server) {
  Endpoint endpoint;
  endpoint.origin = server.origin();
  endpoint.address = server.address();
  endpoint.base_url = server.url();
  endpoint.target = "/v1/chat/completions";
  endpoint.dialect = &openai_chat();
  endpoint.model = "m";
  endpoint.headers = {{"Authorization", "Bearer secret"}};
  return endpoint;
}

BenchOptions options_of(int64_t count) {
  BenchOptions options;
  options.num_prompts = count;
  options.max_concurrency = 4;
  options.input_len = "6";
  options.output_len = "3";
  options.prompt_salt = 5;
  options.server_metrics = options.gpu_telemetry = "off";  // the requests alone
  return options;
}

// Answers with three tokens, keeping what it was asked.
struct Asked {
  std::mutex mutex;
  std::vector<std::string> bodies, ids, keys;
};
TestServer::Handler three_tokens(Asked& asked) {
  return [&asked](TestServer& self, const net::HttpRequest& request,
                  const std::shared_ptr<net::Exchange>& exchange) {
    {
      const std::lock_guard lock(asked.mutex);
      asked.bodies.push_back(request.body);
      asked.ids.emplace_back(request.header("x-request-id"));
      asked.keys.emplace_back(request.header("authorization"));
    }
    self.stream(request, exchange, 4 * kNanosPerMilli, kNanosPerMilli, 3);
  };
}

TEST(Bench, RecordIsWholeAndValidates) {
  Asked asked;
  TestServer server(three_tokens(asked));
  auto options = options_of(12);
  options.num_warmups = 2;
  options.label = "x";
  options.command = {"bench", "--json"};
  int64_t shown = 0;
  const auto run = run_bench(options, endpoint_of(server), prompts(),
                             {.progress = [&shown](const LiveTotals& t) { shown = t.sent; }});
  ASSERT_TRUE(run.ok()) << run.error().message;
  const auto& record = run.value().record;
  const auto text = record::record_text(record);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(record.metrics.attempted, 12);
  EXPECT_EQ(record.metrics.completed, 12);
  EXPECT_EQ(record.metrics.output_tokens.equal, 12);
  EXPECT_EQ(record.metrics.itl_basis, "tokens");
  EXPECT_EQ(record.workload.arrival, "closed");
  EXPECT_THAT(record.workload.description, HasSubstr("closed loop of 4"));
  EXPECT_EQ(record.workload.max_concurrency, 4);
  EXPECT_EQ(record.workload.details["usage"], "final");
  EXPECT_EQ(record.system.kind, record::SystemKind::kEndpoint);
  EXPECT_EQ(record.system.endpoint_type, "openai-chat");
  EXPECT_EQ(record.client["token_events"], 36);
  EXPECT_EQ(shown, 12);
  EXPECT_FALSE(record.run.interrupted);
  EXPECT_THAT(text.value(), ::testing::Not(HasSubstr("secret")));

  EXPECT_EQ(asked.bodies.size(), 14u);  // with the warm-ups
  std::sort(asked.ids.begin(), asked.ids.end());
  EXPECT_EQ(std::unique(asked.ids.begin(), asked.ids.end()), asked.ids.end());
  std::sort(asked.bodies.begin(), asked.bodies.end());
  EXPECT_EQ(std::unique(asked.bodies.begin(), asked.bodies.end()), asked.bodies.end())
      << "no two prompts are the same";
  EXPECT_THAT(asked.keys, Contains("Bearer secret"));
  for (const auto& body : asked.bodies) {
    EXPECT_THAT(body, HasSubstr(R"("max_tokens":3,"stream":true)"));
  }
}

TEST(Bench, AnEmulatedDeviceIsNeverAMeasuredOne) {
  Asked asked;
  TestServer server(three_tokens(asked));
  auto endpoint = endpoint_of(server);
  endpoint.prony_device = "emulated:h100-sxm";
  const auto run = run_bench(options_of(2), endpoint, prompts(), {});
  EXPECT_EQ(run.value().record.system.kind, record::SystemKind::kEmulated);
  EXPECT_EQ(run.value().record.system.device, "emulated:h100-sxm");
  endpoint.server = "prony-mock";
  const auto mocked = run_bench(options_of(2), endpoint, prompts(), {});
  EXPECT_EQ(mocked.value().record.system.kind, record::SystemKind::kMock);
}

TEST(Bench, ShortAnswersAreSaid) {
  Asked asked;
  TestServer server(three_tokens(asked));
  auto options = options_of(4);
  options.output_len = "9";
  const auto run = run_bench(options, endpoint_of(server), prompts(), {});
  EXPECT_THAT(run.value().record.validity.warnings,
              Contains(HasSubstr("output tokens asked 36, got 12 (-67 %)")));
}

TEST(Bench, NothingCompletes) {
  TestServer server(
      [](TestServer&, const net::HttpRequest&, const std::shared_ptr<net::Exchange>& exchange) {
        exchange->respond(500, {}, "no");
      });
  const auto run = run_bench(options_of(4), endpoint_of(server), prompts(), {});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run.value().record.metrics.completed, 0);
  EXPECT_EQ(run.value().record.metrics.errors.at("http_5xx"), 4);
  EXPECT_EQ(run.value().record.metrics.http_errors.at("500"), 4);
  EXPECT_TRUE(record::record_text(run.value().record).ok());
}

TEST(Bench, UntilCiEndsTheRunWhenTheMetricIsKnownWellEnough) {
  Asked asked;
  TestServer server(three_tokens(asked));
  auto options = options_of(5000);
  options.until_ci = parse_until_ci("ttft_p50=50%").value();
  const auto run = run_bench(options, endpoint_of(server), prompts(), {});
  ASSERT_TRUE(run.ok()) << run.error().message;
  const auto& record = run.value().record;
  const auto& reached = record.client["until_ci"];
  EXPECT_EQ(reached["metric"], "ttft_p50");
  EXPECT_EQ(reached["reached"], true);
  EXPECT_GE(reached["n"].get<int64_t>(), 64);
  EXPECT_LT(*record.metrics.attempted, 5000);
  EXPECT_GE(*record.metrics.attempted, reached["n"].get<int64_t>());
  EXPECT_EQ(record.metrics.failed, 0);  // what was in flight went on to its end
  EXPECT_TRUE(record::record_text(record).ok());
}

TEST(Bench, UntilCiSaysWhatItReachedAtItsBound) {
  Asked asked;
  TestServer server(three_tokens(asked));
  auto options = options_of(20);
  options.until_ci = parse_until_ci("ttft_p99=1%").value();
  const auto run = run_bench(options, endpoint_of(server), prompts(), {});
  const auto& record = run.value().record;
  EXPECT_EQ(record.metrics.attempted, 20);
  EXPECT_EQ(record.client["until_ci"]["reached"], false);
  EXPECT_THAT(record.validity.warnings,
              Contains(HasSubstr("--until-ci: ttft_p99 within 1 %: not reached, 20 completed")));
}

TEST(Bench, RulesAreJudged) {
  BenchOptions options;
  record::Metrics metrics;
  metrics.attempted = 100;
  metrics.completed = 90;
  metrics.failed = 10;
  metrics.ttft_ms.n = 90;
  metrics.ttft_ms.p50 = 20;
  BenchRun run;
  options.slo = core::parse_slo("ttft_p50<=30ms,ttft_p99<=30ms").value();
  judge(options, metrics, run);
  EXPECT_THAT(run.broken_rules, IsEmpty());
  EXPECT_THAT(run.undecided_rules,
              ElementsAre("--slo ttft_p99<=30ms: got unknown (910 more samples are needed)"));
  EXPECT_FALSE(run.record.slo.is_null());

  options.slo = core::parse_slo("ttft_p50<=10ms").value();
  options.fail_if = core::parse_slo("error_rate>5%").value();
  options.max_error_rate = 0.05;
  run = {};
  judge(options, metrics, run);
  EXPECT_THAT(run.broken_rules,
              ElementsAre(HasSubstr("--slo ttft_p50<=10ms: got 20"),
                          HasSubstr("--fail-if error_rate>"), "--max-error-rate 0.05: got 0.1"));
  options.max_error_rate = 0.1;
  options.slo = {};
  options.fail_if = {};
  run = {};
  judge(options, metrics, run);
  EXPECT_THAT(run.broken_rules, IsEmpty());
}

}  // namespace
}  // namespace prony::load
