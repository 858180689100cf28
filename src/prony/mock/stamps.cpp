#include "prony/mock/stamps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>

#include "prony/core/json.hpp"
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

Result<std::vector<AnswerStamps>> read_stamps(const std::string& path) {
  const auto text = core::read_file(path);
  if (!text) return text.error();
  std::vector<AnswerStamps> all;
  std::string_view rest = text.value();
  for (int line = 1; !rest.empty(); ++line) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const auto json = core::parse_json(rest.substr(0, end), fmt::format("{}:{}", path, line));
    if (!json) return json.error();
    rest.remove_prefix(std::min(rest.size(), end + 1));
    const auto& object = json.value();
    const auto bad = [&](std::string_view what) {
      return invalid_argument(fmt::format("{}:{}: expected {}", path, line, what));
    };
    const auto whole = [](const core::Json& value) { return value.is_number_integer(); };
    if (!object.is_object() || !object.contains("id") || !object["id"].is_string()) {
      return bad("an object with an id");
    }
    AnswerStamps stamps;
    stamps.id = object["id"].get<std::string>();
    if (!object.contains("t_received_ns") || !whole(object["t_received_ns"])) {
      return bad("t_received_ns, a whole number");
    }
    stamps.t_received_ns = object["t_received_ns"].get<core::Nanos>();
    if (!object.contains("writes") || !object["writes"].is_array()) return bad("writes, a list");
    for (const auto& write : object["writes"]) {
      if (!write.is_array() || write.size() != 2 || !whole(write[0]) || !whole(write[1])) {
        return bad("writes of [ns, tokens]");
      }
      stamps.writes.emplace_back(write[0].get<core::Nanos>(), write[1].get<int64_t>());
    }
    if (object.contains("fault") && object["fault"].is_string()) {
      stamps.fault = object["fault"].get<std::string>();
    }
    all.push_back(std::move(stamps));
  }
  return all;
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
