// PromptBuilder: the text (or token ids) of each request of a Schedule, made ahead of the run. With
// a tokenizer the prompt has exactly the asked number of tokens, counted by encoding it; without
// one (a foreign server whose tokenizer.json is not at hand) it is one common word a token, a best
// effort that says so in `exact`.
// Every prompt begins with words of its own, drawn from (seed, salt, index), so no two share a
// block of a prefix cache except where the schedule gives them a shared prefix, and none meets a
// cache left warm by another run. Warm-up prompts are drawn from another domain than measured ones.
// Where the schedule has prefix blocks, a prompt begins with the text of its blocks, one after the
// other: two prompts share exactly the tokens of their equal leading ids, give or take the chance
// that the first token of two different blocks is the same.
// Deterministic: equal (options, entry) give equal bytes, in any order of calls.
// Thread safety: immutable; build() any thread.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/core/rng.hpp"
#include "prony/token/tokenizer.hpp"
#include "prony/workload/schedule.hpp"

namespace prony::workload {

enum class PromptFormat {
  kText,
  kIds,  // token ids, for endpoints that take them (/v1/completions)
};

struct PromptOptions {
  uint64_t seed = 0;
  /// Makes prompts differ from those of other runs. The caller takes a fresh number for every run
  /// (the wall clock) and records it; 0 repeats the prompts of the seed exactly.
  uint64_t salt = 0;
  PromptFormat format = PromptFormat::kText;
  /// Tokens that the server adds around the text (chat template, begin marker); the text is made
  /// that much shorter, so that the server sees the asked number.
  int32_t reserved_tokens = 0;
  /// kIds without a tokenizer: the model's vocabulary. Ids come from its middle three quarters,
  /// because special tokens live at both ends.
  int32_t vocabulary_size = 0;
};

struct Prompt {
  std::string text;                 // kText
  std::vector<token::TokenId> ids;  // kIds
  int32_t tokens = 0;               // the server should count, reserved_tokens included
  bool exact = false;               // `tokens` was counted and equals the asked number
};

class PromptBuilder {
 public:
  /// `tokenizer` may be null: best effort. Error: kInvalidArgument if kIds has neither a tokenizer
  /// nor a vocabulary_size, or a number is out of range.
  static Result<PromptBuilder> create(std::shared_ptr<const token::Tokenizer> tokenizer,
                                      const PromptOptions& options);

  /// The prompt of a measured request; of a turn, without its history. An entry shorter than
  /// reserved_tokens + 1 gets one token of text, and `exact` is false. `blocks` and `block_tokens`
  /// are those of the Schedule.
  Prompt build(const ScheduleEntry& entry, std::span<const int64_t> blocks = {},
               int32_t block_tokens = 0) const;
  /// An answer of entry.output_tokens, for a history that does not wait for the server's.
  std::string build_answer(const ScheduleEntry& entry) const;
  /// Warm-up prompt number `index`, of so many tokens; never begins like a measured one.
  Prompt build_warm_up(int64_t index, int32_t input_tokens) const;

  /// One line: what the prompts are and whether their length is exact.
  std::string describe() const;

 private:
  PromptBuilder(std::shared_ptr<const token::Tokenizer> tokenizer, const PromptOptions& options);
  core::Rng stream(uint64_t domain, int64_t index) const;
  /// A piece of a prompt: up to its `end`-th token the words of `rng`.
  struct Piece {
    core::Rng rng;
    int32_t end = 0;
  };
  Prompt make(const std::vector<Piece>& pieces, int32_t asked) const;
  Prompt make_counted(const std::vector<Piece>& pieces, int32_t asked) const;

  std::shared_ptr<const token::Tokenizer> tokenizer_;
  PromptOptions options_;
  uint64_t seed_;  // of all prompts: options_.seed and options_.salt together
};

}  // namespace prony::workload
