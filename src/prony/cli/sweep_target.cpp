#include "prony/cli/sweep_target.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "prony/cli/bench_setup.hpp"
#include "prony/core/file.hpp"

namespace prony::cli {
namespace {

constexpr std::string_view kPort = "{port}";
// One look at a server that is starting; between two it is seen whether its process still lives.
constexpr core::Nanos kLook = 2 * core::kNanosPerSecond;

// A port that nobody listens on. Another process may take it before the server does; the server
// then says so and ends.
Result<int> free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool bound = fd >= 0 && ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  if (fd >= 0) ::close(fd);
  if (!bound) return environment_error("found no free port for a server");
  return static_cast<int>(ntohs(address.sin_port));
}

bool answers(const load::EndpointOptions& target) {
  auto once = target;
  once.ready_timeout_ns = core::kNanosPerSecond;
  const auto endpoint = load::open_endpoint(
      once, [](std::string_view) {}, nullptr);
  return endpoint.ok() || endpoint.error().code == ErrorCode::kInvalidArgument;
}

}  // namespace

Result<load::Endpoint> SweepTarget::open(BenchFlags& run) {
  const bool dead = child_ && !child_->running();
  if (dead) {
    options_.note(fmt::format("the server{} ended: {}; starting it again",
                              options_.spec.name.empty() ? "" : " '" + options_.spec.name + "'",
                              child_->last_words()));
    child_.reset();
  }
  if (!options_.spec.command.empty()) {
    if (!child_) return start_command(run);
    run.base_url = run.target.base_url = url_;
  } else if (!options_.spec.url.empty()) {
    run.base_url = run.target.base_url = options_.spec.url;
  } else if (!run.base_url) {
    if (!child_) {
      served_ = run;
      auto started = start_server(served_, *options_.interrupt);
      if (!started) return started.error();
      child_ = std::move(started).value();
    }
    run.model = served_.model;
    run.target.model = served_.target.model;
    run.target.base_url = served_.target.base_url;
    run.bench.ignore_eos = run.bench.ignore_eos || served_.bench.ignore_eos;
  }
  return load::open_endpoint(run.target, options_.note, options_.interrupt);
}

Result<load::Endpoint> SweepTarget::start_command(BenchFlags& run) {
  auto command = options_.spec.command;
  std::string url;
  if (command.find(kPort) != std::string::npos) {
    const auto port = free_port();
    if (!port) return port.error();
    for (size_t at = 0; (at = command.find(kPort, at)) != std::string::npos;) {
      command.replace(at, kPort.size(), std::to_string(port.value()));
    }
    url = fmt::format("http://127.0.0.1:{}", port.value());
  } else if (run.base_url) {
    url = *run.base_url;
    if (answers(run.target)) {
      return environment_error(fmt::format("target '{}': {} answers before its command was started",
                                           options_.spec.name, url));
    }
  }
  std::string log;
  if (!options_.log_folder.empty()) {
    if (auto made = core::make_directories(options_.log_folder); !made) return made.error();
    log = fmt::format("{}/{}{}.log", options_.log_folder, options_.spec.name,
                      starts_ == 0 ? "" : fmt::format(".{}", starts_ + 1));
  }
  ++starts_;
  auto child = ChildProcess::start_shell(command, log);
  if (!child) return child.error();
  child_ = std::move(child).value();
  if (url.empty()) {
    auto said =
        child_->wait_for_line("listening on ", options_.command_ready_ns, options_.interrupt);
    if (!said) {
      child_.reset();
      return Error{said.error().code,
                   fmt::format("target '{}': {}", options_.spec.name, said.error().message)};
    }
    url = said.value().substr(0, said.value().find(' '));
  }
  url_ = url;
  run.base_url = run.target.base_url = url;
  auto endpoint = wait_until_ready(run);
  if (!endpoint) child_.reset();
  return endpoint;
}

Result<load::Endpoint> SweepTarget::wait_until_ready(BenchFlags& run) {
  const core::Nanos deadline = core::monotonic_ns() + options_.command_ready_ns;
  while (true) {
    auto look = run.target;
    const core::Nanos left = deadline - core::monotonic_ns();
    look.ready_timeout_ns = std::clamp<core::Nanos>(left, core::kNanosPerMilli, kLook);
    auto endpoint = load::open_endpoint(
        look, [](std::string_view) {}, options_.interrupt);
    const bool final = endpoint.ok() || endpoint.error().code == ErrorCode::kInvalidArgument;
    if (final || options_.interrupt->load()) return endpoint;
    if (!child_->running()) {
      return environment_error(fmt::format("target '{}': its command ended: {}", options_.spec.name,
                                           child_->last_words()));
    }
    if (core::monotonic_ns() >= deadline) {
      return environment_error(
          fmt::format("target '{}': {}", options_.spec.name, endpoint.error().message));
    }
  }
}

}  // namespace prony::cli
