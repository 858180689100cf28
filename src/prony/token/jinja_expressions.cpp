#include "prony/token/jinja_expressions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "prony/token/jinja_builtins.hpp"
#include "prony/token/quote.hpp"

namespace prony::token::jinja {
namespace {

constexpr int kNestingLimit = 100;  // of brackets, signs and conditionals, while parsing
constexpr int kDepthLimit = 250;  // of a tree, which long chains of signs make deep without nesting

}  // namespace

bool ExpressionParser::next_is(Token::Kind kind, std::string_view text) const {
  return peek().kind == kind && (text.empty() || peek().text == text);
}

Token ExpressionParser::take() {
  Token token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool ExpressionParser::take_if(Token::Kind kind, std::string_view text) {
  if (failed() || !next_is(kind, text)) return false;
  take();
  return true;
}

void ExpressionParser::expect_sign(std::string_view sign) {
  if (!take_sign(sign)) fail(fmt::format("'{}'", sign));
}

std::string ExpressionParser::expect_identifier(std::string_view what) {
  if (failed() || !next_is(Token::Kind::kName)) {
    fail(what);
    return {};
  }
  return take().text;
}

void ExpressionParser::fail_at(int line, std::string_view found, std::string_view expected) {
  if (error_) return;
  error_ =
      invalid_argument(fmt::format("{}:{}: found {}, expected {}", name_, line, found, expected));
}

ExpressionPtr ExpressionParser::make(Kind kind, int line, std::vector<ExpressionPtr> parts,
                                     std::string text) {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->line = line;
  node->text = std::move(text);
  for (const auto& part : parts) {
    if (part != nullptr) node->depth = std::max(node->depth, part->depth + 1);
  }
  if (node->depth > kDepthLimit) {
    fail_at(line, fmt::format("an expression of more than {} levels", kDepthLimit),
            "a flatter one");
  }
  node->parts = std::move(parts);
  return node;
}

template <class... Parts>
ExpressionPtr ExpressionParser::node(Kind kind, int line, std::string text, Parts... parts) {
  std::vector<ExpressionPtr> list;
  (list.push_back(std::move(parts)), ...);
  return make(kind, line, std::move(list), std::move(text));
}

bool ExpressionParser::at_tuple_end() const {
  return next_is(Token::Kind::kPrintEnd) || next_is(Token::Kind::kBlockEnd) || next_is_sign(")") ||
         next_is(Token::Kind::kEnd);
}

ExpressionPtr ExpressionParser::parse_tuple(bool conditional) {
  const int line = peek().line;
  std::vector<ExpressionPtr> parts;
  bool is_tuple = false;
  while (!failed() && !at_tuple_end()) {
    parts.push_back(conditional ? parse_expression() : parse_or());
    if (!take_sign(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return make(Kind::kTuple, line, std::move(parts));
  if (parts.empty()) {
    fail("an expression");
    return nullptr;
  }
  return std::move(parts[0]);
}

ExpressionPtr ExpressionParser::parse_expression() {
  if (failed()) return nullptr;
  if (nesting_ >= kNestingLimit) {
    fail_at(peek().line, fmt::format("more than {} levels of nesting", kNestingLimit), "fewer");
    return nullptr;
  }
  ++nesting_;
  auto value = parse_or();
  while (next_is_name("if") && !failed()) {
    const int line = take().line;
    auto condition = parse_or();
    auto other = take_name("else") ? parse_expression() : nullptr;
    value = node(Kind::kConditional, line, {}, std::move(condition), std::move(value),
                 std::move(other));
  }
  --nesting_;
  return value;
}

ExpressionPtr ExpressionParser::parse_or() {
  auto left = parse_and();
  while (next_is_name("or") && !failed()) {
    const int line = take().line;
    auto right = parse_and();
    left = node(Kind::kOr, line, {}, std::move(left), std::move(right));
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_and() {
  auto left = parse_not();
  while (next_is_name("and") && !failed()) {
    const int line = take().line;
    auto right = parse_not();
    left = node(Kind::kAnd, line, {}, std::move(left), std::move(right));
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_not() {
  int count = 0;
  const int line = peek().line;
  while (take_name("not")) ++count;
  auto value = parse_comparison();
  // Two in a row still make a bool of a value.
  for (int i = 0; i < (count > 2 ? 2 - count % 2 : count); ++i) {
    value = node(Kind::kNot, line, {}, std::move(value));
  }
  return value;
}

ExpressionPtr ExpressionParser::parse_comparison() {
  const int line = peek().line;
  auto first = parse_sum();
  std::vector<ExpressionPtr> parts;
  std::vector<std::string> signs;
  parts.push_back(std::move(first));
  while (!failed()) {
    std::string sign;
    for (const char* candidate : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (sign.empty() && take_sign(candidate)) sign = candidate;
    }
    if (sign.empty() && take_name("in")) sign = "in";
    if (sign.empty() && next_is_name("not") && at_ + 1 < tokens_.size() &&
        tokens_[at_ + 1].kind == Token::Kind::kName && tokens_[at_ + 1].text == "in") {
      take();
      take();
      sign = "not in";
    }
    if (sign.empty()) break;
    signs.push_back(std::move(sign));
    parts.push_back(parse_sum());
  }
  if (signs.empty()) return std::move(parts[0]);
  auto comparison = make(Kind::kCompare, line, std::move(parts));
  comparison->signs = std::move(signs);
  return comparison;
}

ExpressionPtr ExpressionParser::parse_sum() {
  auto left = parse_concat();
  while (!failed() && (next_is_sign("+") || next_is_sign("-"))) {
    const Token sign = take();
    auto right = parse_concat();
    left = node(Kind::kArithmetic, sign.line, sign.text, std::move(left), std::move(right));
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_concat() {
  const int line = peek().line;
  std::vector<ExpressionPtr> parts;
  parts.push_back(parse_product());
  while (take_sign("~")) parts.push_back(parse_product());
  if (parts.size() == 1) return std::move(parts[0]);
  return make(Kind::kConcat, line, std::move(parts));
}

ExpressionPtr ExpressionParser::parse_product() {
  auto left = parse_power();
  while (!failed() &&
         (next_is_sign("*") || next_is_sign("/") || next_is_sign("//") || next_is_sign("%"))) {
    const Token sign = take();
    auto right = parse_power();
    left = node(Kind::kArithmetic, sign.line, sign.text, std::move(left), std::move(right));
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_power() {
  auto left = parse_unary();
  while (!failed() && next_is_sign("**")) {
    const int line = take().line;
    auto right = parse_unary();
    left = node(Kind::kArithmetic, line, "**", std::move(left), std::move(right));
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_unary(bool with_filters) {
  if (failed()) return nullptr;
  if (nesting_ >= kNestingLimit) {
    fail_at(peek().line, fmt::format("more than {} levels of nesting", kNestingLimit), "fewer");
    return nullptr;
  }
  ++nesting_;
  const int line = peek().line;
  ExpressionPtr value;
  if (take_sign("-")) {
    value = node(Kind::kNegate, line, {}, parse_unary(false));
  } else if (take_sign("+")) {
    value = node(Kind::kPlus, line, {}, parse_unary(false));
  } else {
    value = parse_primary();
  }
  value = parse_postfix(std::move(value));
  if (with_filters) {
    value = parse_filters(std::move(value));
    while (!failed() && next_is_name("is")) {
      take();
      value = parse_filters(parse_test(std::move(value)));
    }
  }
  --nesting_;
  return value;
}

ExpressionPtr ExpressionParser::parse_constant(const Token& token) {
  auto value = make(Kind::kLiteral, token.line);
  switch (token.kind) {
    case Token::Kind::kInteger:
      value->literal = token.integer;
      return value;
    case Token::Kind::kFloat:
      value->literal = token.real;
      return value;
    case Token::Kind::kString: {
      std::string text = token.text;
      while (!failed() && next_is(Token::Kind::kString)) text += take().text;
      value->literal = Text{std::move(text), {}};
      return value;
    }
    default:
      break;
  }
  if (token.text == "true" || token.text == "True") {
    value->literal = true;
  } else if (token.text == "false" || token.text == "False") {
    value->literal = false;
  } else if (token.text != "none" && token.text != "None") {
    value->kind = Kind::kName;
    value->text = token.text;
  }
  return value;
}

ExpressionPtr ExpressionParser::parse_primary() {
  switch (peek().kind) {
    case Token::Kind::kName:
    case Token::Kind::kString:
    case Token::Kind::kInteger:
    case Token::Kind::kFloat:
      return parse_constant(take());
    default:
      break;
  }
  const int line = peek().line;
  if (take_sign("(")) {
    auto value = next_is_sign(")") ? make(Kind::kTuple, line) : parse_tuple();
    expect_sign(")");
    return value;
  }
  if (take_sign("[")) return parse_list();
  if (take_sign("{")) return parse_dict();
  fail("an expression");
  return nullptr;
}

ExpressionPtr ExpressionParser::parse_list() {
  const int line = peek().line;
  std::vector<ExpressionPtr> parts;
  while (!failed() && !next_is_sign("]")) {
    parts.push_back(parse_expression());
    if (!take_sign(",")) break;
  }
  expect_sign("]");
  return make(Kind::kList, line, std::move(parts));
}

ExpressionPtr ExpressionParser::parse_dict() {
  const int line = peek().line;
  std::vector<ExpressionPtr> parts;
  while (!failed() && !next_is_sign("}")) {
    parts.push_back(parse_expression());
    expect_sign(":");
    parts.push_back(parse_expression());
    if (!take_sign(",")) break;
  }
  expect_sign("}");
  return make(Kind::kDict, line, std::move(parts));
}

ExpressionPtr ExpressionParser::parse_postfix(ExpressionPtr value) {
  while (!failed()) {
    const int line = peek().line;
    if (take_sign(".")) {
      if (next_is(Token::Kind::kInteger)) {
        auto index = parse_constant(take());
        value = node(Kind::kItem, line, {}, std::move(value), std::move(index));
        continue;
      }
      auto attribute = expect_identifier("the name of an attribute");
      value = node(Kind::kAttribute, line, std::move(attribute), std::move(value));
    } else if (take_sign("[")) {
      value = parse_subscript(std::move(value));
    } else if (next_is_sign("(")) {
      value = node(Kind::kCall, line, {}, std::move(value));
      parse_arguments(*value);
    } else {
      break;
    }
  }
  return value;
}

ExpressionPtr ExpressionParser::parse_subscript(ExpressionPtr object) {
  const int line = peek().line;
  ExpressionPtr bounds[3];
  bool is_slice = false;
  const auto at_bound = [this] { return !next_is_sign(":") && !next_is_sign("]"); };
  if (at_bound()) bounds[0] = parse_tuple();
  for (size_t i = 1; i < 3 && take_sign(":"); ++i) {
    is_slice = true;
    if (at_bound()) bounds[i] = parse_expression();
  }
  expect_sign("]");
  if (is_slice) {
    return node(Kind::kSlice, line, {}, std::move(object), std::move(bounds[0]),
                std::move(bounds[1]), std::move(bounds[2]));
  }
  if (bounds[0] == nullptr) fail("an index");
  return node(Kind::kItem, line, {}, std::move(object), std::move(bounds[0]));
}

void ExpressionParser::parse_arguments(Expression& call) {
  expect_sign("(");
  while (!failed() && !next_is_sign(")")) {
    if (next_is(Token::Kind::kName) && tokens_[at_ + 1].kind == Token::Kind::kSign &&
        tokens_[at_ + 1].text == "=") {
      auto name = take().text;
      take();
      call.named.emplace_back(std::move(name), parse_expression());
    } else if (!call.named.empty()) {
      fail("a named argument, as those before it");
    } else {
      call.parts.push_back(parse_expression());
    }
    if (!take_sign(",")) break;
  }
  expect_sign(")");
  for (const auto& part : call.parts) {
    if (part != nullptr) call.depth = std::max(call.depth, part->depth + 1);
  }
  for (const auto& argument : call.named) {
    if (argument.second != nullptr) call.depth = std::max(call.depth, argument.second->depth + 1);
  }
}

ExpressionPtr ExpressionParser::parse_filters(ExpressionPtr input, bool inline_start) {
  while (!failed() && (inline_start || take_sign("|"))) {
    inline_start = false;
    const int line = peek().line;
    const auto name = expect_identifier("the name of a filter");
    auto filter = node(Kind::kFilter, line, name, std::move(input));
    filter->builtin = find_filter(name);
    if (filter->builtin == nullptr && !failed()) {
      fail_at(line, "filter " + quote(name), "one of docs/chat-templates.md");
    }
    if (next_is_sign("(")) parse_arguments(*filter);
    input = std::move(filter);
  }
  return input;
}

ExpressionPtr ExpressionParser::parse_test(ExpressionPtr input) {
  const int line = peek().line;
  const bool negated = take_name("not");
  const auto name = expect_identifier("the name of a test");
  auto test = node(Kind::kTest, line, name, std::move(input));
  test->builtin = find_test(name);
  if (test->builtin == nullptr && !failed()) {
    fail_at(line, "test " + quote(name), "one of docs/chat-templates.md");
  }
  const auto starts_argument = [this] {
    switch (peek().kind) {
      case Token::Kind::kName:
        return !next_is_name("else") && !next_is_name("or") && !next_is_name("and") &&
               !next_is_name("is") && !next_is_name("if") && !next_is_name("in") &&
               !next_is_name("not");
      case Token::Kind::kString:
      case Token::Kind::kInteger:
      case Token::Kind::kFloat:
        return true;
      default:
        return next_is_sign("[") || next_is_sign("{");
    }
  };
  if (next_is_sign("(")) {
    parse_arguments(*test);
  } else if (!failed() && starts_argument()) {
    auto argument = parse_postfix(parse_primary());
    test->parts.push_back(std::move(argument));
  }
  if (negated) test = node(Kind::kNot, line, {}, std::move(test));
  return test;
}

Target ExpressionParser::parse_target(bool with_attribute) {
  Target target;
  if (nesting_ >= kNestingLimit) fail("fewer brackets");
  ++nesting_;
  while (!failed()) {
    Target part;
    if (take_sign("(")) {
      part = parse_target(false);
      expect_sign(")");
    } else {
      part.name = expect_identifier("a name to assign to");
      if (with_attribute && take_sign(".")) part.attribute = expect_identifier("an attribute");
    }
    if (!take_sign(",")) {
      if (target.parts.empty() && !target.is_tuple) {
        target = std::move(part);
      } else {
        target.parts.push_back(std::move(part));
      }
      break;
    }
    target.is_tuple = true;
    target.parts.push_back(std::move(part));
    if (next_is_sign(")") || next_is_name("in") || next_is_sign("=")) break;
  }
  --nesting_;
  return target;
}

std::vector<std::pair<std::string, ExpressionPtr>> ExpressionParser::parse_parameters() {
  std::vector<std::pair<std::string, ExpressionPtr>> parameters;
  expect_sign("(");
  while (!failed() && !next_is_sign(")")) {
    auto name = expect_identifier("the name of a parameter");
    parameters.emplace_back(std::move(name), take_sign("=") ? parse_expression() : nullptr);
    if (!take_sign(",")) break;
  }
  expect_sign(")");
  return parameters;
}

}  // namespace prony::token::jinja
