#include "prony/telemetry/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace prony::telemetry {
namespace {

using core::Json;

// In the order of Session::host_series_.
enum HostSeries : size_t { kBusy, kSteal, kMemory, kReceived, kSent, kFrequency, kCpuPower };

double share(uint64_t begin, uint64_t end, double total) {
  return end > begin && total > 0 ? std::min(1.0, static_cast<double>(end - begin) / total) : 0.0;
}
double ticks(const CpuTimes& begin, const CpuTimes& end) {
  return end.total() > begin.total() ? static_cast<double>(end.total() - begin.total()) : 0.0;
}
double bytes_per_s(uint64_t begin, uint64_t end, double seconds) {
  return end > begin ? static_cast<double>(end - begin) / seconds : 0.0;
}

}  // namespace

Session::Session(const SessionOptions& options) : options_(options) {
  const struct {
    const char *name, *unit, *source;
  } kSeries[] = {
      {"host.busy", "fraction", "/proc/stat"},
      {"host.steal", "fraction", "/proc/stat"},
      {"host.memory_used", "bytes", "/proc/meminfo"},
      {"host.network_received", "bytes/s", "/proc/net/dev"},
      {"host.network_sent", "bytes/s", "/proc/net/dev"},
      {"host.frequency", "MHz", "cpufreq"},
      {"host.cpu_power", "W", "rapl"},
  };
  for (const auto& series : kSeries)
    host_series_.emplace_back(series.name, series.unit, series.source);
}

Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::create(const SessionOptions& options) {
  std::unique_ptr<Session> session(new Session(options));
  if (auto opened = session->open(); !opened) return opened.error();
  return session;
}

Result<void> Session::open() {
  if (options_.fetch) {
    auto scraper = std::make_unique<ServerScraper>(options_.fetch);
    if (auto opened = scraper->open(); opened) {
      scraper_ = std::move(scraper);
    } else if (options_.metrics_required) {
      return environment_error("--server-metrics: " + opened.error().message);
    } else {
      notes_.push_back("server metrics: " + opened.error().message);
    }
  }
  if (!options_.gpu) return {};
  auto api = NvmlApi::open(options_.nvml_library);
  if (!api) {
    notes_.push_back("GPUs: " + api.error().message);
    return {};
  }
  auto gpus = GpuSampler::create(std::move(api).value());
  if (gpus) {
    gpus_ = std::move(gpus).value();
  } else {
    notes_.push_back("GPUs: " + gpus.error().message);
  }
  return {};
}

void Session::begin(bool quiet) {
  if (scraper_) scraper_->begin(quiet);
  host_begin_ = host_last_ = read_host_counters(options_.proc, options_.sys);
  if (gpus_) gpus_->begin();
  t_begin_ns_ = core::monotonic_ns();
  if (scraper_) {
    scraping_ =
        std::make_unique<Periodic>("scrape", options_.interval_ns, [this] { scraper_->scrape(); });
  }
  sampling_ = std::make_unique<Periodic>("telemetry", options_.interval_ns, [this] {
    sample_host();
    if (gpus_) gpus_->sample();
  });
}

void Session::end() {
  sampling_.reset();
  if (gpus_) gpus_->end();
  t_end_ns_ = core::monotonic_ns();
  sample_host();
  host_end_ = host_last_;
  scraping_.reset();
  if (scraper_) scraper_->end();
}

void Session::sample_host() {
  const auto now = read_host_counters(options_.proc, options_.sys);
  const auto& last = host_last_;
  const double seconds = static_cast<double>(now.t_ns - last.t_ns) / 1e9;
  const auto add = [&](HostSeries series, double value) {
    host_series_[series].add(now.t_ns, value);
  };
  if (now.all && last.all) {
    if (const double total = ticks(*last.all, *now.all); total > 0) {
      add(kBusy, share(last.all->busy(), now.all->busy(), total));
      add(kSteal, share(last.all->steal, now.all->steal, total));
    }
  }
  if (now.memory) {
    const auto used = now.memory->total - now.memory->available;
    memory_used_max_bytes_ = std::max(memory_used_max_bytes_, used);
    add(kMemory, static_cast<double>(used));
  }
  if (now.network && last.network && seconds > 0) {
    add(kReceived, bytes_per_s(last.network->received, now.network->received, seconds));
    add(kSent, bytes_per_s(last.network->sent, now.network->sent, seconds));
  }
  if (now.frequency_mhz) add(kFrequency, *now.frequency_mhz);
  if (const auto joules = package_joules(last, now); joules && seconds > 0) {
    add(kCpuPower, *joules / seconds);
  }
  host_last_ = now;
}

