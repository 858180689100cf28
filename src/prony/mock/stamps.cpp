#include "prony/mock/stamps.hpp"

#include <fmt/format.h>

#include <iterator>
#include <memory>

#include "prony/core/system.hpp"
#include "prony/mock/render.hpp"

namespace prony::mock {

std::string stamps_line(const AnswerStamps& stamps) {
  std::string line = R"({"id":)";
  append_json_string(line, stamps.id);
  fmt::format_to(std::back_inserter(line), R"(,"t_received_ns":{},"writes":[)",
                 stamps.t_received_ns);
  bool first = true;
  for (const auto& [t_ns, tokens] : stamps.writes) {
    fmt::format_to(std::back_inserter(line), "{}[{},{}]", first ? "" : ",", t_ns, tokens);
    first = false;
  }
  line += R"(],"fault":)";
  append_json_string(line, stamps.fault);
  return line + "}\n";
}

Result<std::unique_ptr<StampsFile>> StampsFile::create(const std::string& path) {
  auto file = core::AtomicFile::create(path);
  if (!file) return file.error();
  return std::unique_ptr<StampsFile>(new StampsFile(std::move(file).value()));
}

StampsFile::StampsFile(core::AtomicFile file)
    : file_(std::move(file)), thread_([this] { run(); }) {}

StampsFile::~StampsFile() {
  stop();
}

void StampsFile::add(AnswerStamps stamps) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(stamps));
  }
  changed_.notify_one();
}

void StampsFile::run() {
  core::name_thread("mock-stamps");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::vector<AnswerStamps> batch = std::exchange(queue_, {});
    lock.unlock();
    for (const AnswerStamps& stamps : batch) file_.append(stamps_line(stamps));
    lock.lock();
  }
}

void StampsFile::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

Result<void> StampsFile::finish() {
  stop();
  return file_.commit();
}

}  // namespace prony::mock
