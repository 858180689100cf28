#include "prony/core/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace prony::core {

void check_failed(const char* file, int line, const char* expression, std::string_view message) {
  std::fprintf(stderr, "%s:%d: check failed: %s%s%.*s\n", file, line, expression,
               message.empty() ? "" : ": ", static_cast<int>(message.size()), message.data());
  std::abort();
}

}  // namespace prony::core
