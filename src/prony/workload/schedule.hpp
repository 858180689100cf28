// Schedule: everything a run asks for, fixed before it starts: one entry a request, numbers only. A
// driver replays it, a simulator consumes it, a file keeps it so that another tool or another day
// gets the same load. Text is made from it by PromptBuilder.
// Determinism: integers and portable math only; equal options give equal entries on every machine.
// Each random use has a Philox stream of its own (streams.hpp): another length law never moves an
// arrival, and a longer schedule begins with the shorter one.
// Thread safety: values; functions any thread.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/stats/kde.hpp"
#include "prony/workload/arrivals.hpp"
#include "prony/workload/lengths.hpp"
#include "prony/workload/time_law.hpp"
#include "prony/workload/trace.hpp"

namespace prony::workload {

/// A request of the schedule. -1 stands for "none".
struct ScheduleEntry {
  int64_t index = 0;           // place in the schedule, from 0
  int64_t t_intended_ns = 0;   // since the start of the run; turn > 0: its conversation's start
  int32_t input_tokens = 0;    // whole prompt, shared prefix and history included, >= 1
  int32_t output_tokens = 0;   // asked for, >= 1
  int64_t session = -1;        // conversation it belongs to
  int32_t turn = 0;            // turn of that conversation, from 0
  int32_t prefix_group = -1;   // entries of one group begin with the same prefix_tokens tokens
  int32_t prefix_tokens = 0;   // < input_tokens
  int32_t history_tokens = 0;  // of it: earlier prompts and answers of the session, as asked
  int32_t block_count = 0;     // ids in Schedule::blocks from first_block
  int32_t stage = -1;          // of --stages, from 0
  int64_t think_ns = 0;        // turn > 0: due so long after the turn before has ended
  int64_t first_block = 0;
  bool operator==(const ScheduleEntry&) const = default;
};

struct Schedule {
  uint64_t seed = 0;
  std::string description;  // one line for people; goes into the record's workload
  /// By rising index; t_intended_ns never falls. The turns of a session stand together, 0, 1, ...
  std::vector<ScheduleEntry> entries;
  /// Prefix blocks: prompts with equal leading ids begin with the same block_tokens tokens an id.
  std::vector<int64_t> blocks;
  int32_t block_tokens = 0;  // 0: no entry has blocks
  std::span<const int64_t> blocks_of(const ScheduleEntry& entry) const {
    return std::span(blocks).subspan(static_cast<size_t>(entry.first_block),
                                     static_cast<size_t>(entry.block_count));
  }
  /// The entry after `index` is the next turn of its conversation.
  bool has_next_turn(size_t index) const {
    return entries[index].session >= 0 && index + 1 < entries.size() &&
           entries[index + 1].session == entries[index].session;
  }
  bool has_sessions() const { return !entries.empty() && entries.front().session >= 0; }
  bool operator==(const Schedule&) const = default;

  /// FNV-1a over the numbers of all entries: two runs with one digest had the same load.
  uint64_t digest() const;
};

/// Where lengths come from: two laws drawn apart, or pairs of a trace, which keeps long prompts
/// with the answers they got.
struct LengthOptions {
  enum class Kind {
    kLaws,
    kTraceInOrder,   // entry i takes row i of the window (from the top again after the last)
    kTraceResample,  // each entry takes a row at random, with replacement
    kTraceKde,       // a smooth density of each column, drawn apart
    kTraceKdePairs,  // a smooth density of the pairs
  };
  Kind kind = Kind::kLaws;
  std::optional<LengthLaw> input, output;   // kLaws: both
  std::shared_ptr<const Trace> trace;       // the others; window as in ArrivalOptions
  stats::KdeOptions input_kde, output_kde;  // the last two
};

/// Fits lengths to a model smaller than the one they were recorded on; applied to every entry, in
/// this order. The description says so.
struct LengthScale {
  double input_factor = 1, output_factor = 1;  // > 0; rounded to the nearest integer
  int32_t input_min = 1, input_max = kTokensMax;
  int32_t output_min = 1, output_max = kTokensMax;
  int32_t total_max = 0;  // 0: none; else the prompt is cut first, then the answer
};

/// Prompts with a common beginning: each request (or conversation) joins one of `groups` at random,
/// and `tokens` shared tokens are put before its own (after scaling), as --random-prefix-len does.
struct PrefixOptions {
  int32_t groups = 0;  // 0: none
  int32_t tokens = 0;
  double zipf = 0;  // group k of 1.. is chosen in proportion to k^-zipf; 0: all alike
};

/// Conversations: each arrival starts one; its later turns come when the one before has ended.
struct SessionOptions {
  std::optional<LengthLaw> turns;  // of each; none: single requests, or the trace's conversations
  std::optional<TimeLaw> think;    // before each later turn; none: no time
  int64_t count = 0;               // conversations; 0: the other bounds
};

struct ScheduleOptions {
  uint64_t seed = 0;
  int64_t count = 0;        // requests, all turns; 0: as many as `duration_ns` or the trace gives
  int64_t duration_ns = 0;  // no arrival after it; 0: no limit
  ArrivalOptions arrivals;
  LengthOptions lengths;
  LengthScale scale;
  PrefixOptions prefix;
  SessionOptions sessions;
};

/// Most entries a schedule may have (80 bytes each).
inline constexpr int64_t kScheduleEntriesMax = 50'000'000;

/// Error: kInvalidArgument if an option is out of range, nothing bounds the schedule, the trace
/// window is empty or holds fewer rows than `count`, or no arrival falls within `duration_ns`.
Result<Schedule> generate_schedule(const ScheduleOptions& options);

/// Schedule files: JSON Lines. The first line is {"schema":"prony.schedule/1","seed":..,
/// "description":..,"count":..}, then one object an entry with the names of ScheduleEntry. Writing
/// and reading give back an equal Schedule.
std::string write_schedule_text(const Schedule& schedule);
Result<void> write_schedule(const Schedule& schedule, const std::string& path);
/// Error: kEnvironment if it cannot be read; kInvalidArgument "FILE:LINE: ..." for bad content,
/// a missing last line included.
Result<Schedule> read_schedule(const std::string& path);
Result<Schedule> parse_schedule(std::string_view content, const std::string& path);

}  // namespace prony::workload
