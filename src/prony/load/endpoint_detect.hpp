// What dialect does a server speak, and what does it call its model? Found out by asking: GETs that
// only one kind of server answers, then one streamed token in each dialect that may fit, read and
// judged as a measured request would be. Used for `--endpoint-type auto`, and for the model's name
// where /v1/models gives none.
// Thread safety: blocking functions, any thread. Every request and the whole have a bound on time.
#pragma once
#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/load/dialect.hpp"
#include "prony/net/http_client.hpp"
#include "prony/net/http_server.hpp"

namespace prony::load {

/// The server as far as it is known.
struct Server {
  net::Origin origin;
  std::string base_url;   // as given, for messages
  std::string base_path;  // of the base URL
  net::Headers headers;
  std::string model;          // empty: unknown
  bool lists_models = false;  // /v1/models named some: it speaks OpenAI's routes
};

/// The name of the model as a server of this dialect tells it (GET info().identity), and whether it
/// is such a server at all.
struct Identity {
  bool found = false;
  std::string model;  // empty: it did not say
};
Identity identify(const Dialect& dialect, const Server& server, core::Nanos timeout_ns);

struct Detected {
  const Dialect* dialect = nullptr;
  std::string model;
  std::string why;  // for the user, one line
};
/// Asks in the dialects `among`, all if empty, on `path` if given instead of each dialect's own.
/// Error: kEnvironment if none fits (what each said), kInvalidArgument if those that may fit need a
/// model and none is known, kFailed if interrupted.
Result<Detected> detect(const Server& server, std::span<const Dialect* const> among,
                        const std::optional<std::string>& path, const std::atomic<bool>* interrupt);

/// The request path: that of the dialect below `base_path` with its {model} replaced, or `path` if
/// given (which may repeat the /v1 that the base URL had).
std::string request_target(std::string_view base_path, const std::optional<std::string>& path,
                           const Dialect* dialect, std::string_view model);

}  // namespace prony::load
