#include "prony/cli/interrupt.hpp"

#include <signal.h>
#include <unistd.h>

namespace prony::cli {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may set it");

struct sigaction former_int, former_term;

void on_signal(int) {
  if (interrupted.exchange(true)) ::_exit(1);  // children die with us (child_process.hpp)
}

}  // namespace

Interrupt::Interrupt() {
  interrupted = false;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &former_int);
  ::sigaction(SIGTERM, &action, &former_term);
}

Interrupt::~Interrupt() {
  ::sigaction(SIGINT, &former_int, nullptr);
  ::sigaction(SIGTERM, &former_term, nullptr);
}

const std::atomic<bool>& Interrupt::flag() const {
  return interrupted;
}

}  // namespace prony::cli
