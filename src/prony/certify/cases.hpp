// The cases of `prony certify`, in one place: for every fault of the mock what a client must make
// of it, with the public complaint that it reproduces. Adding a fault to the mock without a line
// here fails a test. Thread safety: constant tables.
#pragma once
#include <span>
#include <string_view>

#include "prony/record/request_row.hpp"

namespace prony::certify {

inline constexpr int kFaultRequests = 6;
inline constexpr int kFaultTokens = 8;  // of each answer
inline constexpr int kFaultTtftMs = 20, kFaultItlMs = 2;
/// Time-outs of the runs against a fault, so that those that hang end soon.
inline constexpr int kFirstTokenTimeoutMs = 400, kStallTimeoutMs = 250;

/// What must come out of kFaultRequests requests. Whatever the outcome, the tokens counted must be
/// those that were served, and the stamps those of the server.
struct Expect {
  record::Status status = record::Status::kOk;  // of the `failing` ones
  int failing = kFaultRequests;                 // how many have `status`; the others are ok
  int http = 200;                               // of the failing ones; 0: there is none
  record::TokenSource source = record::TokenSource::kUsage;  // of the ok ones
  bool one_at_a_time = false;                                // so that a connection is used again
  int gap_ms = 0;                                            // between the arrivals; 0: all at once
  int retries = 0;                                           // -1: any number
  bool bursty = false;                                       // flagged as buffered
  bool thinking = false;  // the first output comes after the first token
  double late_ms = 0.5;   // the median arrival may lie so long after its write
};

struct FaultCase {
  std::string_view fault;  // name in the mock's table
  std::string_view
      complaint;  // repository#number of one that it reproduces; empty: of the protocol
  Expect expect;
};

std::span<const FaultCase> fault_cases();

}  // namespace prony::certify
