// Schedule files (JSON Lines) and the digest.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <limits>
#include <utility>

#include "prony/core/file.hpp"
#include "prony/core/hash.hpp"
#include "prony/core/json.hpp"
#include "prony/token/quote.hpp"
#include "prony/workload/schedule.hpp"

namespace prony::workload {
namespace {

constexpr std::string_view kSchema = "prony.schedule/1";

// A field of ScheduleEntry: its name in the file, the values allowed, and whether it may be left
// out because it has its default.
struct Field {
  std::string_view name;
  int64_t low, high;
  bool required;
};

constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();
constexpr size_t kFieldCount = 11;
constexpr std::array<Field, kFieldCount> kFields{{{"index", 0, kScheduleEntriesMax - 1, true},
                                                  {"t_intended_ns", 0, kAny, true},
                                                  {"input_tokens", 1, kInt32Max, true},
                                                  {"output_tokens", 1, kInt32Max, true},
                                                  {"session", -1, kAny, false},
                                                  {"turn", 0, kInt32Max, false},
                                                  {"prefix_group", -1, kInt32Max, false},
                                                  {"prefix_tokens", 0, kInt32Max, false},
                                                  {"history_tokens", 0, kInt32Max, false},
                                                  {"think_ns", 0, kAny, false},
                                                  {"stage", -1, kInt32Max, false}}};
/// Fields of the first version of the format, all of which the digest counts.
constexpr size_t kFirstFields = 8;

std::array<int64_t, kFieldCount> values_of(const ScheduleEntry& e) {
  return {e.index,        e.t_intended_ns, e.input_tokens,   e.output_tokens, e.session, e.turn,
          e.prefix_group, e.prefix_tokens, e.history_tokens, e.think_ns,      e.stage};
}

ScheduleEntry entry_of(const std::array<int64_t, kFieldCount>& v) {
  const auto narrow = [](int64_t x) { return static_cast<int32_t>(x); };
  ScheduleEntry entry{v[0], v[1],         narrow(v[2]), narrow(v[3]),
                      v[4], narrow(v[5]), narrow(v[6]), narrow(v[7])};
  entry.history_tokens = narrow(v[8]);
  entry.think_ns = v[9];
  entry.stage = narrow(v[10]);
  return entry;
}

// Where in a file we are; makes the messages.
struct Place {
  const std::string& path;
  int64_t line;
  Error error(std::string_view what) const {
    return invalid_argument(fmt::format("{}:{}: {}", path, line, what));
  }
};

// The text of a value, for messages.
std::string shown(const core::Json& value) {
  return token::quote(value.dump(-1, ' ', false, core::Json::error_handler_t::replace));
}

// "blocks": [3, 17, ...] of an entry, appended to those of the schedule.
Result<void> parse_blocks(const core::Json& value, const Place& place, ScheduleEntry& entry,
                          Schedule& schedule) {
  if (schedule.block_tokens == 0) {
    return place.error("blocks: found some, but no block_tokens in line 1");
  }
  entry.first_block = static_cast<int64_t>(schedule.blocks.size());
  for (const auto& id : value.is_array() ? value : core::Json::array({value})) {
    const bool fits = value.is_array() && id.is_number_integer() &&
                      !(id.is_number_unsigned() && id.get<uint64_t>() > uint64_t{kAny}) &&
                      id.get<int64_t>() >= 0;
    if (!fits) {
      return place.error(
          fmt::format("blocks: found {}, expected a list of integers >= 0", shown(value)));
    }
    schedule.blocks.push_back(id.get<int64_t>());
  }
  entry.block_count =
      static_cast<int32_t>(static_cast<int64_t>(schedule.blocks.size()) - entry.first_block);
  if (entry.block_count == 0) entry.first_block = 0;
  return {};
}

Result<ScheduleEntry> parse_entry(std::string_view line, const Place& place, Schedule& schedule) {
  const auto json = core::parse_json(line, fmt::format("{}:{}", place.path, place.line));
  if (!json) return json.error();
  if (!json->is_object()) return place.error("found " + shown(*json) + ", expected an object");
  auto values = values_of(ScheduleEntry{});
  std::array<bool, kFieldCount> seen{};
  ScheduleEntry blocks;
  for (const auto& [key, value] : json->items()) {
    if (key == "blocks") {
      if (auto read = parse_blocks(value, place, blocks, schedule); !read) return read.error();
      continue;
    }
    size_t i = 0;
    while (i < kFields.size() && kFields[i].name != key) ++i;
    if (i == kFields.size()) return place.error("found the unknown name " + token::quote(key));
    const Field& field = kFields[i];
    const bool fits = value.is_number_integer() &&
                      !(value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{kAny}) &&
                      value.get<int64_t>() >= field.low && value.get<int64_t>() <= field.high;
    if (!fits) {
      return place.error(fmt::format("{}: found {}, expected an integer {} to {}", field.name,
                                     shown(value), field.low, field.high));
    }
    values[i] = value.get<int64_t>();
    seen[i] = true;
  }
  for (size_t i = 0; i < kFields.size(); ++i) {
    if (kFields[i].required && !seen[i]) {
      return place.error(fmt::format("found no {}", kFields[i].name));
    }
  }
  auto entry = entry_of(values);
  entry.first_block = blocks.first_block;
  entry.block_count = blocks.block_count;
  return entry;
}

// The header line; returns the number of entries it promises.
Result<int64_t> parse_header(std::string_view line, const Place& place, Schedule& schedule) {
  const auto json = core::parse_json(line, fmt::format("{}:{}", place.path, place.line));
  if (!json) return json.error();
  const auto member = [&](const char* name) -> const core::Json* {
    if (!json->is_object()) return nullptr;
    const auto found = json->find(name);
    return found == json->end() ? nullptr : &*found;
  };
  const core::Json* schema = member("schema");
  if (schema == nullptr || *schema != kSchema) {
    return place.error(fmt::format("found schema {}, expected \"{}\"",
                                   schema == nullptr ? "none" : shown(*schema), kSchema));
  }
  const core::Json* seed = member("seed");
  if (seed == nullptr || !seed->is_number_unsigned()) {
    return place.error("found no seed, expected an integer >= 0");
  }
  const core::Json* description = member("description");
  if (description == nullptr || !description->is_string()) {
    return place.error("found no description, expected a string");
  }
  const core::Json* count = member("count");
  if (count == nullptr || !count->is_number_unsigned() ||
      count->get<uint64_t>() > uint64_t{kScheduleEntriesMax}) {
    return place.error(fmt::format("found no count, expected 0 to {}", kScheduleEntriesMax));
  }
  if (const core::Json* tokens = member("block_tokens"); tokens != nullptr) {
    if (!tokens->is_number_unsigned() || tokens->get<uint64_t>() < 1 ||
        tokens->get<uint64_t>() > uint64_t{kTokensMax}) {
      return place.error(
          fmt::format("block_tokens: found {}, expected 1 to {}", shown(*tokens), kTokensMax));
    }
    schedule.block_tokens = tokens->get<int32_t>();
  }
  schedule.seed = seed->get<uint64_t>();
  schedule.description = description->get<std::string>();
  return count->get<int64_t>();
}

// What one entry must have to do with the one before it.
Result<void> check_order(const Schedule& schedule, const ScheduleEntry& entry, const Place& place) {
  const auto expected = static_cast<int64_t>(schedule.entries.size());
  if (entry.index != expected) {
    return place.error(fmt::format("index: found {}, expected {}", entry.index, expected));
  }
  if (!schedule.entries.empty() && entry.t_intended_ns < schedule.entries.back().t_intended_ns) {
    return place.error(fmt::format("t_intended_ns: found {}, expected at least {} as before it",
                                   entry.t_intended_ns, schedule.entries.back().t_intended_ns));
  }
  if (entry.prefix_tokens > 0 && entry.prefix_group < 0) {
    return place.error(
        fmt::format("prefix_tokens: found {} without a prefix_group", entry.prefix_tokens));
  }
  if (entry.prefix_tokens >= entry.input_tokens) {
    return place.error(fmt::format("prefix_tokens: found {}, expected less than input_tokens {}",
                                   entry.prefix_tokens, entry.input_tokens));
  }
  if (entry.history_tokens >= entry.input_tokens) {
    return place.error(fmt::format("history_tokens: found {}, expected less than input_tokens {}",
                                   entry.history_tokens, entry.input_tokens));
  }
  const auto* before = schedule.entries.empty() ? nullptr : &schedule.entries.back();
  const bool follows = before != nullptr && entry.session >= 0 && before->session == entry.session;
  if (const int32_t turn = follows ? before->turn + 1 : 0; entry.turn != turn) {
    return place.error(fmt::format("turn: found {}, expected {}: turns of a session stand together",
                                   entry.turn, turn));
  }
  const bool all = schedule.entries.empty() ? entry.session >= 0 : schedule.has_sessions();
  if ((entry.session >= 0) != all) {
    return place.error(fmt::format("session: found {}, expected {} as in the first entry",
                                   entry.session < 0 ? "none" : "one", all ? "one" : "none"));
  }
  return {};
}

}  // namespace

uint64_t Schedule::digest() const {
  core::Fnv1a hash;
  const auto defaults = values_of(ScheduleEntry{});
  for (const ScheduleEntry& entry : entries) {
    const auto values = values_of(entry);
    for (size_t i = 0; i < kFirstFields; ++i) hash.add(static_cast<uint64_t>(values[i]));
    // Later fields count where they are used, so that older digests stand.
    for (size_t i = kFirstFields; i < kFieldCount; ++i) {
      if (values[i] == defaults[i]) continue;
      hash.add(uint64_t{i});
      hash.add(static_cast<uint64_t>(values[i]));
    }
    for (const int64_t id : blocks_of(entry)) hash.add(static_cast<uint64_t>(id));
  }
  if (block_tokens > 0) hash.add(static_cast<uint64_t>(block_tokens));
  return hash.value();
}

std::string write_schedule_text(const Schedule& schedule) {
  core::Json header{{"schema", kSchema},
                    {"seed", schedule.seed},
                    {"description", schedule.description},
                    {"count", schedule.entries.size()}};
  if (schedule.block_tokens > 0) header["block_tokens"] = schedule.block_tokens;
  std::string text = header.dump(-1, ' ', false, core::Json::error_handler_t::replace);
  const auto defaults = values_of(ScheduleEntry{});
  for (const ScheduleEntry& entry : schedule.entries) {
    const auto values = values_of(entry);
    char separator = '{';
    text += '\n';
    for (size_t i = 0; i < kFields.size(); ++i) {
      if (!kFields[i].required && values[i] == defaults[i]) continue;
      fmt::format_to(std::back_inserter(text), "{}\"{}\":{}", separator, kFields[i].name,
                     values[i]);
      separator = ',';
    }
    if (entry.block_count > 0) {
      fmt::format_to(std::back_inserter(text), ",\"blocks\":[{}]",
                     fmt::join(schedule.blocks_of(entry), ","));
    }
    text += '}';
  }
  text += '\n';
  return text;
}

Result<void> write_schedule(const Schedule& schedule, const std::string& path) {
  return core::write_file_atomic(path, write_schedule_text(schedule));
}

Result<Schedule> read_schedule(const std::string& path) {
  auto content = core::read_file(path);
  if (!content) return content.error();
  return parse_schedule(*content, path);
}

Result<Schedule> parse_schedule(std::string_view content, const std::string& path) {
  Schedule schedule;
  std::optional<int64_t> promised;
  Place place{path, 0};
  while (!content.empty()) {
    const size_t end = content.find('\n');
    std::string_view line = content.substr(0, end);
    content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++place.line;
    if (line.empty()) continue;
    if (!promised) {
      const auto count = parse_header(line, place, schedule);
      if (!count) return count.error();
      promised = *count;
      continue;
    }
    const auto entry = parse_entry(line, place, schedule);
    if (!entry) return entry.error();
    if (auto ordered = check_order(schedule, *entry, place); !ordered) return ordered.error();
    schedule.entries.push_back(*entry);
  }
  if (!promised) return invalid_argument(fmt::format("{}: found an empty file", path));
  if (const auto found = static_cast<int64_t>(schedule.entries.size()); found != *promised) {
    return invalid_argument(
        fmt::format("{}: found {} entries, expected {} as in line 1", path, found, *promised));
  }
  return schedule;
}

}  // namespace prony::workload
