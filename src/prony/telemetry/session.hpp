// Session: all telemetry of one run on threads of its own, beside the load and never in its loops:
// the server's /metrics on one, host and GPUs on another. What cannot be had costs a note in the
// record, never the run.
// Thread safety: one thread; begin() and end() start and stop the others.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/core/json.hpp"
#include "prony/core/result.hpp"
#include "prony/telemetry/cross_check.hpp"
#include "prony/telemetry/gpu_sampler.hpp"
#include "prony/telemetry/host_counters.hpp"
#include "prony/telemetry/periodic.hpp"
#include "prony/telemetry/server_scraper.hpp"

namespace prony::telemetry {

struct SessionOptions {
  core::Nanos interval_ns = core::kNanosPerSecond;
  ServerScraper::Fetch fetch;     // of the server's /metrics; none: it is not asked
  bool metrics_required = false;  // the user named the URL: no answer is an error, not a note
  bool gpu = true;
  std::string nvml_library = "libnvidia-ml.so.1";
  bool endpoint_is_local = true;  // host and GPUs are also those of the server
  std::string proc = "/proc", sys = "/sys";
};

class Session {
 public:
  /// Opens what there is. Error: kEnvironment if metrics_required and there are none.
  static Result<std::unique_ptr<Session>> create(const SessionOptions& options);
  ~Session();

  /// Just before the load; `quiet`: nothing was sent before it.
  void begin(bool quiet);
  /// Just after the load.
  void end();

  struct Outcome {
    core::Json telemetry;  // the record's section
    core::Json gpus;       // the record's environment.gpus
    std::vector<std::string> warnings;
  };
  /// Requires begin() and end().
  Outcome finish(const ClientSums& client, ImpliedHits implied_hits) const;

 private:
  explicit Session(const SessionOptions& options);
  Result<void> open();
  void sample_host();
  core::Json host_json() const;
  core::Json energy_json(const ClientSums& client) const;

  SessionOptions options_;
  std::unique_ptr<ServerScraper> scraper_;
  std::unique_ptr<GpuSampler> gpus_;
  std::vector<std::string> notes_;
  HostCounters host_begin_, host_last_, host_end_;
  std::vector<Series> host_series_;
  int64_t memory_used_max_bytes_ = 0;
  core::Nanos t_begin_ns_ = 0, t_end_ns_ = 0;
  std::unique_ptr<Periodic> scraping_, sampling_;
};

/// True if `ip` is an address of this host.
bool is_local_address(const std::string& ip);

}  // namespace prony::telemetry
