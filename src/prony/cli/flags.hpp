// Flags: the command-line parser of one command, a facade over CLI11 (which only flags.cpp
// includes, because a source that does costs 4 s). Every value is converted here, so that all
// commands speak with one voice: "--num-prompts: found 'ten', expected a whole number".
// Names are long flags in kebab case, aliases after a comma: "--max-concurrency,--concurrency".
// Thread safety: none.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "prony/core/result.hpp"

namespace prony::cli {

class Flags {
 public:
  Flags(std::string_view command, std::string_view summary);
  ~Flags();
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  /// Flags added after this call stand under `title` in the help.
  Flags& group(std::string_view title);

  // Targets keep their value as the default, which the help shows; they must outlive parse().
  Flags& text(std::string_view names, std::string& target, std::string_view help);
  Flags& text(std::string_view names, std::optional<std::string>& target, std::string_view help);
  Flags& integer(std::string_view names, int64_t& target, std::string_view help);
  Flags& integer(std::string_view names, std::optional<int64_t>& target, std::string_view help);
  Flags& number(std::string_view names, double& target, std::string_view help);
  Flags& number(std::string_view names, std::optional<double>& target, std::string_view help);
  /// A switch without value.
  Flags& toggle(std::string_view names, bool& target, std::string_view help);
  /// Repeatable, several values a time: --goodput ttft:200 tpot:50.
  Flags& list(std::string_view names, std::vector<std::string>& target, std::string_view help);
  /// One of `choices`; anything else is an error that lists them.
  Flags& choice(std::string_view names, std::string& target, std::vector<std::string> choices,
                std::string_view help);
  /// Arguments without a flag.
  Flags& positional(std::string_view name, std::vector<std::string>& target, std::string_view help);

  enum class Outcome { kRun, kHelp };
  /// kHelp: the user asked for help() and nothing else shall happen.
  /// Error: kInvalidArgument; an unknown flag comes with the nearest known one.
  Result<Outcome> parse(const std::vector<std::string>& arguments);
  /// True if the user gave the flag (by any of its names).
  bool given(std::string_view name) const;
  /// True if `name` (any of its names) was declared as an integer or a number.
  bool takes_number(std::string_view name) const;
  /// After parse(): {first name, value} of every flag, given or not: what the run will be.
  std::vector<std::pair<std::string, std::string>> effective() const;
  std::string help() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The candidate nearest to `word` by edit distance, empty if none is near enough to be meant.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace prony::cli
