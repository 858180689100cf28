#include "prony/load/openai_body.hpp"

namespace prony::load {

std::string finish_openai_body(core::Json body, const BodyPrompt& prompt,
                               const BodyOptions& options) {
  body["max_tokens"] = prompt.output_tokens;
  put_sampling(options, body);
  if (options.usage != UsageRequest::kNone) {
    body["stream_options"]["include_usage"] = true;
    if (options.usage == UsageRequest::kContinuous) {
      body["stream_options"]["continuous_usage_stats"] = true;
    }
    if (options.usage == UsageRequest::kTokenIds) body["return_token_ids"] = true;
  }
  return write_body(std::move(body), options);
}

}  // namespace prony::load
