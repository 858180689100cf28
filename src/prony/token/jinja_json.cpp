// tojson: values as Python's json.dumps writes them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prony/token/jinja_builtins.hpp"

namespace prony::token::jinja {
namespace {

using Type = Value::Type;

std::string json_quoted(std::string_view text, bool ascii) {
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const int32_t point = next_code_point(text, at);
    constexpr std::string_view kPlain = "\"\\\n\r\t\f\b", kLetters = "\"\\nrtfb";
    const size_t which =
        point >= 0 && point < 0x80 ? kPlain.find(static_cast<char>(point)) : std::string::npos;
    if (which != std::string::npos) {
      out += '\\';
      out += kLetters[which];
    } else if (point < 0) {
      out += "\uFFFD";
    } else if (point < 0x20 || (ascii && point > 0x7E && point < 0x10000)) {
      out += fmt::format("\\u{:04x}", point);
    } else if (ascii && point >= 0x10000) {
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((point - 0x10000) >> 10),
                         0xDC00 + ((point - 0x10000) & 0x3FF));
    } else {
      out += text.substr(begin, at - begin);
    }
  }
  return out += '"';
}

class Writer {
 public:
  Writer(Run& run, const JsonStyle& style, Text& out) : run_(run), style_(style), out_(out) {}

  void write(const Value& value) {
    if (!run_.work() || !run_.enter()) return;
    if (out_.bytes.size() > run_.options().limits.output_bytes)
      run_.fail("tojson: too long a text");
    switch (value.type) {
      case Type::kNone:
        out_.append("null");
        break;
      case Type::kBool:
        out_.append(value.boolean ? "true" : "false");
        break;
      case Type::kInteger:
        out_.append(fmt::format("{}", value.integer));
        break;
      case Type::kFloat:
        out_.append(number(value.real));
        break;
      case Type::kString:
        out_.append_like(json_quoted(value.bytes(), style_.ascii), *value.text);
        break;
      case Type::kSequence:
        if (value.sequence->kind == Sequence::Kind::kGenerator ||
            value.sequence->kind == Sequence::Kind::kRange) {
          refuse(value);
        } else {
          write_list(value.sequence->items);
        }
        break;
      case Type::kDict:
        write_dict(*value.dict);
        break;
      case Type::kUndefined:
      case Type::kNamespace:
      case Type::kLoop:
      case Type::kFunction:
        refuse(value);
        break;
    }
    run_.leave();
  }

 private:
  void refuse(const Value& value) {
    run_.fail(fmt::format("Object of type {} is not JSON serializable", type_name(value)));
  }

  static std::string number(double real) {
    if (std::isnan(real)) return "NaN";
    if (std::isinf(real)) return real < 0 ? "-Infinity" : "Infinity";
    return repr(real);
  }

  void new_line() {
    if (!style_.indent) return;
    out_.append("\n");
    for (int i = 0; i < level_; ++i) out_.append(*style_.indent);
  }

  void write_list(const std::vector<Value>& items) {
    if (items.empty()) {
      out_.append("[]");
      return;
    }
    out_.append("[");
    ++level_;
    for (size_t i = 0; i < items.size() && !run_.failed(); ++i) {
      if (i > 0) out_.append(style_.item_separator);
      new_line();
      write(items[i]);
    }
    --level_;
    new_line();
    out_.append("]");
  }

  Text key_text(const Value& key) {
    switch (key.type) {
      case Type::kString:
        return *key.text;
      case Type::kNone:
        return Text{"null", {}};
      case Type::kBool:
        return Text{key.boolean ? "true" : "false", {}};
      case Type::kInteger:
        return Text{fmt::format("{}", key.integer), {}};
      case Type::kFloat:
        return Text{number(key.real), {}};
      default:
        run_.fail(
            fmt::format("keys must be str, int, float, bool or None, not {}", type_name(key)));
        return {};
    }
  }

  void write_dict(const Dict& dict) {
    if (dict.entries.empty()) {
      out_.append("{}");
      return;
    }
    auto entries = dict.entries;
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [this](const auto& a, const auto& b) {
        return less(run_, a.first, b.first);
      });
    }
    out_.append("{");
    ++level_;
    for (size_t i = 0; i < entries.size() && !run_.failed(); ++i) {
      if (i > 0) out_.append(style_.item_separator);
      new_line();
      const Text key = key_text(entries[i].first);
      out_.append_like(json_quoted(key.bytes, style_.ascii), key);
      out_.append(style_.key_separator);
      write(entries[i].second);
    }
    --level_;
    new_line();
    out_.append("}");
  }

  Run& run_;
  const JsonStyle& style_;
  Text& out_;
  int level_ = 0;
};

}  // namespace

void append_json(Run& run, const Value& value, const JsonStyle& style, Text& out) {
  Writer(run, style, out).write(value);
}

}  // namespace prony::token::jinja
