// libprony_mpi.so: messages between ranks by MPI, with a deadline on every wait. The only source
// that knows MPI; the interface is src/prony/core/mpi_abi.hpp.
#include <mpi.h>
#include <time.h>

#include <algorithm>
#include <cstdio>

#include "prony/core/mpi_abi.hpp"

namespace {

constexpr int kTag = 1;
constexpr uint64_t kPiece = uint64_t{256} << 20;  // MPI counts in int
constexpr int64_t kSpinNs = 2'000'000;            // poll so long before sleeping between polls
constexpr int64_t kCloseNs = 120'000'000'000;     // rank 0 writes its files before it ends

int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

int fail(char* error, uint32_t size, const char* what, int result) {
  char reason[MPI_MAX_ERROR_STRING] = "no answer in time";
  int length = 0;
  if (result != MPI_SUCCESS) MPI_Error_string(result, reason, &length);
  std::snprintf(error, size, "%s: %s", what, reason);
  return 1;
}

// Calls `poll` (true: done) until it is, or until the deadline: 1 then.
template <class Poll>
int wait(int64_t t_give_up_ns, Poll&& poll) {
  const int64_t t_begin = now_ns();
  for (;;) {
    if (poll()) return 0;
    const int64_t now = now_ns();
    if (now >= t_give_up_ns) return 1;
    if (now - t_begin < kSpinNs) continue;
    const timespec pause{0, 100'000};
    nanosleep(&pause, nullptr);
  }
}

int finish(MPI_Request request, int64_t t_give_up_ns, const char* what, int peer, char* error,
           uint32_t error_size) {
  int result = MPI_SUCCESS, done = 0;
  const int late = wait(t_give_up_ns, [&] {
    result = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    return done != 0 || result != MPI_SUCCESS;
  });
  if (late == 0 && result == MPI_SUCCESS) return 0;
  char where[64];
  std::snprintf(where, sizeof where, "%s rank %d", what, peer);
  return fail(error, error_size, where, result);
}

int mpi_open(int* rank, int* size, char* error, uint32_t error_size) {
  int provided = 0;
  // Other threads run beside, none of them calls MPI.
  int result = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  if (result != MPI_SUCCESS) return fail(error, error_size, "MPI_Init_thread", result);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, rank);
  MPI_Comm_size(MPI_COMM_WORLD, size);
  return 0;
}

// A message is its length, then its bytes in pieces.
int mpi_send(int to, const char* bytes, uint64_t count, int64_t t_give_up_ns, char* error,
             uint32_t error_size) {
  MPI_Request request;
  MPI_Isend(&count, 1, MPI_UINT64_T, to, kTag, MPI_COMM_WORLD, &request);
  if (finish(request, t_give_up_ns, "send to", to, error, error_size) != 0) return 1;
  for (uint64_t at = 0; at < count; at += kPiece) {
    const int piece = static_cast<int>(std::min(kPiece, count - at));
    MPI_Isend(bytes + at, piece, MPI_BYTE, to, kTag, MPI_COMM_WORLD, &request);
    if (finish(request, t_give_up_ns, "send to", to, error, error_size) != 0) return 1;
  }
  return 0;
}

int mpi_probe(int from, uint64_t* count, int64_t t_give_up_ns, char* error, uint32_t error_size) {
  MPI_Request request;
  MPI_Irecv(count, 1, MPI_UINT64_T, from, kTag, MPI_COMM_WORLD, &request);
  return finish(request, t_give_up_ns, "receive from", from, error, error_size);
}

int mpi_receive(int from, char* bytes, uint64_t count, int64_t t_give_up_ns, char* error,
                uint32_t error_size) {
  for (uint64_t at = 0; at < count; at += kPiece) {
    const int piece = static_cast<int>(std::min(kPiece, count - at));
    MPI_Request request;
    MPI_Irecv(bytes + at, piece, MPI_BYTE, from, kTag, MPI_COMM_WORLD, &request);
    if (finish(request, t_give_up_ns, "receive from", from, error, error_size) != 0) return 1;
  }
  return 0;
}

// MPI_Finalize waits for all ranks without a bound, so a barrier with one comes before it.
void mpi_close() {
  char error[64];
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  const int64_t t_give_up = now_ns() + kCloseNs;
  if (finish(request, t_give_up, "barrier of", 0, error, sizeof error) != 0) {
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MPI_Finalize();
}

void mpi_abort(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const prony::core::MpiPlugin prony_mpi_plugin = {
    prony::core::kMpiAbiVersion, mpi_open, mpi_send, mpi_probe, mpi_receive, mpi_close, mpi_abort};
