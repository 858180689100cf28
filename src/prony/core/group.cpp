#include "prony/core/group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace prony::core {
namespace {

// Numbers travel as the bytes they are: all ranks run the same program on the same architecture.
template <class T>
std::string bytes_of(const T& value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}
template <class T>
std::optional<T> from_bytes(std::string_view bytes) {
  if (bytes.size() != sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

Error garbled(int rank) {
  return environment_error(fmt::format("rank {} sent what this build does not know", rank));
}

}  // namespace

Result<std::string> Group::broadcast(std::string_view bytes, Nanos timeout_ns) {
  const Nanos t_give_up = monotonic_ns() + timeout_ns;
  if (!is_first()) return receive(0, t_give_up);
  for (int rank = 1; rank < size(); ++rank) {
    if (auto sent = send(rank, bytes, t_give_up); !sent) return sent.error();
  }
  return std::string(bytes);
}

Result<std::vector<std::string>> Group::gather(std::string_view bytes, Nanos timeout_ns) {
  const Nanos t_give_up = monotonic_ns() + timeout_ns;
  std::vector<std::string> out;
  if (!is_first()) {
    if (auto sent = send(0, bytes, t_give_up); !sent) return sent.error();
    return out;
  }
  out.emplace_back(bytes);
  for (int rank = 1; rank < size(); ++rank) {
    auto received = receive(rank, t_give_up);
    if (!received) return received.error();
    out.push_back(std::move(received).value());
  }
  return out;
}

Result<void> Group::barrier(Nanos timeout_ns) {
  const auto max = all_max(0, timeout_ns);
  return max ? Result<void>() : Result<void>(max.error());
}

Result<int64_t> Group::all_max(int64_t value, Nanos timeout_ns) {
  const auto all = gather(bytes_of(value), timeout_ns);
  if (!all) return all.error();
  for (size_t rank = 0; rank < all.value().size(); ++rank) {
    const auto other = from_bytes<int64_t>(all.value()[rank]);
    if (!other) return garbled(static_cast<int>(rank));
    value = std::max(value, *other);
  }
  const auto max = broadcast(bytes_of(value), timeout_ns);
  if (!max) return max.error();
  const auto got = from_bytes<int64_t>(max.value());
  return got ? Result<int64_t>(*got) : Result<int64_t>(garbled(0));
}

Result<void> Group::agree(const Result<void>& mine, Nanos timeout_ns) {
  // The code as one digit, then the message; nothing where all is well.
  const std::string said =
      mine ? "" : fmt::format("{}{}", static_cast<int>(mine.error().code), mine.error().message);
  const auto all = gather(said, timeout_ns);
  if (!all) return all.error();
  std::string verdict;
  for (size_t rank = 0; rank < all.value().size(); ++rank) {
    const auto& text = all.value()[rank];
    if (text.empty()) continue;
    verdict = rank == 0 ? text : fmt::format("{}rank {}: {}", text[0], rank, text.substr(1));
    break;
  }
  const auto got = broadcast(verdict, timeout_ns);
  if (!got) return got.error();
  if (got.value().empty()) return {};
  failed_ = agreed_ = true;
  const int code = got.value()[0] - '0';
  if (code < 0 || code > static_cast<int>(ErrorCode::kFailed)) return garbled(0);
  return Error{static_cast<ErrorCode>(code), got.value().substr(1)};
}

void Group::fail(const Error& error, Nanos timeout_ns) {
  if (alone() || failed_ || !transport_) return;
  (void)agree(error, timeout_ns).ok();  // it is this error, or that of a lower rank
}

Result<void> Group::send_to_first(std::string_view bytes, Nanos timeout_ns) {
  return noted(transport_->send(0, bytes, monotonic_ns() + timeout_ns));
}

Result<std::string> Group::receive_from(int rank, Nanos timeout_ns) {
  return noted(transport_->receive(rank, monotonic_ns() + timeout_ns));
}

Result<std::vector<ClockOffset>> Group::measure_clocks(int rounds, Nanos timeout_ns) {
  const Nanos t_give_up = monotonic_ns() + timeout_ns;
  std::vector<ClockOffset> out(static_cast<size_t>(size()));
  out[0].t_measured_ns = monotonic_ns();
  if (!is_first()) {
    for (int round = 0; round < rounds; ++round) {
      if (const auto asked = receive(0, t_give_up); !asked) return asked.error();
      auto sent = send(0, bytes_of(monotonic_ns()), t_give_up);
      if (!sent) return sent.error();
    }
    const auto told = receive(0, t_give_up);
    if (!told) return told.error();
    const auto offset = from_bytes<ClockOffset>(told.value());
    if (!offset) return garbled(0);
    out[static_cast<size_t>(rank())] = *offset;
    return out;
  }
  for (int rank = 1; rank < size(); ++rank) {
    std::optional<ClockOffset> best;
    for (int round = 0; round < rounds; ++round) {
      const Nanos t_asked = monotonic_ns();
      if (auto sent = send(rank, "?", t_give_up); !sent) return sent.error();
      const auto answer = receive(rank, t_give_up);
      const Nanos t_answered = monotonic_ns();
      if (!answer) return answer.error();
      const auto theirs = from_bytes<Nanos>(answer.value());
      if (!theirs) return garbled(rank);
      const Nanos half = (t_answered - t_asked + 1) / 2;
      if (best && best->error_ns <= half) continue;
      const Nanos middle = t_asked + (t_answered - t_asked) / 2;
      best = ClockOffset{.offset_ns = middle - *theirs, .error_ns = half, .t_measured_ns = middle};
    }
    out[static_cast<size_t>(rank)] = best.value_or(ClockOffset{});
    auto sent = send(rank, bytes_of(out[static_cast<size_t>(rank)]), t_give_up);
    if (!sent) return sent.error();
  }
  return out;
}

}  // namespace prony::core
