// GroupRun: one run made by several processes. Each builds the same schedule and takes every N-th
// request of it, so that the union is the same for any N; all begin at one instant, found over
// clocks that were compared; afterwards rank 0 gets every row, on its own clock, and makes the
// record of them as if one process had sent everything. Nothing is exchanged while a load runs.
// Alone, every call is free. Thread safety: one thread.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "prony/core/group.hpp"
#include "prony/core/json.hpp"
#include "prony/core/result.hpp"
#include "prony/load/bench_options.hpp"
#include "prony/load/driver.hpp"
#include "prony/record/record.hpp"
#include "prony/record/row_store.hpp"
#include "prony/workload/schedule.hpp"

namespace prony::load {

class GroupRun {
 public:
  /// `group` may be null: alone.
  explicit GroupRun(core::Group* group);
  bool alone() const { return group_->alone(); }
  bool is_first() const { return group_->is_first(); }

  /// Error: kInvalidArgument for what needs one process, or too few users for the ranks.
  Result<void> check(const BenchOptions& options, const LoadShape& shape,
                     const workload::Schedule& schedule) const;

  /// Of `total` things numbered from 0, this rank has those with number = rank (mod size), here
  /// numbered from 0 again.
  int64_t count_of(int64_t total) const;
  int64_t global(int64_t local) const { return local * group_->size() + group_->rank(); }
  std::vector<workload::ScheduleEntry> entries_of(const workload::Schedule& schedule) const;
  LoadShape shape_of(const LoadShape& shape) const;

  /// Waits until every rank is ready, and compares clocks. False: one cannot, or is gone; error()
  /// says why.
  bool wait_until_ready();
  /// Then agrees on the instant at which all begin, and waits until kStartLead before it: Driver's
  /// own. False as above.
  bool wait_for_start();
  const std::optional<Error>& error() const { return error_; }
  /// This rank's load has ended: waits until all have, at most `timeout_ns`.
  Result<void> wait_for_all(core::Nanos timeout_ns);
  /// At rank 0: all rows on its clock, meters added up; elsewhere `mine` as it is, sent to it. Sets
  /// `steal_fraction` to the largest of all ranks.
  Result<LoadResult> collect(LoadResult mine, const record::RowStore::Options& rows,
                             std::optional<double>& steal_fraction);
  /// Into the record's client.ranks, and what they void. After collect(), rank 0.
  void report(record::Record& record) const;

 private:
  struct Rank {
    core::Json facts;
    core::ClockOffset before, after;
  };
  core::Nanos offset_at(size_t rank, core::Nanos t_theirs_ns) const;
  Result<core::Nanos> agree_start();
  bool went_wrong(const Error& error);
  Result<void> measure_clocks(bool before);
  Result<void> send_rows(const LoadResult& mine);
  Result<LoadResult> merge(LoadResult mine, const record::RowStore::Options& rows);

  core::Group single_;
  core::Group* group_;
  std::vector<Rank> ranks_;
  core::Nanos t_agreed_ns_ = 0;  // the start, on this rank's clock
  std::optional<Error> error_;
};

/// Moves every stamp of the row by `by_ns`.
void shift_stamps(record::RequestRow& row, core::Nanos by_ns);

/// What a rank tells of its run besides its rows; rank 0 adds it to its own.
core::Json meters_to_json(const ClientMeters& meters);
/// Error: kEnvironment if it is not what meters_to_json() writes.
Result<void> add_meters(const core::Json& json, ClientMeters& into);

}  // namespace prony::load
