#include "prony/load/openai_body.hpp"

namespace prony::load {

std::string finish_openai_body(core::Json body, const BodyPrompt& prompt,
                               const BodyOptions& options) {
  body["max_tokens"] = prompt.output_tokens;
  body["stream"] = options.stream;
  if (options.temperature) body["temperature"] = *options.temperature;
  if (options.ignore_eos) body["ignore_eos"] = true;
  if (options.stream && options.usage != UsageRequest::kNone) {
    body["stream_options"]["include_usage"] = true;
    if (options.usage == UsageRequest::kContinuous) {
      body["stream_options"]["continuous_usage_stats"] = true;
    }
    if (options.usage == UsageRequest::kTokenIds) body["return_token_ids"] = true;
  }
  body.merge_patch(options.extra);  // RFC 7396 is exactly: objects merge, null removes
  return body.dump(-1, ' ', false, core::Json::error_handler_t::replace);
}

}  // namespace prony::load
