// Filters of lists and mappings.
#include <fmt/format.h>

#include <algorithm>

#include "prony/token/jinja_builtins.hpp"

namespace prony::token::jinja {
namespace {

using Type = Value::Type;
using Kind = Sequence::Kind;

Value length_filter(Run& run, const Value& self, const Arguments&) {
  const auto size = length(self);
  if (size) return Value::of(*size);
  return run.fail(fmt::format("object of type '{}' has no len()", type_name(self)));
}

Value first(Run& run, const Value& self, const Arguments&) {
  const auto items = items_of(run, self);
  return items.empty() ? run.undefined("No first item, sequence was empty.") : items.front();
}

Value last(Run& run, const Value& self, const Arguments&) {
  if (self.is(Type::kSequence) && self.sequence->kind == Kind::kGenerator) {
    return run.fail("'generator' object is not reversible");
  }
  const auto items = items_of(run, self);
  return items.empty() ? run.undefined("No last item, sequence was empty.") : items.back();
}

Value list(Run& run, const Value& self, const Arguments&) {
  return run.sequence(items_of(run, self));
}

Value join(Run& run, const Value& self, const Arguments& arguments) {
  const Text separator = text_argument(run, arguments, 0, "d");
  const Value* path = arguments.find(1, "attribute");
  Text out;
  bool first_one = true;
  for (Value item : items_of(run, self)) {
    if (path != nullptr && !path->is(Type::kNone)) item = nested_item(run, item, *path);
    if (!first_one) out.append(separator);
    first_one = false;
    out.append(to_text(run, item));
    if (!run.work() || out.bytes.size() > run.options().limits.memory_bytes) break;
  }
  return run.text(std::move(out));
}

Value sum(Run& run, const Value& self, const Arguments& arguments) {
  const Value* path = arguments.find(0, "attribute");
  const Value* start = arguments.find(1, "start");
  Value total = start != nullptr ? *start : Value::of(int64_t{0});
  for (Value item : items_of(run, self)) {
    if (path != nullptr && !path->is(Type::kNone)) item = nested_item(run, item, *path);
    total = arithmetic(run, "+", total, item);
    if (!run.work()) break;
  }
  return total;
}

// What an element is ordered and told apart by: an attribute, without case unless asked for.
class Key {
 public:
  Key(Run& run, const Value* path, bool case_sensitive)
      : run_(run), path_(path), case_sensitive_(case_sensitive) {}
  Value operator()(Value item) const {
    if (path_ != nullptr && !path_->is(Type::kNone)) item = nested_item(run_, item, *path_);
    if (!case_sensitive_ && item.is_string()) return run_.text(lower(item.bytes()));
    return item;
  }

