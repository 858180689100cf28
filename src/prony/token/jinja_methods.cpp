// Methods of strings, lists, tuples and dicts.
#include <fmt/format.h>

#include <algorithm>

#include "prony/token/jinja_builtins.hpp"

namespace prony::token::jinja {
namespace {

using Type = Value::Type;
using Kind = Sequence::Kind;

// A string argument of a string method; Python refuses anything else.
const Text* string_at(Run& run, const Arguments& arguments, size_t index) {
  static const Text kEmpty;
  if (index >= arguments.positional.size()) return &kEmpty;
  const Value& value = arguments.positional[index];
  if (value.is_string()) return value.text;
  run.fail(fmt::format("found {}, expected a string", type_name(value)));
  return &kEmpty;
}

bool affix(Run& run, const Value& self, const Arguments& arguments, bool front) {
  const auto matches = [&](const Value& part) {
    if (!part.is_string()) {
      run.fail(fmt::format("found {}, expected a string or a tuple of strings", type_name(part)));
      return false;
    }
    return front ? self.bytes().starts_with(part.bytes()) : self.bytes().ends_with(part.bytes());
  };
  const Value& wanted = arguments.positional[0];
  if (!wanted.is(Type::kSequence)) return matches(wanted);
  return std::any_of(wanted.sequence->items.begin(), wanted.sequence->items.end(), matches);
}

Value starts_with(Run& run, const Value& self, const Arguments& arguments) {
  return Value::of(affix(run, self, arguments, true));
}
Value ends_with(Run& run, const Value& self, const Arguments& arguments) {
  return Value::of(affix(run, self, arguments, false));
}

Value strip_side(Run& run, const Value& self, const Arguments& arguments, Side side) {
  if (arguments.positional.empty() || arguments.positional[0].is(Type::kNone)) {
    return run.text(strip(*self.text, side));
  }
  return run.text(strip(*self.text, side, string_at(run, arguments, 0)->bytes));
}
Value strip_both(Run& run, const Value& self, const Arguments& arguments) {
  return strip_side(run, self, arguments, Side::kBoth);
}
Value strip_left(Run& run, const Value& self, const Arguments& arguments) {
  return strip_side(run, self, arguments, Side::kLeft);
}
Value strip_right(Run& run, const Value& self, const Arguments& arguments) {
  return strip_side(run, self, arguments, Side::kRight);
}

// Pieces between runs of white space.
std::vector<Text> split_at_space(const Text& text, int64_t limit) {
  std::vector<Text> parts;
  size_t at = 0;
  const auto space_at = [&text](size_t position, size_t& next) {
    next = position;
    return is_python_space(next_code_point(text.bytes, next));
  };
  while (true) {
    size_t next = at;
    while (at < text.bytes.size() && space_at(at, next)) at = next;
    if (at >= text.bytes.size()) return parts;
    if (limit >= 0 && static_cast<int64_t>(parts.size()) >= limit) {
      parts.push_back(text.slice(at, text.bytes.size()));
      return parts;
    }
    const size_t begin = at;
    while (at < text.bytes.size() && !space_at(at, next)) at = next;
    parts.push_back(text.slice(begin, at));
  }
}

// The same from the right, in order.
std::vector<Text> split_at_space_right(const Text& text, int64_t limit) {
  if (limit < 0) return split_at_space(text, -1);
  // Cut the ends off one by one; what is left keeps its spaces.
  std::vector<Text> tail;
  Text rest = strip(text, Side::kRight);
  for (int64_t i = 0; i < limit && !rest.bytes.empty(); ++i) {
    const auto offsets = character_offsets(rest.bytes);
    size_t first = offsets.size() - 1;
    while (first > 0) {
      size_t at = offsets[first - 1];
      if (is_python_space(next_code_point(rest.bytes, at))) break;
      --first;
    }
    tail.insert(tail.begin(), rest.slice(offsets[first], rest.bytes.size()));
    rest = strip(rest.slice(0, offsets[first]), Side::kRight);
  }
  if (!rest.bytes.empty()) tail.insert(tail.begin(), std::move(rest));
  return tail;
}

std::vector<Text> split_at(const Text& text, std::string_view separator, int64_t limit) {
  std::vector<Text> parts;
  size_t begin = 0;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const size_t at = text.bytes.find(separator, begin);
    if (at == std::string::npos) break;
    parts.push_back(text.slice(begin, at));
    begin = at + separator.size();
  }
  parts.push_back(text.slice(begin, text.bytes.size()));
  return parts;
}

std::vector<Text> split_at_right(const Text& text, std::string_view separator, int64_t limit) {
  std::vector<Text> parts;
  size_t end = text.bytes.size();
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    if (end < separator.size()) break;
    const size_t at = text.bytes.rfind(separator, end - separator.size());
    if (at == std::string::npos) break;
    parts.push_back(text.slice(at + separator.size(), end));
    end = at;
  }
  parts.push_back(text.slice(0, end));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

Value list_of(Run& run, std::vector<Text> texts) {
  std::vector<Value> items;
  for (auto& text : texts) items.push_back(run.text(std::move(text)));
  return run.sequence(std::move(items));
}

Value split_text(Run& run, const Value& self, const Arguments& arguments, bool right) {
  const int64_t limit = integer_argument(run, arguments, 1, "maxsplit", -1);
  const Value* separator = arguments.find(0, "sep");
  run.work(self.text->bytes.size() / 8);
  if (separator == nullptr || separator->is(Type::kNone)) {
    return list_of(
        run, right ? split_at_space_right(*self.text, limit) : split_at_space(*self.text, limit));
  }
  if (!separator->is_string() || separator->text->bytes.empty()) {
    return run.fail("split: expected a separator that is a string and not empty");
  }
  return list_of(run, right ? split_at_right(*self.text, separator->bytes(), limit)
                            : split_at(*self.text, separator->bytes(), limit));
}
Value split_left(Run& run, const Value& self, const Arguments& arguments) {
  return split_text(run, self, arguments, false);
}
Value split_right(Run& run, const Value& self, const Arguments& arguments) {
  return split_text(run, self, arguments, true);
}
Value splitlines(Run& run, const Value& self, const Arguments& arguments) {
  return list_of(run, split_lines(*self.text, flag_argument(arguments, 0, "keepends", false)));
}

template <std::string (*kChange)(std::string_view)>
Value changed(Run& run, const Value& self, const Arguments&) {
  return run.text(Text().append_like(kChange(self.bytes()), *self.text));
}

Value replace(Run& run, const Value& self, const Arguments& arguments) {
  return call_builtin(run, *find_filter("replace"), self, arguments);
}

Value join(Run& run, const Value& self, const Arguments& arguments) {
  Text text;
  bool first = true;
  for (const Value& item : items_of(run, arguments.positional[0])) {
    if (!item.is_string()) {
      return run.fail(fmt::format("join: found {}, expected strings", type_name(item)));
    }
    if (!first) text.append(*self.text);
    first = false;
    text.append(*item.text);
    if (!run.work() || text.bytes.size() > run.options().limits.memory_bytes) break;
  }
  return run.text(std::move(text));
}

// Code points before the first or last place of the argument; -1 if there is none.
int64_t position(Run& run, const Value& self, const Arguments& arguments, bool last) {
  const auto& wanted = string_at(run, arguments, 0)->bytes;
  const std::string_view text = self.bytes();
  const size_t at = last ? text.rfind(wanted) : text.find(wanted);
  return at == std::string_view::npos ? -1 : length_of(text.substr(0, at));
}
Value find(Run& run, const Value& self, const Arguments& arguments) {
  return Value::of(position(run, self, arguments, false));
}
Value find_last(Run& run, const Value& self, const Arguments& arguments) {
  return Value::of(position(run, self, arguments, true));
}
Value index(Run& run, const Value& self, const Arguments& arguments) {
  const int64_t at = position(run, self, arguments, false);
  return at < 0 ? run.fail("substring not found") : Value::of(at);
}
Value count(Run& run, const Value& self, const Arguments& arguments) {
  const auto& wanted = string_at(run, arguments, 0)->bytes;
  if (wanted.empty()) return Value::of(length_of(self.bytes()) + 1);
  int64_t found = 0;
  for (size_t at = self.bytes().find(wanted); at != std::string_view::npos;
       at = self.bytes().find(wanted, at + wanted.size())) {
    ++found;
  }
  return Value::of(found);
}

template <bool kFront>
Value remove_affix(Run& run, const Value& self, const Arguments& arguments) {
  const auto& affix = string_at(run, arguments, 0)->bytes;
  const size_t size = self.bytes().size();
  const bool there = kFront ? self.bytes().starts_with(affix) : self.bytes().ends_with(affix);
  if (!there) return self;
  return run.text(kFront ? self.text->slice(affix.size(), size)
                         : self.text->slice(0, size - affix.size()));
}

template <bool (*kIs)(int32_t)>
Value all_are(Run& run, const Value& self, const Arguments&) {
  run.work(self.bytes().size() / 64);
  bool all = !self.bytes().empty();
  for (size_t at = 0; at < self.bytes().size() && all;)
    all = kIs(next_code_point(self.bytes(), at));
  return Value::of(all);
}
bool is_ascii_digit(int32_t point) {
  return point >= '0' && point <= '9';
}

// "{} {0} {name}": the fields that str.format() fills, without conversions and format rules.
Value format_braces(Run& run, const Value& self, const Arguments& arguments) {
  const Text& format = *self.text;
  Text out;
  size_t next = 0;
  for (size_t at = 0; at < format.bytes.size() && run.work();) {
    const size_t brace = format.bytes.find_first_of("{}", at);
    const size_t end = std::min(brace, format.bytes.size());
    out.append(format.slice(at, end));
    if (end == format.bytes.size()) break;
    if (end + 1 < format.bytes.size() && format.bytes[end + 1] == format.bytes[end]) {
      out.append(format.slice(end, end + 1));
      at = end + 2;
      continue;
    }
    const size_t close = format.bytes.find('}', end);
    if (format.bytes[end] == '}' || close == std::string::npos) {
      return run.fail("format: found a single brace, expected a pair");
    }
    const auto field = format.bytes.substr(end + 1, close - end - 1);
    const Value* value = nullptr;
    if (field.empty()) {
      value = arguments.find(next++, "");
    } else if (const auto number = small_number(field)) {
      value = arguments.find(static_cast<size_t>(*number), "");
    } else {
      value = arguments.find(arguments.positional.size(), field);
    }
    if (value == nullptr) {
      return run.fail(fmt::format("format: found the field {{{}}}, expected an argument for it",
                                  field.substr(0, 40)));
    }
    out.append(to_text(run, *value));
    run.take_bytes(out.bytes.size() - end);
    at = close + 1;
  }
  return run.text(std::move(out));
}

constexpr Builtin kStringMethods[] = {
    {"startswith", starts_with, "prefix", 1},
    {"endswith", ends_with, "suffix", 1},
    {"strip", strip_both, "chars"},
    {"lstrip", strip_left, "chars"},
    {"rstrip", strip_right, "chars"},
    {"split", split_left, "sep maxsplit"},
    {"rsplit", split_right, "sep maxsplit"},
    {"splitlines", splitlines, "keepends"},
    {"upper", changed<upper>},
    {"lower", changed<lower>},
    {"title", changed<title>},
    {"capitalize", changed<capitalize>},
    {"replace", replace, "old new count", 2},
    {"join", join, "iterable", 1},
    {"find", find, "sub", 1},
    {"rfind", find_last, "sub", 1},
    {"index", index, "sub", 1},
    {"count", count, "sub", 1},
    {"removeprefix", remove_affix<true>, "prefix", 1},
    {"removesuffix", remove_affix<false>, "suffix", 1},
    {"isdigit", all_are<is_ascii_digit>},
    {"isspace", all_are<is_python_space>},
    {"format", format_braces, "*"},
};

Value append(Run& run, const Value& self, const Arguments& arguments) {
  if (run.take_bytes(sizeof(Value))) self.sequence->items.push_back(arguments.positional[0]);
  return Value::none();
}
Value list_index(Run& run, const Value& self, const Arguments& arguments) {
  for (size_t i = 0; i < self.sequence->items.size() && run.work(); ++i) {
    if (equal(run, self.sequence->items[i], arguments.positional[0])) {
      return Value::of(static_cast<int64_t>(i));
    }
  }
  return run.fail("the value is not in the list");
}
Value list_count(Run& run, const Value& self, const Arguments& arguments) {
  int64_t found = 0;
  for (const Value& item : self.sequence->items) {
    if (run.work() && equal(run, item, arguments.positional[0])) ++found;
  }
  return Value::of(found);
}

constexpr Builtin kListMethods[] = {
    {"append", append, "object", 1},
    {"index", list_index, "value", 1},
    {"count", list_count, "value", 1},
};

Value keys(Run& run, const Value& self, const Arguments&) {
  return run.sequence(items_of(run, self));
}
Value values(Run& run, const Value& self, const Arguments&) {
  std::vector<Value> items;
  for (const auto& entry : self.dict->entries) items.push_back(entry.second);
  return run.sequence(std::move(items));
}
Value items(Run& run, const Value& self, const Arguments&) {
  std::vector<Value> pairs;
  for (const auto& [key, value] : self.dict->entries) {
    pairs.push_back(run.sequence({key, value}, Kind::kTuple));
  }
  return run.sequence(std::move(pairs));
}
Value get(Run& run, const Value& self, const Arguments& arguments) {
  if (const Value* value = self.dict->find(run, arguments.positional[0])) return *value;
  const Value* fallback = arguments.find(1, "default");
  return fallback != nullptr ? *fallback : Value::none();
}

constexpr Builtin kDictMethods[] = {
    {"keys", keys},
    {"values", values},
    {"items", items},
    {"get", get, "key default", 1},
};

// loop.cycle(a, b ...): one after the other.
Value cycle(Run& run, const Value& self, const Arguments& arguments) {
  if (arguments.positional.empty()) return run.fail("no items for cycling given");
  return arguments.positional[self.loop->index % arguments.positional.size()];
}
constexpr Builtin kLoopMethods[] = {{"cycle", cycle, "*"}};

template <size_t kSize>
const Builtin* search(const Builtin (&table)[kSize], std::string_view name) {
  for (const Builtin& method : table) {
    if (method.name == name) return &method;
  }
  return nullptr;
}

}  // namespace

const Builtin* find_method(const Value& object, std::string_view name) {
  switch (object.type) {
    case Type::kString:
      return search(kStringMethods, name);
    case Type::kSequence:
      if (name == "append" && object.sequence->kind != Kind::kList) return nullptr;
      return object.sequence->kind == Kind::kGenerator ? nullptr : search(kListMethods, name);
    case Type::kDict:
      return search(kDictMethods, name);
    case Type::kLoop:
      return search(kLoopMethods, name);
    default:
      return nullptr;
  }
}

}  // namespace prony::token::jinja
