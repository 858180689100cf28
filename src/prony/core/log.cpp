#include "prony/core/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace prony::core {
namespace {

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

spdlog::logger& logger() {
  static const auto instance = [] {
    auto made = spdlog::stderr_color_mt("prony");
    made->set_pattern("prony: %l: %v");
    return made;
  }();
  return *instance;
}

}  // namespace

void log(LogLevel level, std::string_view text) {
  logger().log(level_of(level), spdlog::string_view_t(text.data(), text.size()));
}

void set_log_level(LogLevel level) {
  logger().set_level(level_of(level));
}

}  // namespace prony::core
