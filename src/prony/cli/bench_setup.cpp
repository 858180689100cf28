#include "prony/cli/bench_setup.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "prony/cli/progress_line.hpp"
#include "prony/core/system.hpp"
#include "prony/token/chat.hpp"
#include "prony/token/hf_tokenizer.hpp"
#include "prony/token/jinja_chat.hpp"
#include "prony/token/tokenizer.hpp"

namespace prony::cli {
namespace {

constexpr core::Nanos kServeReady = 120 * core::kNanosPerSecond;  // dummy weights take seconds
constexpr const char* kDefaultModel = "dummy:demo";

// Tokens that the server puts around a prompt for the model of a folder.
Result<int32_t> reserved_tokens(const std::string& folder, bool chat) {
  const auto tokenizer = token::HfTokenizer::open(folder);
  if (!tokenizer) return tokenizer.error();
  if (!chat) return (*tokenizer)->bos_id() ? 1 : 0;
  const auto made = token::JinjaChatTemplate::create(
      (*tokenizer)->chat_template(), *tokenizer,
      {(*tokenizer)->bos_text(), (*tokenizer)->eos_text()}, folder + "/chat template");
  if (!made) return made.error();
  const token::ChatMessage message{"user", "a"};
  const auto ids = (*made)->render({&message, 1});
  if (!ids) return ids.error();
  return static_cast<int32_t>(ids->size()) - static_cast<int32_t>((*tokenizer)->count("a"));
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> start_server(BenchFlags& flags,
                                                   const std::atomic<bool>& interrupt) {
  if (flags.model.empty()) flags.target.model = flags.model = kDefaultModel;
  const auto cores = static_cast<int64_t>(core::allowed_cores().size());
  const int64_t threads = std::max<int64_t>(1, cores - flags.bench.threads);
  // It answers to the name that it was asked for by, a folder too.
  auto child = ChildProcess::start({"serve", "--model", flags.model, "--served-model-name",
                                    flags.model, "--device", flags.device, "--port", "0",
                                    "--threads", std::to_string(threads)});
  if (!child) return child;
  auto url = child.value()->wait_for_line("listening on ", kServeReady, &interrupt);
  if (!url) return url.error();
  flags.target.base_url = url.value();
  // Random weights end their answers at random; lengths are then what was asked for.
  if (flags.model.starts_with("dummy:")) flags.bench.ignore_eos = true;
  return child;
}

Result<std::shared_ptr<const workload::PromptBuilder>> make_prompts(
    const BenchFlags& flags, const load::Endpoint& endpoint) {
  std::shared_ptr<const token::Tokenizer> tokenizer;
  const bool ours = endpoint.owner == "prony" && !endpoint.is_mock();
  std::error_code ignored;
  const bool folder = ours && std::filesystem::is_directory(flags.model, ignored);
  if (flags.tokenizer || ours) {
    auto opened = token::open_tokenizer(flags.tokenizer.value_or(folder ? flags.model : "byte"));
    if (!opened) return opened.error();
    tokenizer = std::move(opened).value();
  }
  workload::PromptOptions options;
  options.seed = flags.bench.seed;
  options.salt = *flags.bench.prompt_salt;
  options.vocabulary_size = static_cast<int32_t>(flags.vocab_size);
  if (flags.bench.prompt_format == "ids") {
    options.format = workload::PromptFormat::kIds;
  } else if (ours) {  // the server adds a chat template, or a begin marker
    const bool chat = endpoint.dialect == &load::openai_chat();
    if (folder) {
      const auto reserved = reserved_tokens(flags.model, chat);
      if (!reserved) return reserved.error();
      options.reserved_tokens = *reserved;
    } else {
      options.reserved_tokens = chat ? token::ByteChatTemplate::overhead_tokens(1) : 1;
    }
  }
  auto built = workload::PromptBuilder::create(std::move(tokenizer), options);
  if (!built) return built.error();
  return std::make_shared<const workload::PromptBuilder>(std::move(built).value());
}

Result<void> fill_defaults(BenchFlags& flags) {
  if (auto filled = fill_dataset_path(flags); !filled) return filled;
  if (!flags.bench.prompt_salt) {
    flags.bench.prompt_salt = static_cast<uint64_t>(core::realtime_ns() / 1000);
  }
  return {};
}

Result<load::BenchRun> measure(BenchFlags& flags, const load::Endpoint& endpoint,
                               const std::atomic<bool>& interrupt,
                               const std::function<void(std::string_view)>& note,
                               core::Group* group) {
  auto prompts = make_prompts(flags, endpoint);
  if (!prompts) return prompts.error();
  const auto shape = load::load_shape(flags.bench);
  ProgressLine line(flags.progress, flags.bench.num_prompts.value_or(0),
                    shape.ok() ? shape.value().rate_per_s : std::nullopt);
  auto run = load::run_bench(flags.bench, endpoint, prompts.value(),
                             {.interrupt = &interrupt,
                              .progress = [&line](const auto& totals) { line.show(totals); },
                              .note = note,
                              .group = group});
  line.clear();
  return run;
}

}  // namespace prony::cli
