// ServedModel: what `prony serve` serves: a shape with its weights, tokenizer, chat template and
// sampling defaults, from a Hugging Face folder or as dummy:<...>.
// Thread safety: a value.
#pragma once
#include <memory>
#include <string>

#include "prony/cli/serve_options.hpp"
#include "prony/core/clock.hpp"
#include "prony/core/result.hpp"
#include "prony/sched/executor.hpp"
#include "prony/server/api.hpp"
#include "prony/token/chat.hpp"
#include "prony/token/tokenizer.hpp"

namespace prony::cli {

struct ServedModel {
  std::string name;  // as clients may call it
  std::unique_ptr<sched::Executor> executor;
  std::shared_ptr<const token::Tokenizer> tokenizer;
  std::unique_ptr<const token::ChatTemplate> chat_template;
  server::SamplingDefaults sampling;
};

/// Reads and loads everything; `clock` outlives it. Error: of a bad flag or folder, by file; or
/// what the engine refuses.
Result<ServedModel> load_served_model(const ServeOptions& options, core::Clock& clock);

}  // namespace prony::cli
