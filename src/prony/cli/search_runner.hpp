// SearchRunner: carries out the probes that load::RateSearch asks for, each a fresh schedule
// against a server that has nothing left to do for us, and judges them by load::SloEvidence.
// Thread safety: main thread.
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <string_view>

#include "prony/cli/run_flags.hpp"
#include "prony/cli/sweep_target.hpp"
#include "prony/load/bench.hpp"
#include "prony/load/rate_search.hpp"
#include "prony/load/slo_evidence.hpp"
#include "prony/record/search.hpp"

namespace prony::cli {

/// What `--find` asks for, parsed and checked before anything is started.
struct SearchPlan {
  Arguments arguments;  // as the command got them
  bool rate = true;     // false: concurrency
  load::SearchOptions options;
  bool start_given = false;
};
/// Error: kInvalidArgument naming the flag.
Result<SearchPlan> plan_search(const Arguments& arguments, const BenchFlags& flags);
record::Search make_search_document(const SearchPlan& plan, const BenchFlags& flags);
/// How many requests and how long, as far as that is known: at `level`, if that is known.
std::string search_plan_text(const SearchPlan& plan, const BenchFlags& flags,
                             std::optional<double> level);
std::string search_table(const record::Search& search);

class SearchRunner {
 public:
  using Note = std::function<void(std::string_view)>;
  SearchRunner(const SearchPlan& plan, const BenchFlags& flags, record::Search& search,
               const std::atomic<bool>& interrupt, Note note);

  /// Runs to the end of the search, an interrupt or the end of the server.
  /// Error: kEnvironment if the server never answered or a file cannot be written,
  /// kInvalidArgument for options that do not fit it.
  Result<void> run();

 private:
  Result<double> find_start();
  /// One run with these flags, kept in probes/`name`.
  Result<load::BenchRun> measure_probe(const std::vector<FlagValue>& again,
                                       const std::string& name);
  Result<void> probe(const load::ProbePlan& plan);
  void judge(const load::ProbePlan& plan, const load::BenchRun& run);
  void conclude();
  Result<void> save() const;
  void cool_down() const;
  uint64_t next_seed();

  const SearchPlan& plan_;
  const BenchFlags& flags_;
  record::Search& search_;
  const std::atomic<bool>& interrupt_;
  Note note_;
  SweepTarget target_;
  std::optional<load::RateSearch> machine_;
  std::optional<load::SloEvidence> evidence_;  // of the present level
  int64_t runs_ = 0;
};

}  // namespace prony::cli
