// Filters of text and numbers.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "prony/token/jinja_builtins.hpp"

namespace prony::token::jinja {
namespace {

using Type = Value::Type;

template <std::string (*kChange)(std::string_view)>
Value changed(Run& run, const Value& self, const Arguments&) {
  const Text text = to_text(run, self);
  return run.text(Text().append_like(kChange(text.bytes), text));
}

// The filter called title, which is not str.title(): words begin behind spaces and brackets.
std::string title_words(std::string_view text) {
  std::string out;
  size_t begin = 0;
  const auto is_border = [](int32_t point) {
    return point == '-' || point == '(' || point == '{' || point == '[' || point == '<' ||
           is_python_space(point);
  };
  const auto flush = [&](size_t end) {
    const auto word = text.substr(begin, end - begin);
    size_t second = 0;
    if (!word.empty()) next_code_point(word, second);
    out += upper(word.substr(0, second));
    out += lower(word.substr(second));
  };
  for (size_t at = 0; at < text.size();) {
    const size_t here = at;
    if (!is_border(next_code_point(text, at))) continue;
    flush(here);
    out += text.substr(here, at - here);
    begin = at;
  }
  flush(text.size());
  return out;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

Value trim(Run& run, const Value& self, const Arguments& arguments) {
  const Value* characters = arguments.find(0, "chars");
  const Text text = to_text(run, self);
  if (characters == nullptr || characters->is(Type::kNone)) {
    return run.text(strip(text, Side::kBoth));
  }
  return run.text(strip(text, Side::kBoth, to_text(run, *characters).bytes));
}

Value replace(Run& run, const Value& self, const Arguments& arguments) {
  const Text text = to_text(run, self);
  const Text from = text_argument(run, arguments, 0, "old");
  const Text to = text_argument(run, arguments, 1, "new");
  const Value* count = arguments.find(2, "count");
  int64_t left = -1;
  if (count != nullptr && !count->is(Type::kNone)) {
    left = integer_argument(run, arguments, 2, "count", -1);
  }
  Text out;
  size_t done = 0;
  if (from.bytes.empty()) {  // between all characters, as Python does
    for (const size_t at : character_offsets(text.bytes)) {
      if (left == 0 || !run.take_bytes(to.bytes.size()) || !run.work()) break;
      if (left > 0) --left;
      out.append(text.slice(done, at)).append(to);
      done = at;
    }
    return run.text(out.append(text.slice(done, text.bytes.size())));
  }
  for (size_t at = text.bytes.find(from.bytes); at != std::string::npos && left != 0;
       at = text.bytes.find(from.bytes, done)) {
    if (!run.take_bytes(to.bytes.size()) || !run.work()) break;
    out.append(text.slice(done, at)).append(to);
    done = at + from.bytes.size();
    if (left > 0) --left;
  }
  return run.text(out.append(text.slice(done, text.bytes.size())));
}

Value indent(Run& run, const Value& self, const Arguments& arguments) {
  const Value* width = arguments.find(0, "width");
  Text margin;
  if (width != nullptr && width->is_string()) {
    margin = *width->text;
  } else {
    const int64_t columns = integer_argument(run, arguments, 0, "width", 4);
    margin.bytes.assign(static_cast<size_t>(std::clamp<int64_t>(columns, 0, 1000)), ' ');
  }
  const bool first = flag_argument(arguments, 1, "first", false);
  const bool blank = flag_argument(arguments, 2, "blank", false);
  const auto lines = split_lines(to_text(run, self).append("\n"));
  Text out;
  for (size_t i = 0; i < lines.size() && run.work(); ++i) {
    if (i > 0) out.append("\n");
    if (i > 0 ? blank || !lines[i].bytes.empty() : first) {
      if (!run.take_bytes(margin.bytes.size())) break;
      out.append(margin);
    }
    out.append(lines[i]);
  }
  return run.text(std::move(out));
}

Value string(Run& run, const Value& self, const Arguments&) {
  return run.text(to_text(run, self));
}

Value word_count(Run& run, const Value& self, const Arguments&) {
  const Text text = to_text(run, self);
  int64_t words = 0;
  bool inside = false;
  for (size_t at = 0; at < text.bytes.size();) {
    const size_t begin = at;
    const int32_t point = next_code_point(text.bytes, at);
    const auto one = std::string_view(text.bytes).substr(begin, at - begin);
    // A letter with case, a digit, "_", or any other character that is no sign of ASCII.
    const bool is_word = point >= 0x80
                             ? !is_python_space(point)
                             : one == "_" || std::isalnum(static_cast<unsigned char>(one[0])) != 0;
    if (is_word && !inside) ++words;
    inside = is_word;
  }
  return Value::of(words);
}

// What int() and float() of Python read; nullopt if they refuse.
std::string number_text(const Text& text) {
  std::string out;
  for (const char c : strip(text, Side::kBoth).bytes) {
    if (c != '_' || out.empty()) out += c;
  }
  return out;
}
std::optional<int64_t> read_integer(const Text& text, int base) {
  std::string digits = number_text(text);
  const bool minus = digits.starts_with('-');
  if (minus || digits.starts_with('+')) digits.erase(0, 1);
  const char prefix = base == 16 ? 'x' : base == 8 ? 'o' : base == 2 ? 'b' : '\0';
  if (prefix != '\0' && digits.size() > 1 && digits[0] == '0' && (digits[1] | 0x20) == prefix) {
    digits.erase(0, 2);
  }
  if (digits.empty() || digits[0] == '-') return std::nullopt;
  if (minus) digits.insert(0, 1, '-');
  int64_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return std::nullopt;
  return value;
}
std::optional<double> read_real(const Text& text) {
  std::string digits = number_text(text);
  if (digits.empty() || digits.find_first_of("xXpP") != std::string::npos) return std::nullopt;
  if (digits.find('(') != std::string::npos) return std::nullopt;  // nan(...) is C's alone
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  if (*end != '\0' || std::isspace(static_cast<unsigned char>(digits[0])) != 0) return std::nullopt;
  return value;
}

std::optional<int64_t> whole(double value) {
  if (!(std::fabs(value) < 9.2e18)) return std::nullopt;
  return static_cast<int64_t>(value);
}

Value to_integer(Run& run, const Value& self, const Arguments& arguments) {
  const Value* fallback = arguments.find(0, "default");
  const auto otherwise = [&] { return fallback != nullptr ? *fallback : Value::of(int64_t{0}); };
  if (self.is_undefined()) return run.fail(self.hint != nullptr ? *self.hint : "undefined value");
  if (self.is_integral()) return Value::of(self.as_integer());
  std::optional<int64_t> value;
  if (self.is(Type::kFloat)) {
    value = whole(self.real);
  } else if (self.is_string()) {
    const int64_t base = integer_argument(run, arguments, 1, "base", 10);
    if (base >= 2 && base <= 36) value = read_integer(*self.text, static_cast<int>(base));
    if (!value) {
      if (const auto real = read_real(*self.text)) value = whole(*real);
    }
  }
  return value ? Value::of(*value) : otherwise();
}

Value to_real(Run& run, const Value& self, const Arguments& arguments) {
  if (self.is_undefined()) return run.fail(self.hint != nullptr ? *self.hint : "undefined value");
  if (self.is_number()) return Value::of(self.as_real());
  if (self.is_string()) {
    if (const auto value = read_real(*self.text)) return Value::of(*value);
  }
  const Value* fallback = arguments.find(0, "default");
  return fallback != nullptr ? *fallback : Value::of(0.0);
}

Value absolute(Run& run, const Value& self, const Arguments&) {
  if (self.is(Type::kFloat)) return Value::of(std::fabs(self.real));
  if (!self.is_number()) {
    return run.fail(fmt::format("bad operand type for abs(): '{}'", type_name(self)));
  }
  return self.as_integer() < 0 ? negate(run, self, true) : Value::of(self.as_integer());
}

Value round(Run& run, const Value& self, const Arguments& arguments) {
  const int64_t precision =
      std::clamp<int64_t>(integer_argument(run, arguments, 0, "precision", 0), -300, 300);
  const Text method = text_argument(run, arguments, 1, "method", "common");
  if (!self.is_number()) {
    return run.fail(fmt::format("round: found {}, expected a number", type_name(self)));
  }
  if (method.bytes == "common") {
    if (self.is_integral() && precision >= 0) return Value::of(self.as_integer());
    const double value = self.as_real();
    if (precision >= 0) {
      // printf rounds the exact value, ties to even, as Python does.
      return Value::of(std::strtod(fmt::format("{:.{}f}", value, precision).c_str(), nullptr));
    }
    const double unit = std::pow(10.0, static_cast<double>(-precision));
    const double rounded = std::nearbyint(value / unit) * unit;
    if (!self.is_integral()) return Value::of(rounded);
    return Value::of(whole(rounded).value_or(0));
  }
  if (method.bytes != "ceil" && method.bytes != "floor") {
    return run.fail("method must be common, ceil or floor");
  }
  const double unit = std::pow(10.0, static_cast<double>(precision));
  const double scaled = self.as_real() * unit;
  return Value::of((method.bytes == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit);
}

Value default_value(Run&, const Value& self, const Arguments& arguments) {
  static const Text kEmpty;
  const Value* fallback = arguments.find(0, "default_value");
  const bool boolean = flag_argument(arguments, 1, "boolean", false);
  if (!self.is_undefined() && !(boolean && !is_true(self))) return self;
  return fallback != nullptr ? *fallback : Value::of(&kEmpty);
}

Value format(Run& run, const Value& self, const Arguments& arguments) {
  Value mapping;
  if (!arguments.named.empty()) {
    Dict* dict = run.dict();
    for (const auto& [name, value] : arguments.named) run.insert(*dict, run.text(name), value);
    mapping = Value::of(dict);
  }
  return format_percent(run, to_text(run, self), arguments.positional, mapping);
}

Value to_json(Run& run, const Value& self, const Arguments& arguments) {
  JsonStyle style;
  style.ascii = flag_argument(arguments, 0, "ensure_ascii", false);
  style.sort_keys = flag_argument(arguments, 3, "sort_keys", false);
  const Value* indent = arguments.find(1, "indent");
  if (indent != nullptr && indent->is_integral()) {
    const auto width = std::clamp<int64_t>(indent->as_integer(), 0, 100);
    style.indent = Text{std::string(static_cast<size_t>(width), ' '), {}};
  } else if (indent != nullptr && indent->is_string()) {
    style.indent = *indent->text;
  }
  style.item_separator.bytes = style.indent ? "," : ", ";
  style.key_separator.bytes = ": ";
  const Value* separators = arguments.find(2, "separators");
  if (separators != nullptr && !separators->is(Type::kNone)) {
    const auto pair = items_of(run, *separators);
    if (pair.size() != 2) return run.fail("tojson: expected two separators");
    style.item_separator = to_text(run, pair[0]);
    style.key_separator = to_text(run, pair[1]);
  }
  Text out;
  append_json(run, self, style, out);
  return run.text(std::move(out));
}

Value same(Run&, const Value& self, const Arguments&) {
  return self;
}

constexpr Builtin kFilters[] = {
    {"abs", absolute},
    {"capitalize", changed<capitalize>},
    {"d", default_value, "default_value boolean"},
    {"default", default_value, "default_value boolean"},
    {"e", changed<escaped>},
    {"escape", changed<escaped>},
    {"float", to_real, "default"},
    {"format", format, "*"},
    {"indent", indent, "width first blank"},
    {"int", to_integer, "default base"},
    {"lower", changed<lower>},
    {"replace", replace, "old new count", 2},
    {"round", round, "precision method"},
    {"safe", same},
    {"string", string},
    {"title", changed<title_words>},
    {"tojson", to_json, "ensure_ascii indent separators sort_keys"},
    {"trim", trim, "chars"},
    {"upper", changed<upper>},
    {"wordcount", word_count},
};

}  // namespace

std::vector<const Builtin*> text_filters() {
  std::vector<const Builtin*> list;
  for (const auto& filter : kFilters) list.push_back(&filter);
  return list;
}

}  // namespace prony::token::jinja
