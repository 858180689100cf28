// Parses the expressions of a chat template: the part of the grammar of Jinja 3.1 between braces.
// The first error is kept; after it every function returns null and consumes nothing more.
// Thread safety: one thread. Source: Jinja 3.1, src/jinja2/parser.py (precedence).
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/token/jinja_ast.hpp"
#include "prony/token/jinja_lexer.hpp"

namespace prony::token::jinja {

class ExpressionParser {
 public:
  ExpressionParser(std::vector<Token> tokens, std::string_view name)
      : tokens_(std::move(tokens)), name_(name) {}

  /// Commas make a tuple. `conditional` false: no "a if b else c", where an "if" means another
  /// thing. Null after an error.
  ExpressionPtr parse_tuple(bool conditional = true);
  ExpressionPtr parse_expression();
  /// The filters from here on, applied to `input`; `inline_start`: the first has no bar before it.
  ExpressionPtr parse_filters(ExpressionPtr input, bool inline_start = false);
  Target parse_target(bool with_attribute);
  /// (name, name=default ...), as of macros.
  std::vector<std::pair<std::string, ExpressionPtr>> parse_parameters();

  const Token& peek() const { return tokens_[at_]; }
  Token take();
  bool next_is(Token::Kind kind, std::string_view text = {}) const;
  bool take_if(Token::Kind kind, std::string_view text = {});
  bool take_sign(std::string_view sign) { return take_if(Token::Kind::kSign, sign); }
  bool take_name(std::string_view name) { return take_if(Token::Kind::kName, name); }
  bool next_is_sign(std::string_view sign) const { return next_is(Token::Kind::kSign, sign); }
  bool next_is_name(std::string_view name) const { return next_is(Token::Kind::kName, name); }
  void expect_sign(std::string_view sign);
  std::string expect_identifier(std::string_view what);

  void fail_at(int line, std::string_view found, std::string_view expected);
  void fail(std::string_view expected) { fail_at(peek().line, describe(peek()), expected); }
  bool failed() const { return error_.has_value(); }
  const Error& error() const { return *error_; }

 private:
  using Kind = Expression::Kind;
  ExpressionPtr make(Kind kind, int line, std::vector<ExpressionPtr> parts = {},
                     std::string text = {});
  template <class... Parts>
  ExpressionPtr node(Kind kind, int line, std::string text, Parts... parts);
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_comparison();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concat();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary(bool with_filters = true);
  ExpressionPtr parse_primary();
  ExpressionPtr parse_constant(const Token& token);
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  ExpressionPtr parse_postfix(ExpressionPtr node);
  ExpressionPtr parse_subscript(ExpressionPtr object);
  ExpressionPtr parse_test(ExpressionPtr input);
  void parse_arguments(Expression& call);
  bool at_tuple_end() const;

  std::vector<Token> tokens_;
  size_t at_ = 0;
  std::string name_;
  std::optional<Error> error_;
  int nesting_ = 0;
};

}  // namespace prony::token::jinja
