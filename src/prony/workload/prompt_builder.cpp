#include "prony/workload/prompt_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "prony/core/rng.hpp"
#include "prony/workload/streams.hpp"
#include "prony/workload/words.hpp"

namespace prony::workload {
namespace {

// Consonant-vowel pairs of a salt word. 7 pairs of 105 and a consonant of 21: 10^15 words, in 15
// letters, so that with a space it fills exactly the first 16-token cache block of the byte
// tokenizer and no two prompts share even that.
constexpr int kSaltPairs = 7;
constexpr std::string_view kConsonants = "bcdfghjklmnpqrstvwxyz";
constexpr std::string_view kVowels = "aeiou";

std::string salt_word(core::Rng& rng) {
  std::string word;
  for (int i = 0; i < kSaltPairs; ++i) {
    word.push_back(kConsonants[rng.below(kConsonants.size())]);
    word.push_back(kVowels[rng.below(kVowels.size())]);
  }
  word.push_back(kConsonants[rng.below(kConsonants.size())]);
  return word;
}

// The endless text of one prompt, word by word.
class WordSource {
 public:
  WordSource(core::Rng rng, bool salt_first) : rng_(rng) {
    if (salt_first) words_.push_back(salt_word(rng_));
  }
  const std::string& word(size_t index) {
    const auto list = common_words();
    while (words_.size() <= index) words_.emplace_back(list[rng_.below(list.size())]);
    return words_[index];
  }

