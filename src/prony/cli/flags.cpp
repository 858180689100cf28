#include "prony/cli/flags.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <numeric>

namespace prony::cli {
namespace {

using Raw = std::vector<std::string>;

std::string first_name(std::string_view names) {
  return std::string(names.substr(0, names.find(',')));
}

Error expected(const std::string& flag, const std::string& found, std::string_view what) {
  return invalid_argument(fmt::format("{}: found '{}', expected {}", flag, found, what));
}

template <class T>
std::optional<T> parse_whole(const std::string& text) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<int64_t> to_integer(const std::string& flag, const std::string& text) {
  if (const auto value = parse_whole<int64_t>(text)) return *value;
  return expected(flag, text, "a whole number");
}

Result<double> to_number(const std::string& flag, const std::string& text) {
  if (text == "inf") return INFINITY;
  const auto value = parse_whole<double>(text);
  if (value && std::isfinite(*value)) return *value;
  return expected(flag, text, "a number");
}

// One line, lower case at the start: CLI11 writes sentences over several lines.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (!text.empty()) {
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  }
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.pop_back();
  return text;
}

}  // namespace

struct Flags::Impl {
  CLI::App app;
  std::string group = "Options";
  std::vector<std::string> names;     // all, for the nearest one
  std::vector<std::string> numerics;  // those of integers and numbers
  std::vector<std::pair<std::string, std::function<std::string()>>> values;  // as they will be used
  // Runs after CLI11 has split the line: converts raw values into targets.
  std::vector<std::function<Result<void>()>> conversions;
  std::vector<std::unique_ptr<Raw>> raws;

  explicit Impl(std::string summary) : app(std::move(summary)) {}

  CLI::Option* add(std::string_view flag_names, std::string_view help, Raw*& raw,
                   const std::string& default_text) {
    raws.push_back(std::make_unique<Raw>());
    raw = raws.back().get();
    auto* option = app.add_option(std::string(flag_names), *raw, std::string(help));
    option->group(group)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    if (!default_text.empty()) option->default_str(default_text);
    remember(flag_names);
    return option;
  }

  void remember(std::string_view flag_names) {
    while (!flag_names.empty()) {
      names.push_back(first_name(flag_names));
      const auto comma = flag_names.find(',');
      if (comma == std::string_view::npos) break;
      flag_names.remove_prefix(comma + 1);
    }
  }

  void remember_number(std::string_view flag_names) {
    for (; !flag_names.empty();) {
      numerics.push_back(first_name(flag_names));
      flag_names.remove_prefix(std::min(flag_names.size(), numerics.back().size() + 1));
    }
  }

  // An option of one value: `convert` turns its text into the target's type.
  template <class Target, class Convert>
  CLI::Option* add_single(std::string_view flag_names, Target& target, std::string_view help,
                          const std::string& default_text, std::string_view type, Convert convert) {
    Raw* raw = nullptr;
    auto* option = add(flag_names, help, raw, default_text);
    option->type_name(std::string(type));
    values.emplace_back(first_name(flag_names),
                        [raw, default_text] { return raw->empty() ? default_text : raw->back(); });
    conversions.push_back([raw, &target, convert, flag = first_name(flag_names)]() -> Result<void> {
      if (raw->empty()) return {};
      auto value = convert(flag, raw->back());
      if (!value) return value.error();
      target = std::move(*value);
      return {};
    });
    return option;
  }
};

Flags::Flags(std::string_view command, std::string_view summary)
    : impl_(std::make_unique<Impl>(std::string(summary))) {
  impl_->app.name(fmt::format("prony {}", command));
  impl_->app.set_help_flag("--help,-h", "this text");
  impl_->app.allow_extras();
  impl_->app.get_formatter()->column_width(34);
}

Flags::~Flags() = default;

Flags& Flags::group(std::string_view title) {
  impl_->group = title;
  return *this;
}

namespace {
Result<std::string> as_text(const std::string&, const std::string& text) {
  return text;
}
}  // namespace

