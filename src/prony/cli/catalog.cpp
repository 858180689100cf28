// prony catalog: lists, shows and checks the data files of models, hardware and engines.
#include <fmt/format.h>

#include "prony/catalog/catalog.hpp"
#include "prony/catalog/engine_profile.hpp"
#include "prony/catalog/hardware_file.hpp"
#include "prony/cli/commands.hpp"
#include "prony/cli/flags.hpp"
#include "prony/core/file.hpp"

namespace prony::cli {
namespace {

struct Kind {
  const char* name;
  Result<std::vector<std::string>> (*ids)();
  Result<void> (*check)(const std::string& id);
};

template <class Value>
Result<void> outcome(const Result<Value>& result) {
  if (!result) return result.error();
  return {};
}

const Kind kKinds[] = {
    {"models", catalog::model_ids,
     [](const std::string& id) { return outcome(catalog::load_model(id)); }},
    {"hardware", catalog::hardware_ids,
     [](const std::string& id) { return outcome(catalog::resolve_hardware(id)); }},
    {"engines", catalog::engine_ids,
     [](const std::string& id) { return outcome(catalog::resolve_engine(id)); }},
};

int list() {
  for (const Kind& kind : kKinds) {
    const auto ids = kind.ids();
    if (!ids) return report_error("catalog", ids.error());
    fmt::print("{}\n", kind.name);
    for (const std::string& id : *ids) fmt::print("  {}\n", id);
  }
  return kExitOk;
}

// The file itself: it says unit, origin and reference of every number.
int show(const std::string& id) {
  const auto folder = catalog::data_folder();
  if (!folder) return report_error("catalog", folder.error());
  std::vector<std::string> known;
  for (const Kind& kind : kKinds) {
    const auto ids = kind.ids();
    if (!ids) return report_error("catalog", ids.error());
    for (const std::string& each : *ids) {
      known.push_back(each);
      if (each != id) continue;
      const auto text = core::read_file(fmt::format("{}/{}/{}.yaml", *folder, kind.name, id));
      if (!text) return report_error("catalog", text.error());
      fmt::print("{}", *text);
      return kExitOk;
    }
  }
  const std::string guess = nearest(id, known);
  return report_error(
      "catalog", invalid_argument(
                     fmt::format("unknown entry '{}'{}, see prony catalog list", id,
                                 guess.empty() ? "" : fmt::format(", did you mean '{}'", guess))));
}

// A file by the schema that it names.
Result<void> check_file(const std::string& path) {
  const auto text = core::read_file(path);
  if (!text) return text.error();
  if (text->find("prony.hardware/1") != std::string::npos) {
    return outcome(catalog::parse_hardware_file(*text, path));
  }
  if (text->find("prony.engine/1") != std::string::npos) {
    return outcome(catalog::parse_engine_file(*text, path));
  }
  return outcome(catalog::resolve_model(path));
}

int check(const std::vector<std::string>& files) {
  size_t checked = 0, wrong = 0;
  const auto count = [&](const Result<void>& result) {
    ++checked;
    if (result) return;
    ++wrong;
    report_error("catalog", result.error());
  };
  for (const std::string& file : files) count(check_file(file));
  if (files.empty()) {
    for (const Kind& kind : kKinds) {
      const auto ids = kind.ids();
      if (!ids) return report_error("catalog", ids.error());
      for (const std::string& id : *ids) count(kind.check(id));
    }
  }
  fmt::print("{} files checked, {} refused\n", checked, wrong);
  return wrong == 0 ? kExitOk : kExitUsage;
}

}  // namespace

int run_catalog(const Arguments& arguments) {
  std::vector<std::string> words;
  Flags flags("catalog", "the data files: list, show ID, check [FILE...]");
  flags.positional("action", words, "list, show ID or check [FILE...]");
  const auto parsed = flags.parse(arguments);
  if (!parsed) return report_error("catalog", parsed.error());
  if (*parsed == Flags::Outcome::kHelp) {
    fmt::print("{}", flags.help());
    return kExitOk;
  }
  if (words.size() == 1 && words[0] == "list") return list();
  if (words.size() == 2 && words[0] == "show") return show(words[1]);
  if (!words.empty() && words[0] == "check") return check({words.begin() + 1, words.end()});
  return report_error("catalog", invalid_argument("expected list, show ID or check [FILE...]"));
}

}  // namespace prony::cli
