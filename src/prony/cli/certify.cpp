// prony certify: proves the client on this host against `prony mock`, run as a child process.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "prony/certify/certify.hpp"
#include "prony/cli/child_process.hpp"
#include "prony/cli/commands.hpp"
#include "prony/cli/flags.hpp"
#include "prony/cli/interrupt.hpp"
#include "prony/core/temporary_folder.hpp"
#include "prony/telemetry/environment.hpp"

namespace prony::cli {
namespace {

constexpr core::Nanos kReady = 10 * core::kNanosPerSecond;

class ChildMock final : public certify::RunningMock {
 public:
  ChildMock(std::unique_ptr<ChildProcess> child, std::string url)
      : child_(std::move(child)), url_(std::move(url)) {}
  const std::string& url() const override { return url_; }
  void stop() override { child_->terminate(); }

 private:
  std::unique_ptr<ChildProcess> child_;
  std::string url_;
};

certify::StartMock child_starter(const std::atomic<bool>& interrupt) {
  return [&interrupt](const std::vector<std::string>& arguments)
             -> Result<std::unique_ptr<certify::RunningMock>> {
    auto child = ChildProcess::start(arguments);
    if (!child) return child.error();
    auto url = child.value()->wait_for_line("listening on ", kReady, &interrupt);
    if (!url) return url.error();
    return std::unique_ptr<certify::RunningMock>(
        std::make_unique<ChildMock>(std::move(child).value(), std::move(url).value()));
  };
}

void list_cases() {
  for (const auto& name : certify::list_cases()) {
    fmt::print("{:<7} {:<18} {}{}\n", name.group, name.name, name.condition,
               name.complaint.empty() ? "" : " (" + name.complaint + ")");
  }
}

Result<int> certify_host(const std::vector<std::string>& only, bool json) {
  const Interrupt interrupt;
  auto scratch = core::TemporaryFolder::create();
  if (!scratch) return scratch.error();
  certify::Host host;
  host.start_mock = child_starter(interrupt.flag());
  host.scratch = scratch.value().path();
  host.interrupt = &interrupt.flag();
  if (!json) {
    host.progress = [](std::string_view name) { fmt::print(stderr, "certify: {}\n", name); };
  }
  const auto environment = telemetry::capture_environment();
  auto report = certify::certify(host, only);
  if (!report) return report.error();
  report.value().environment = environment;
  if (json) {
    const auto text = core::write_json(certify::to_json(report.value()), 2);
    if (!text) return text.error();
    fmt::print("{}\n", text.value());
  } else {
    fmt::print("{}", certify::to_table(report.value()));
  }
  return report.value().passed() ? kExitOk : kExitFailed;
}

}  // namespace

int run_certify(const Arguments& arguments) {
  std::vector<std::string> only;
  bool json = false, list = false;
  Flags flags("certify",
              "prove the client on this host: faults and loads of known truth, and a verdict each");
  flags.list("--only", only, "these cases, or the groups timing and fault; none: all")
      .toggle("--list", list, "print the cases and exit")
      .toggle("--json", json, "print the verdicts as JSON instead of a table");
  const auto outcome = flags.parse(arguments);
  if (!outcome) return report_error("certify", outcome.error());
  if (outcome.value() == Flags::Outcome::kHelp) {
    fmt::print("{}", flags.help());
    return kExitOk;
  }
  if (list) {
    list_cases();
    return kExitOk;
  }
  const auto code = certify_host(only, json);
  return code.ok() ? code.value() : report_error("certify", code.error());
}

}  // namespace prony::cli
