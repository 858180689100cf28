// The commands of the program, one source file each. A command parses its flags, composes modules,
// prints and returns the exit code; main.cpp lists them. Thread safety: called once, main thread.
#pragma once
#include <string>
#include <vector>

#include "prony/core/result.hpp"

namespace prony::cli {

using Arguments = std::vector<std::string>;  // after the command's name

int run_bench(const Arguments& arguments);
int run_catalog(const Arguments& arguments);
int run_certify(const Arguments& arguments);
int run_compare(const Arguments& arguments);
int run_cost(const Arguments& arguments);
int run_fit(const Arguments& arguments);
int run_audit(const Arguments& arguments);
int run_mock(const Arguments& arguments);
int run_plan(const Arguments& arguments);
int run_probe(const Arguments& arguments);
int run_predict(const Arguments& arguments);
int run_serve(const Arguments& arguments);
int run_simulate(const Arguments& arguments);

/// Exit codes of the contract: 0 success; 1 nothing completed, run invalid or a user's rule failed;
/// 2 bad usage or input; 3 the environment failed.
inline constexpr int kExitOk = 0, kExitFailed = 1, kExitUsage = 2, kExitEnvironment = 3;

/// Prints "prony COMMAND: message" on stderr and returns the code of the error's kind.
int report_error(const std::string& command, const Error& error);

}  // namespace prony::cli
