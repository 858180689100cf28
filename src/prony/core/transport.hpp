// Transport: messages between the processes of one run, in order between any two of them. What is
// behind it (MPI) is opened at run time; a Group (group.hpp) makes everything else out of it.
// Thread safety: one thread.
#pragma once
#include <string>
#include <string_view>

#include "prony/core/clock.hpp"
#include "prony/core/result.hpp"

namespace prony::core {

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Returns when `bytes` may be reused. Error: kEnvironment, when `t_give_up_ns` has come or the
  /// other process is gone.
  virtual Result<void> send(int to, std::string_view bytes, Nanos t_give_up_ns) = 0;
  /// The next message of `from`. Error: as send().
  virtual Result<std::string> receive(int from, Nanos t_give_up_ns) = 0;
};

}  // namespace prony::core
