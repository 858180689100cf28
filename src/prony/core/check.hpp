// PRONY_CHECK(condition[, message]): a programmer's assertion, on in every build. A failed check
// prints file, line, expression and message to stderr and aborts. Bad input is never a check: it is
// an Error (result.hpp). Thread safety: any thread.
#pragma once
#include <string_view>

namespace prony::core {
[[noreturn]] void check_failed(const char* file, int line, const char* expression,
                               std::string_view message = {});
}  // namespace prony::core

#define PRONY_CHECK(condition, ...)                                                           \
  do {                                                                                        \
    if (!(condition)) [[unlikely]]                                                            \
      ::prony::core::check_failed(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)