 private:
  core::Rng rng_;
  std::vector<std::string> words_;
};

void append_word(std::string& text, std::string_view word) {
  if (!text.empty()) text.push_back(' ');
  text += word;
}

struct Fitted {
  std::string text;
  int64_t tokens = 0;
};

// `base` and as many words as fit into `target` tokens. Counting means encoding all of it, so the
// number of words is guessed from the tokens a word took so far; each round cuts what is missing to
// a few per cent.
Fitted add_words(const token::Tokenizer& tokenizer, std::string base, WordSource& source,
                 size_t& used, int64_t target) {
  Fitted fitted{std::move(base), 0};
  fitted.tokens = tokenizer.count(fitted.text);
  double tokens_per_word = 1;
  size_t words_max = SIZE_MAX;  // a number of words known to be too many, less one
  while (fitted.tokens < target && used < words_max) {
    const double guess = static_cast<double>(target - fitted.tokens) / (tokens_per_word * 1.02);
    size_t take = std::max<size_t>(1, static_cast<size_t>(guess));
    if (used == 0) take = std::min<size_t>(take, 8);  // nothing known yet of tokens a word
    take = std::min(take, words_max - used);
    Fitted longer = fitted;
    for (size_t i = 0; i < take; ++i) append_word(longer.text, source.word(used + i));
    longer.tokens = tokenizer.count(longer.text);
    const auto gained = static_cast<double>(longer.tokens - fitted.tokens);
    if (longer.tokens > target) {
      words_max = used + take - 1;
    } else {
      used += take;
      fitted = std::move(longer);
    }
    tokens_per_word = std::max(gained / static_cast<double>(take), 0.1);
  }
  return fitted;
}

// Fills the last tokens with pieces smaller than a word. Text never ends in a space: chat templates
// trim it. What a piece costs is counted, not assumed, since tokenizers merge across it.
void add_pieces(const token::Tokenizer& tokenizer, Fitted& fitted, const std::string& next_word,
                int64_t target) {
  constexpr std::string_view kPieces[] = {"s", " a", "e", " I", ".", " the", "a", " 1", ","};
  while (fitted.tokens < target) {
    const auto missing = static_cast<size_t>(target - fitted.tokens);
    const std::string space = fitted.text.empty() ? "" : " ";
    bool found = false;
    const auto attempt = [&](const std::string& piece) {
      if (found || piece.empty() || piece == " ") return;
      Fitted longer{fitted.text + piece, 0};
      longer.tokens = tokenizer.count(longer.text);
      if (longer.tokens <= fitted.tokens || longer.tokens > target) return;
      fitted = std::move(longer);
      found = true;
    };
    // One token a byte: the beginning of the next word fits exactly.
    if (missing > space.size()) attempt(space + next_word.substr(0, missing - space.size()));
    for (const auto piece : kPieces) attempt(std::string(piece));
    if (!found) return;
  }
}

Fitted fit(const token::Tokenizer& tokenizer, std::string base, WordSource source, int64_t target) {
  size_t used = 0;
  Fitted fitted = add_words(tokenizer, std::move(base), source, used, target);
  add_pieces(tokenizer, fitted, source.word(used), target);
  return fitted;
}

// A seed of the prompts' own, so that they share no stream with arrivals and lengths.
uint64_t prompt_seed(uint64_t seed, uint64_t salt) {
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  constexpr uint32_t kDomain = 0x50524D54;  // "PRMT"
  const auto block = core::philox4x32({low(salt), high(salt), kDomain, 0}, {low(seed), high(seed)});
  return uint64_t{block[1]} << 32 | block[0];
}

}  // namespace

Result<PromptBuilder> PromptBuilder::create(std::shared_ptr<const token::Tokenizer> tokenizer,
                                            const PromptOptions& options) {
  if (options.reserved_tokens < 0 || options.reserved_tokens > kTokensMax) {
    return invalid_argument(fmt::format("prompt: found {} reserved tokens, expected 0 to {}",
                                        options.reserved_tokens, kTokensMax));
  }
  constexpr int32_t kVocabularyMin = 64;  // leaves 48 ids to choose from
  if (options.format == PromptFormat::kIds && !tokenizer &&
      options.vocabulary_size < kVocabularyMin) {
    return invalid_argument(
        fmt::format("--prompt-format ids: found no tokenizer and a vocabulary of {}, expected one "
                    "of at least {}",
                    options.vocabulary_size, kVocabularyMin));
  }
  return PromptBuilder(std::move(tokenizer), options);
}

PromptBuilder::PromptBuilder(std::shared_ptr<const token::Tokenizer> tokenizer,
                             const PromptOptions& options)
    : tokenizer_(std::move(tokenizer)),
      options_(options),
      seed_(prompt_seed(options.seed, options.salt)) {}

core::Rng PromptBuilder::stream(uint64_t domain, int64_t index) const {
  return core::Rng(seed_, domain << 56 | static_cast<uint64_t>(index));
}

Prompt PromptBuilder::build(const ScheduleEntry& entry, std::span<const int64_t> blocks,
                            int32_t block_tokens) const {
  const int32_t asked = entry.input_tokens - entry.history_tokens;
  const int32_t target = std::max(asked - options_.reserved_tokens, 1);
  std::vector<Piece> pieces;
  if (entry.prefix_group >= 0) {
    // At least one token of its own, however short the entry.
    const int32_t shared = std::min(entry.prefix_tokens, target - 1);
    if (shared > 0) pieces.push_back({stream(kSharedPrefixDomain, entry.prefix_group), shared});
  }
  int64_t end = 0;
  for (const int64_t id : blocks) {
    end += block_tokens;
    pieces.push_back(
        {stream(kBlockDomain, id), static_cast<int32_t>(std::min<int64_t>(end, target))});
    if (end >= target) break;
  }
  if (pieces.empty() || pieces.back().end < target) {
    pieces.push_back({stream(kMeasuredPromptDomain, entry.index), target});
  }
  return make(pieces, asked);
}

Prompt PromptBuilder::build_warm_up(int64_t index, int32_t input_tokens) const {
  const int32_t target = std::max(input_tokens - options_.reserved_tokens, 1);
  return make({{stream(kWarmUpPromptDomain, index), target}}, input_tokens);
}

std::string PromptBuilder::build_answer(const ScheduleEntry& entry) const {
  Piece piece{stream(kAnswerDomain, entry.index), entry.output_tokens};
  // Text in every format: a history is text.
  if (tokenizer_) {
    return fit(*tokenizer_, "", WordSource(piece.rng, true), piece.end).text;
  }
  std::string text;
  for (int32_t i = 0; i < piece.end; ++i) {
    append_word(text, common_words()[piece.rng.below(common_words().size())]);
  }
  return text;
}

Prompt PromptBuilder::make(const std::vector<Piece>& pieces, int32_t asked) const {
  if (tokenizer_) return make_counted(pieces, asked);
  Prompt prompt;
  prompt.tokens = pieces.back().end + options_.reserved_tokens;
  int32_t made = 0;
  for (Piece piece : pieces) {
    for (; made < piece.end; ++made) {
      if (options_.format == PromptFormat::kIds) {
        const int32_t margin = options_.vocabulary_size / 8;
        const auto choices = static_cast<uint64_t>(options_.vocabulary_size - 2 * margin);
        prompt.ids.push_back(margin + static_cast<int32_t>(piece.rng.below(choices)));
      } else {
        append_word(prompt.text, common_words()[piece.rng.below(common_words().size())]);
      }
    }
  }
  prompt.exact = options_.format == PromptFormat::kIds && prompt.tokens == asked;
  return prompt;
}

Prompt PromptBuilder::make_counted(const std::vector<Piece>& pieces, int32_t asked) const {
  Fitted fitted;
  for (const Piece& piece : pieces) {
    fitted = fit(*tokenizer_, std::move(fitted.text), WordSource(piece.rng, true), piece.end);
  }
  const int32_t target = pieces.back().end;
  Prompt prompt;
  if (options_.format == PromptFormat::kIds) {
    prompt.ids = tokenizer_->encode(fitted.text);
    // Where text could not be made to fit, ids can: cut or go round.
    const size_t made = prompt.ids.size();
    prompt.ids.resize(static_cast<size_t>(target));
    for (size_t i = made; i < prompt.ids.size(); ++i) prompt.ids[i] = prompt.ids[i - made];
    fitted.tokens = target;
  } else {
    prompt.text = std::move(fitted.text);
  }
  prompt.tokens = static_cast<int32_t>(fitted.tokens) + options_.reserved_tokens;
  prompt.exact = prompt.tokens == asked;
  return prompt;
}

std::string PromptBuilder::describe() const {
  std::string text;
  if (tokenizer_) {
    text = fmt::format("prompts of an exact number of tokens ({} tokenizer)", tokenizer_->name());
  } else if (options_.format == PromptFormat::kIds) {
    text = "prompts of random token ids";
  } else {
    text = "prompts of one common word a token (no tokenizer: the real number of tokens differs)";
  }
  if (tokenizer_ && options_.format == PromptFormat::kIds) text += ", sent as ids";
  text += options_.salt == 0 ? ", the same in every run of this seed"
                             : fmt::format(", salt {}", options_.salt);
  if (options_.reserved_tokens > 0) {
    text += fmt::format(", {} tokens left to the server's template", options_.reserved_tokens);
  }
  return text;
}

}  // namespace prony::workload