Flags& Flags::text(std::string_view names, std::string& target, std::string_view help) {
  impl_->add_single(names, target, help, target, "TEXT", as_text);
  return *this;
}
Flags& Flags::text(std::string_view names, std::optional<std::string>& target,
                   std::string_view help) {
  impl_->add_single(names, target, help, target.value_or(""), "TEXT", as_text);
  return *this;
}
Flags& Flags::integer(std::string_view names, int64_t& target, std::string_view help) {
  impl_->remember_number(names);
  impl_->add_single(names, target, help, std::to_string(target), "N", to_integer);
  return *this;
}
Flags& Flags::integer(std::string_view names, std::optional<int64_t>& target,
                      std::string_view help) {
  impl_->remember_number(names);
  impl_->add_single(names, target, help, target ? std::to_string(*target) : "", "N", to_integer);
  return *this;
}
Flags& Flags::number(std::string_view names, double& target, std::string_view help) {
  impl_->remember_number(names);
  impl_->add_single(names, target, help, fmt::format("{}", target), "X", to_number);
  return *this;
}
Flags& Flags::number(std::string_view names, std::optional<double>& target, std::string_view help) {
  impl_->remember_number(names);
  impl_->add_single(names, target, help, target ? fmt::format("{}", *target) : "", "X", to_number);
  return *this;
}

Flags& Flags::toggle(std::string_view names, bool& target, std::string_view help) {
  impl_->app.add_flag(std::string(names), target, std::string(help))->group(impl_->group);
  impl_->remember(names);
  impl_->values.emplace_back(first_name(names), [&target] { return target ? "on" : "off"; });
  return *this;
}

Flags& Flags::list(std::string_view names, std::vector<std::string>& target,
                   std::string_view help) {
  impl_->app.add_option(std::string(names), target, std::string(help))
      ->group(impl_->group)
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->type_name("TEXT ...");
  impl_->remember(names);
  impl_->values.emplace_back(first_name(names),
                             [&target] { return fmt::format("{}", fmt::join(target, " ")); });
  return *this;
}

Flags& Flags::choice(std::string_view names, std::string& target, std::vector<std::string> choices,
                     std::string_view help) {
  const auto convert = [choices](const std::string& flag,
                                 const std::string& text) -> Result<std::string> {
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) return text;
    return expected(flag, text, fmt::format("one of {}", fmt::join(choices, ", ")));
  };
  impl_->add_single(names, target, help, target, fmt::format("{}", fmt::join(choices, "|")),
                    convert);
  return *this;
}

Flags& Flags::positional(std::string_view name, std::vector<std::string>& target,
                         std::string_view help) {
  impl_->app.add_option(std::string(name), target, std::string(help))->group(impl_->group);
  return *this;
}

Result<Flags::Outcome> Flags::parse(const std::vector<std::string>& arguments) {
  try {
    // CLI11 takes the arguments from the back.
    impl_->app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return Outcome::kHelp;
  } catch (const CLI::ParseError& error) {
    return invalid_argument(one_line(error.what()));
  }
  if (const auto extras = impl_->app.remaining(); !extras.empty()) {
    const auto name = first_name(extras.front().substr(0, extras.front().find('=')));
    const auto guess = nearest(name, impl_->names);
    return invalid_argument(
        guess.empty()
            ? fmt::format("unknown argument '{}'; see --help", extras.front())
            : fmt::format("unknown argument '{}', did you mean {}?", extras.front(), guess));
  }
  for (const auto& convert : impl_->conversions) {
    if (auto done = convert(); !done) return done.error();
  }
  return Outcome::kRun;
}

bool Flags::given(std::string_view name) const {
  const auto* option = impl_->app.get_option_no_throw(std::string(name));
  return option != nullptr && option->count() > 0;
}

bool Flags::takes_number(std::string_view name) const {
  return std::find(impl_->numerics.begin(), impl_->numerics.end(), name) != impl_->numerics.end();
}

std::vector<std::pair<std::string, std::string>> Flags::effective() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [name, value] : impl_->values) out.emplace_back(name, value());
  return out;
}

std::string Flags::help() const {
  return impl_->app.help();
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    // Levenshtein distance, one row at a time.
    std::vector<size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 0; i < word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i + 1;
      for (size_t j = 0; j < candidate.size(); ++j) {
        const size_t substitute = diagonal + (word[i] == candidate[j] ? 0 : 1);
        diagonal = row[j + 1];
        row[j + 1] = std::min({substitute, row[j] + 1, row[j + 1] + 1});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace prony::cli
