// BenchOptions: everything `prony bench` can be told, as values, with the defaults of its help; and
// the schedule that they describe. Thread safety: values; pure functions but for reading files.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"
#include "prony/core/slo.hpp"
#include "prony/load/dialect.hpp"
#include "prony/load/timeline.hpp"
#include "prony/load/until_ci.hpp"
#include "prony/load/workload_options.hpp"
#include "prony/record/row_store.hpp"
#include "prony/workload/prompt_builder.hpp"
#include "prony/workload/schedule.hpp"

namespace prony::load {

struct BenchOptions {
  // How requests arrive.
  std::optional<std::string> request_rate;  // "4", "inf"
  double burstiness = 1;
  std::optional<int64_t> max_concurrency;
  std::optional<int64_t> num_prompts;
  std::optional<double> duration_s;
  int64_t num_warmups = 0;
  uint64_t seed = 0;

  // What they ask for.
  std::string dataset = "random";  // or the kind of file: azure, mooncake, ..., schedule
  std::string dataset_path;
  std::string input_len = "256", output_len = "128";  // a number or a law
  double range_ratio = 0;                             // --random-range-ratio, for plain numbers
  int64_t prefix_len = 0, prefix_groups = 1;
  double trace_start_s = 0, trace_length_s = 0, time_scale = 1;
  bool shuffle_lengths = false;  // draw rows of the trace instead of replaying them in order
  workload::LengthScale scale;
  WorkloadOptions workload;

  // How they are written.
  std::string prompt_format = "text";   // text, ids
  std::optional<uint64_t> prompt_salt;  // unset: a fresh one
  std::string usage = "auto";           // auto, none, final, continuous, token-ids
  bool ignore_eos = false;
  std::optional<double> temperature;
  core::Json extra_body = core::Json::object();

  // How they are sent and bounded.
  Timeouts timeouts;
  double drain_s = 0;
  int64_t threads = 1;
  std::vector<int> cores;
  std::optional<int64_t> preconnect;  // unset: as many as will be needed
  std::optional<int64_t> spin_us;     // unset: learnt
  std::string scheduling = "auto";    // auto, normal

  // What is observed beside the load.
  std::string server_metrics = "auto";  // auto, off, or the URL of the server's /metrics
  double metrics_interval_s = 1;
  std::string gpu_telemetry = "auto";  // auto, off

  // What is kept and judged.
  std::string steady_state = "off";  // auto: only the steady part is measured
  std::optional<UntilCi> until_ci;   // bounded by num_prompts and duration_s
  bool save_detailed = false, save_text = false;
  /// Where the rows of a run too long for memory may lie meanwhile: the first that takes a file.
  std::vector<std::string> row_folders = record::RowStore::Options().folders;
  core::RequestSlo goodput;
  core::Slo slo, fail_if;
  std::optional<double> max_error_rate;
  std::string preset = "none";  // that the options come from
  std::string label;
  core::Json metadata = core::Json::object();
  std::vector<std::string> command;  // as given, for the record
};

/// How the load is driven, decided from request_rate and max_concurrency:
/// a rate (or a trace's own times) is an open loop; rate inf with a cap is a closed loop of so many
/// users; rate inf alone sends everything at once; neither given is a closed loop of 8.
struct LoadShape {
  bool closed_loop = false;
  bool at_once = false;      // open loop without gaps
  bool trace_times = false;  // the trace's own arrivals
  std::optional<int64_t> max_concurrency;
  std::optional<double> rate_per_s;  // on average
  std::string curve;                 // name of a rate that changes, else empty
};
/// Error: kInvalidArgument naming the flag.
Result<LoadShape> load_shape(const BenchOptions& options);

/// Error: kInvalidArgument for options out of range or a bad file, kEnvironment for a missing one.
Result<workload::Schedule> make_schedule(const BenchOptions& options, const LoadShape& shape);

/// The dialect may refuse token ids; the server may not count every chunk.
Result<BodyOptions> make_body_options(const BenchOptions& options, const Dialect& dialect,
                                      const std::string& model, bool counts_every_chunk);
const char* usage_name(UsageRequest usage);

}  // namespace prony::load
