// Log lines on stderr, one a call, "prony: level: text". For what a person may want to know while a
// command runs; results go to stdout and errors are Results. Thread safety: any thread.
#pragma once
#include <string_view>

namespace prony::core {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

void log(LogLevel level, std::string_view text);
/// Lines below `level` are dropped; kInfo at start.
void set_log_level(LogLevel level);

}  // namespace prony::core
