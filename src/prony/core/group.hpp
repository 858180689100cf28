// Group: the processes that make one run together, and what they have to agree about: barriers,
// bytes from one to all and from all to one, one clock. Rank 0 is the middle of everything, which
// is simple and quick enough for the few hundred processes that load generation takes; nothing of
// it is called while a load runs. A process alone is a group of one, for which every call is free.
// Every wait is bounded: a rank that died is an Error on the others, never a hang.
// Thread safety: one thread.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/core/result.hpp"
#include "prony/core/transport.hpp"

namespace prony::core {

/// What to add to an instant of a rank's clock to have it on rank 0's, and how wrong it may be
/// (half the shortest round trip).
struct ClockOffset {
  Nanos offset_ns = 0;
  Nanos error_ns = 0;
  Nanos t_measured_ns = 0;  // on rank 0's clock
};

class Group {
 public:
  Group() = default;  // alone
  explicit Group(std::unique_ptr<Transport> transport)
      : transport_(std::move(transport)), rank_(transport_->rank()), size_(transport_->size()) {}

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_first() const { return rank() == 0; }
  bool alone() const { return size() == 1; }

  /// Each call is made by every rank, in the same order; `timeout_ns` bounds it.
  Result<void> barrier(Nanos timeout_ns);
  /// Rank 0's bytes at every rank.
  Result<std::string> broadcast(std::string_view bytes, Nanos timeout_ns);
  /// At rank 0 the bytes of each rank, by rank; elsewhere empty.
  Result<std::vector<std::string>> gather(std::string_view bytes, Nanos timeout_ns);
  /// The largest value of all ranks, at every rank.
  Result<int64_t> all_max(int64_t value, Nanos timeout_ns);
  /// Ok everywhere if `mine` is ok everywhere; else every rank gets the error of the lowest rank
  /// that has one, with its code, and its rank in front where it is not this one.
  Result<void> agree(const Result<void>& mine, Nanos timeout_ns);
  /// One message to rank 0 from another rank, and its other end: for what is too long for gather().
  Result<void> send_to_first(std::string_view bytes, Nanos timeout_ns);
  Result<std::string> receive_from(int rank, Nanos timeout_ns);

  /// Everything has been said: ends the connection in order, when all ranks do. No call may follow.
  void leave() { transport_.reset(); }
  /// This rank cannot go on: tells the others, who wait in agree() or will. Nothing where they know
  /// already, because the error came from an agreement or from the connection.
  void fail(const Error& error, Nanos timeout_ns);
  /// The error of agree() was this rank's own or nobody else tells it: it is for this rank to
  /// print.
  bool is_speaker() const { return is_first() || !agreed_; }

  /// Rank 0 exchanges `rounds` messages with each rank and takes the quickest: at rank 0 the
  /// offset of each rank, elsewhere its own alone (at [rank()]).
  /// Source: Cristian, "Probabilistic clock synchronization", Distributed Computing 3, 1989.
  Result<std::vector<ClockOffset>> measure_clocks(int rounds, Nanos timeout_ns);

 private:
  Result<void> send(int to, std::string_view bytes, Nanos t_give_up_ns) {
    return noted(transport_->send(to, bytes, t_give_up_ns));
  }
  Result<std::string> receive(int from, Nanos t_give_up_ns) {
    return noted(transport_->receive(from, t_give_up_ns));
  }
  template <class T>
  Result<T> noted(Result<T> result) {
    failed_ = failed_ || !result.ok();
    return result;
  }
  std::unique_ptr<Transport> transport_;
  int rank_ = 0, size_ = 1;
  bool failed_ = false;  // a message could not be sent or received, or a rank said that it failed
  bool agreed_ = false;  // the failure is one that every rank knows
};

}  // namespace prony::core