Json Session::host_json() const {
  Json json = Json::object();
  const auto &begin = host_begin_, &end = host_end_;
  const auto shares = [](const std::optional<CpuTimes>& a, const std::optional<CpuTimes>& b,
                         Json& out) {
    const double total = a && b ? ticks(*a, *b) : 0;
    out["busy"] = total > 0 ? Json(share(a->busy(), b->busy(), total)) : Json();
    out["steal"] = total > 0 ? Json(share(a->steal, b->steal, total)) : Json();
  };
  shares(begin.all, end.all, json);
  auto& cores = json["cores"] = Json::array();
  for (const auto& core : end.cores) {
    const auto before = std::find_if(begin.cores.begin(), begin.cores.end(),
                                     [&](const auto& other) { return other.core == core.core; });
    if (before == begin.cores.end()) continue;
    Json entry = {{"core", core.core}};
    shares(before->times, core.times, entry);
    cores.push_back(std::move(entry));
  }
  json["memory_total_bytes"] = end.memory ? Json(end.memory->total) : Json();
  json["memory_used_max_bytes"] = end.memory ? Json(memory_used_max_bytes_) : Json();
  const bool network = begin.network && end.network &&
                       end.network->received >= begin.network->received &&
                       end.network->sent >= begin.network->sent;
  json["network_received_bytes"] =
      network ? Json(end.network->received - begin.network->received) : Json();
  json["network_sent_bytes"] = network ? Json(end.network->sent - begin.network->sent) : Json();
  auto& energy = json["energy_j"] = Json::object();
  for (const auto& zone : end.energy) {
    if (const auto joules = zone_joules(begin, end, zone.name)) energy[zone.name] = *joules;
  }
  return json;
}

// Joules of the GPUs that worked, over the tokens that came.
Json Session::energy_json(const ClientSums& client) const {
  const auto gpus = gpus_ ? gpus_->energy() : std::vector<GpuEnergy>();
  const auto cpu = package_joules(host_begin_, host_end_);
  if (!options_.endpoint_is_local || (gpus.empty() && !cpu)) return nullptr;
  const double seconds = static_cast<double>(t_end_ns_ - t_begin_ns_) / 1e9;
  double joules = 0, idle_joules = 0;
  bool idle_known = true, from_counter = true;
  Json used = Json::array(), unused = Json::array();
  for (const auto& gpu : gpus) {
    (gpu.used ? used : unused).push_back(gpu.index);
    if (!gpu.used) continue;
    joules += gpu.joules;
    from_counter = from_counter && gpu.from_counter;
    idle_known = idle_known && gpu.idle_power_w.has_value();
    idle_joules += gpu.idle_power_w.value_or(0) * seconds;
  }
  const bool any = !used.empty();
  const auto per = [&](double energy, double tokens) {
    return tokens > 0 ? Json(energy / tokens) : Json();
  };
  const double output = static_cast<double>(client.output_tokens.value_or(0));
  const double total = client.prompt_tokens && client.output_tokens
                           ? output + static_cast<double>(*client.prompt_tokens)
                           : 0;
  Json json = Json::object();
  json["duration_s"] = seconds;
  json["gpus"] = std::move(used);
  json["gpus_idle"] = std::move(unused);
  json["gpu_j"] = any ? Json(joules) : Json();
  json["gpu_source"] = any ? Json(from_counter ? "counter" : "power") : Json();
  json["gpu_idle_share"] =
      any && idle_known && joules > 0 ? Json(std::min(1.0, idle_joules / joules)) : Json();
  json["gpu_j_per_output_token"] = any ? per(joules, output) : Json();
  json["gpu_j_per_token"] = any ? per(joules, total) : Json();
  json["cpu_j"] = cpu ? Json(*cpu) : Json();
  json["cpu_j_per_output_token"] = cpu ? per(*cpu, output) : Json();
  return json;
}

Session::Outcome Session::finish(const ClientSums& client, ImpliedHits implied_hits) const {
  Outcome out;
  auto notes = notes_;
  out.telemetry = Json::object();
  auto& json = out.telemetry;
  json["interval_s"] = static_cast<double>(options_.interval_ns) / 1e9;
  json["t_begin_ns"] = t_begin_ns_;
  json["t_end_ns"] = t_end_ns_;
  json["endpoint_is_local"] = options_.endpoint_is_local;
  if (!options_.endpoint_is_local) {
    notes.push_back("the endpoint is on another host: host and GPUs below are the client's own");
  }
  Json series = Json::array();
  const auto append = [&](std::vector<Json> more) {
    for (auto& one : more) series.push_back(std::move(one));
  };
  if (scraper_) {
    append(scraper_->series_json());
    auto server = scraper_->summary_json();
    if (const auto differences = scraper_->differences()) {
      auto check = cross_check(*differences, client, implied_hits);
      server.update(check.json);
      out.warnings = std::move(check.warnings);
    } else {
      out.warnings.push_back("the server's /metrics could not be read before and after the run: " +
                             scraper_->first_error());
    }
    if (!scraper_->first_error().empty()) {
      notes.push_back("server metrics: a scrape failed: " + scraper_->first_error());
    }
    json["server"] = std::move(server);
  }
  for (const auto& one : host_series_) {
    if (one.count() > 0) series.push_back(one.to_json());
  }
  json["host"] = host_json();
  if (gpus_) {
    append(gpus_->series_json());
    json["gpu"] = gpus_->devices_json();
    out.gpus = gpus_->environment_json();
    notes.insert(notes.end(), gpus_->notes().begin(), gpus_->notes().end());
  }
  if (auto energy = energy_json(client); !energy.is_null()) json["energy"] = std::move(energy);
  json["series"] = std::move(series);
  json["notes"] = notes;
  return out;
}

}  // namespace prony::telemetry
