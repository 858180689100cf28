// Result<T>: a value or an Error. Bad input, a failed system call and a broken file are Results; a
// bug is PRONY_CHECK (check.hpp). The message of an Error is one line for a person: lower case, no
// full stop, names the file, line or flag, says what was found and what was expected.
// Thread safety: as the T inside. Source: the shape of C++23 std::expected, which g++ 12 lacks.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "prony/core/check.hpp"

namespace prony {

/// What kind of failure it is; the command line maps it to its exit code.
enum class ErrorCode {
  kInvalidArgument,  // bad usage or bad input: exit 2
  kEnvironment,      // the world outside failed: no file, no endpoint, no GPU: exit 3
  kFailed,           // the work itself did not succeed: exit 1
};

struct Error {
  ErrorCode code = ErrorCode::kFailed;
  std::string message;
};

inline Error invalid_argument(std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message)};
}
inline Error environment_error(std::string message) {
  return {ErrorCode::kEnvironment, std::move(message)};
}
inline Error failed(std::string message) {
  return {ErrorCode::kFailed, std::move(message)};
}

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  /// Requires ok() (checked).
  T& value() & {
    PRONY_CHECK(ok(), error_text());
    return std::get<0>(state_);
  }
  const T& value() const& {
    PRONY_CHECK(ok(), error_text());
    return std::get<0>(state_);
  }
  T&& value() && {
    PRONY_CHECK(ok(), error_text());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// Requires !ok() (checked).
  const Error& error() const {
    PRONY_CHECK(!ok(), "result holds a value");
    return std::get<1>(state_);
  }

 private:
  const char* error_text() const { return ok() ? "" : std::get<1>(state_).message.c_str(); }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit

  bool ok() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }
  /// Requires !ok() (checked).
  const Error& error() const {
    PRONY_CHECK(!ok(), "result holds a value");
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace prony
