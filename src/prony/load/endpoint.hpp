// Endpoint: what is to be loaded, found out before the load begins: that it answers at all (bounded
// wait, for servers that are still loading), what it calls itself and its models, and which dialect
// it speaks. One GET of /v1/models, whose head alone is enough; nothing is generated unless the
// dialect has to be found by asking (endpoint_detect.hpp).
// Thread safety: blocking functions, any thread.
#pragma once
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/load/dialect.hpp"
#include "prony/net/http_client.hpp"
#include "prony/net/http_server.hpp"

namespace prony::load {

struct EndpointOptions {
  std::string base_url;             // with or without /v1 at its end
  std::optional<std::string> path;  // --endpoint; below the base URL
  std::string type = "auto";        // --endpoint-type
  std::string model;                // empty: the first one that the server names
  net::Headers headers;             // --header and the API key
  bool insecure = false;
  core::Nanos ready_timeout_ns = 10 * core::kNanosPerSecond;  // 0: do not look
};

struct Endpoint {
  net::Origin origin;
  net::Address address;
  std::string base_url;  // without /v1
  std::string target;    // path of the requests
  const Dialect* dialect = nullptr;
  std::string model;
  std::string owner;         // owned_by of its models: "vllm", "sglang", "llamacpp", "prony", ...
  std::string server;        // Server header
  std::string prony_device;  // X-Prony-Device: its timing is emulated, or it is a mock
  net::Headers headers;      // of every request, as given
  std::vector<std::string> warnings;

  /// It answers stream_options.continuous_usage_stats with a count in every chunk.
  bool counts_every_chunk() const;
  /// An endpoint of scripted timing, `prony mock`: what it serves is no measurement of anything.
  bool is_mock() const;
  /// Idle connections occupy its workers (llama.cpp's HTTP server has a thread for each), so none
  /// may be opened ahead.
  bool dislikes_idle_connections() const;
};

/// Splits a base URL: "http://h:1/x/v1" is {origin of h:1, "/x"}. Error: kInvalidArgument naming
/// --base-url.
Result<net::Url> parse_base_url(std::string_view text);
/// One GET, given up after `timeout_ns`. Returns as soon as the outcome is known.
struct ProbeAnswer {
  enum class Kind { kAnswered, kRefused, kClosed, kSilent };
  Kind kind = Kind::kRefused;
  int status = 0;
  std::string body;  // of an answer that is no stream, its first MiB
  std::string server, prony_device;
  std::string error;
};
ProbeAnswer probe(const net::Origin& origin, const net::Address& address, std::string_view target,
                  const net::Headers& headers, core::Nanos timeout_ns);

/// Waits until the endpoint answers and finds out the rest. `note` gets lines worth telling the
/// user while it waits; `interrupt` ends the wait and may be null. Error: kInvalidArgument for bad
/// options, kEnvironment if it never answered.
Result<Endpoint> open_endpoint(const EndpointOptions& options,
                               const std::function<void(std::string_view)>& note,
                               const std::atomic<bool>* interrupt);

}  // namespace prony::load
