// The mock's reading of an OpenAI request body: only what its answer depends on.
// Thread safety: functions any thread.
#pragma once
#include <string>
#include <string_view>

#include "prony/core/result.hpp"
#include "prony/mock/plan.hpp"

namespace prony::mock {

struct ApiRequest {
  RequestFacts facts;
  std::string model;
};

/// Error: kInvalidArgument, fit for the message of a 400.
Result<ApiRequest> parse_api_request(std::string_view body, bool chat);

}  // namespace prony::mock