 private:
  Run& run_;
  const Value* path_;
  bool case_sensitive_;
};

// Stable, and safe with an order that fails on the way: std::sort is not.
void merge_sort(Run& run, std::vector<std::pair<Value, Value>>& items, bool reverse) {
  std::vector<std::pair<Value, Value>> merged(items.size());
  for (size_t width = 1; width < items.size() && !run.failed(); width *= 2) {
    for (size_t begin = 0; begin < items.size(); begin += 2 * width) {
      size_t a = begin, b = std::min(begin + width, items.size());
      const size_t a_end = b, b_end = std::min(begin + 2 * width, items.size());
      for (size_t out = begin; out < b_end; ++out) {
        bool takes_b = a == a_end;
        if (!takes_b && b < b_end && run.work()) {
          takes_b = reverse ? less(run, items[a].first, items[b].first)
                            : less(run, items[b].first, items[a].first);
        }
        merged[out] = takes_b ? items[b++] : items[a++];
      }
    }
    std::swap(items, merged);
  }
}

Value sorted(Run& run, const std::vector<Value>& values, const Key& key, bool reverse) {
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : values) keyed.emplace_back(key(item), item);
  merge_sort(run, keyed, reverse);
  std::vector<Value> items;
  for (const auto& pair : keyed) items.push_back(pair.second);
  return run.sequence(std::move(items));
}

Value sort(Run& run, const Value& self, const Arguments& arguments) {
  const Key key(run, arguments.find(2, "attribute"),
                flag_argument(arguments, 1, "case_sensitive", false));
  return sorted(run, items_of(run, self), key, flag_argument(arguments, 0, "reverse", false));
}

Value dictsort(Run& run, const Value& self, const Arguments& arguments) {
  if (!self.is(Type::kDict)) {
    return run.fail(fmt::format("dictsort: found {}, expected a mapping", type_name(self)));
  }
  const Text by = text_argument(run, arguments, 1, "by", "key");
  if (by.bytes != "key" && by.bytes != "value") {
    return run.fail("You can only sort by either \"key\" or \"value\"");
  }
  const Value path = Value::of(int64_t{by.bytes == "key" ? 0 : 1});
  std::vector<Value> pairs;
  for (const auto& [name, value] : self.dict->entries) {
    pairs.push_back(run.sequence({name, value}, Kind::kTuple));
  }
  const Key key(run, &path, flag_argument(arguments, 0, "case_sensitive", false));
  return sorted(run, pairs, key, flag_argument(arguments, 2, "reverse", false));
}

Value unique(Run& run, const Value& self, const Arguments& arguments) {
  const Key key(run, arguments.find(1, "attribute"),
                flag_argument(arguments, 0, "case_sensitive", false));
  std::vector<Value> seen, kept;
  for (const Value& item : items_of(run, self)) {
    const Value its = key(item);
    const bool known = std::any_of(seen.begin(), seen.end(), [&](const Value& other) {
      return run.work() && equal(run, other, its);
    });
    if (run.failed()) return {};
    if (known) continue;
    seen.push_back(its);
    kept.push_back(item);
  }
  return run.generator(std::move(kept));
}

template <bool kMax>
Value extreme(Run& run, const Value& self, const Arguments& arguments) {
  const Key key(run, arguments.find(1, "attribute"),
                flag_argument(arguments, 0, "case_sensitive", false));
  const auto items = items_of(run, self);
  if (items.empty()) return run.undefined("No aggregated item, sequence was empty.");
  Value best = items[0], best_key = key(items[0]);
  for (size_t i = 1; i < items.size() && run.work(); ++i) {
    const Value its = key(items[i]);
    if (kMax ? less(run, best_key, its, ">") : less(run, its, best_key)) {
      best = items[i];
      best_key = its;
    }
  }
  return best;
}

Value reverse(Run& run, const Value& self, const Arguments&) {
  if (self.is_string()) {
    return slice(run, self, Value::none(), Value::none(), Value::of(int64_t{-1}));
  }
  auto items = items_of(run, self);
  std::reverse(items.begin(), items.end());
  return run.generator(std::move(items));
}

Value items(Run& run, const Value& self, const Arguments&) {
  if (self.is_undefined()) return run.generator({});
  if (!self.is(Type::kDict)) return run.fail("Can only get item pairs from a mapping.");
  std::vector<Value> pairs;
  for (const auto& [key, value] : self.dict->entries) {
    pairs.push_back(run.sequence({key, value}, Kind::kTuple));
  }
  return run.generator(std::move(pairs));
}

Arguments without_first(const Arguments& arguments, size_t count) {
  Arguments rest;
  for (size_t i = count; i < arguments.positional.size(); ++i) {
    rest.positional.push_back(arguments.positional[i]);
  }
  rest.named = arguments.named;
  return rest;
}

// map(attribute="name"), or map("filter", arguments ...).
Value map(Run& run, const Value& self, const Arguments& arguments) {
  const Value* path = arguments.positional.empty() ? arguments.find(0, "attribute") : nullptr;
  const Value* fallback = arguments.positional.empty() ? arguments.find(0, "default") : nullptr;
  const Builtin* filter = nullptr;
  if (path == nullptr) {
    const Text name = text_argument(run, arguments, 0, "filter");
    filter = find_filter(name.bytes);
    if (filter == nullptr) {
      return run.fail(fmt::format("map: found '{}', expected the name of a filter or attribute=",
                                  name.bytes.substr(0, 40)));
    }
  }
  const Arguments rest = without_first(arguments, 1);
  std::vector<Value> mapped;
  for (const Value& item : items_of(run, self)) {
    if (!run.work()) break;
    if (filter != nullptr) {
      mapped.push_back(call_builtin(run, *filter, item, rest));
      continue;
    }
    const Value value = nested_item(run, item, *path);
    mapped.push_back(value.is_undefined() && fallback != nullptr ? *fallback : value);
  }
  return run.generator(std::move(mapped));
}

// select, reject, selectattr, rejectattr: those that pass a test, or do not.
template <bool kOfAttribute, bool kWanted>
Value choose(Run& run, const Value& self, const Arguments& arguments) {
  constexpr size_t kTest = kOfAttribute ? 1 : 0;  // where its name stands
  if (arguments.positional.size() < kTest) return run.fail("Missing parameter for attribute name");
  const Builtin* test = nullptr;
  if (arguments.positional.size() > kTest) {
    const Text name = to_text(run, arguments.positional[kTest]);
    test = find_test(name.bytes);
    if (test == nullptr) {
      return run.fail(
          fmt::format("found '{}', expected the name of a test", name.bytes.substr(0, 40)));
    }
  }
  const Arguments rest = without_first(arguments, kTest + 1);
  std::vector<Value> kept;
  for (const Value& item : items_of(run, self)) {
    if (!run.work()) break;
    const Value tested = kOfAttribute ? nested_item(run, item, arguments.positional[0]) : item;
    const bool passes =
        test == nullptr ? is_true(tested) : is_true(call_builtin(run, *test, tested, rest));
    if (passes == kWanted) kept.push_back(item);
  }
  return run.generator(std::move(kept));
}

constexpr Builtin kFilters[] = {
    {"count", length_filter},
    {"dictsort", dictsort, "case_sensitive by reverse"},
    {"first", first},
    {"items", items},
    {"join", join, "d attribute"},
    {"last", last},
    {"length", length_filter},
    {"list", list},
    {"map", map, "*"},
    {"max", extreme<true>, "case_sensitive attribute"},
    {"min", extreme<false>, "case_sensitive attribute"},
    {"reject", choose<false, false>, "*"},
    {"rejectattr", choose<true, false>, "*"},
    {"reverse", reverse},
    {"select", choose<false, true>, "*"},
    {"selectattr", choose<true, true>, "*"},
    {"sort", sort, "reverse case_sensitive attribute"},
    {"sum", sum, "attribute start"},
    {"unique", unique, "case_sensitive attribute"},
};

}  // namespace

std::vector<const Builtin*> sequence_filters() {
  std::vector<const Builtin*> all;
  for (const auto& filter : kFilters) all.push_back(&filter);
  return all;
}

}  // namespace prony::token::jinja
