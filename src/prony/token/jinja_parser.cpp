#include "prony/token/jinja_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "prony/token/detokenizer.hpp"
#include "prony/token/jinja_expressions.hpp"
#include "prony/token/jinja_lexer.hpp"

namespace prony::token::jinja {
namespace {

constexpr int kBlocksLimit = 100;  // nested

using Kind = Statement::Kind;

class Parser {
 public:
  Parser(std::vector<Token> tokens, std::string_view name) : words_(std::move(tokens), name) {}

  Result<Body> run() {
    Body body = parse_until({});
    if (words_.failed()) return words_.error();
    return body;
  }

 private:
  // Statements up to a block called one of `ends`, whose name has been consumed and is in end_.
  Body parse_until(std::initializer_list<std::string_view> ends) {
    Body body;
    const int line = words_.peek().line;
    if (++blocks_ > kBlocksLimit) words_.fail("fewer nested blocks");
    while (!words_.failed()) {
      if (words_.next_is(Token::Kind::kEnd)) {
        if (ends.size() > 0) {
          words_.fail(fmt::format("{{% {} %}} of line {}", *(ends.end() - 1), line));
        }
        break;
      }
      if (words_.next_is(Token::Kind::kText)) {
        Token text = words_.take();
        Statement& statement = add(body, Kind::kText, text.line);
        statement.text = std::move(text.text);
      } else if (words_.next_is(Token::Kind::kPrintBegin)) {
        const int at = words_.take().line;
        Statement& statement = add(body, Kind::kPrint, at);
        statement.expressions.push_back(words_.parse_tuple());
        if (!words_.take_if(Token::Kind::kPrintEnd)) words_.fail("'}}'");
      } else {
        const int at = words_.take().line;  // kBlockBegin
        const Token name = words_.peek();
        const bool is_end = name.kind == Token::Kind::kName &&
                            std::find(ends.begin(), ends.end(), name.text) != ends.end();
        if (is_end) {
          end_ = words_.take().text;
          break;
        }
        parse_block(body, at);
      }
    }
    --blocks_;
    return body;
  }

  static Statement& add(Body& body, Kind kind, int line) {
    Statement& statement = body.statements.emplace_back();
    statement.kind = kind;
    statement.line = line;
    return statement;
  }

  void end_block() {
    if (!words_.take_if(Token::Kind::kBlockEnd)) words_.fail("'%}'");
  }

  void parse_block(Body& body, int line) {
    const Token token = words_.peek();
    const auto name = words_.expect_identifier("the name of a block");
    if (name == "if") return parse_if(add(body, Kind::kIf, line));
    if (name == "for") return parse_for(add(body, Kind::kFor, line));
    if (name == "set") return parse_set(add(body, Kind::kSet, line));
    if (name == "macro") return parse_macro(add(body, Kind::kMacro, line));
    if (name == "call") return parse_call(add(body, Kind::kCall, line));
    if (name == "with") return parse_with(add(body, Kind::kWith, line));
    if (name == "generation") {  // marks what a trainer learns; nothing to print
      Statement& statement = add(body, Kind::kWith, line);
      end_block();
      return parse_last_body(statement, "endgeneration");
    }
    if (name == "filter") {
      Statement& statement = add(body, Kind::kFilter, line);
      statement.expressions.push_back(words_.parse_filters(captured(line), true));
      end_block();
      return parse_last_body(statement, "endfilter");
    }
    if (name == "break" || name == "continue") {
      if (loops_ == 0) words_.fail_at(line, "'" + name + "'", "it inside a loop");
      add(body, name == "break" ? Kind::kBreak : Kind::kContinue, line);
      return end_block();
    }
    words_.fail_at(token.line, "block " + describe(token),
                   "if, for, set, macro, call, filter, with, generation, break or continue");
  }

  static ExpressionPtr captured(int line) {
    auto value = std::make_unique<Expression>();
    value->kind = Expression::Kind::kCaptured;
    value->line = line;
    return value;
  }

  void parse_last_body(Statement& statement, std::string_view end) {
    statement.bodies.push_back(parse_until({end}));
    end_block();
  }

  void parse_if(Statement& statement) {
    do {
      statement.expressions.push_back(words_.parse_tuple(false));
      end_block();
      statement.bodies.push_back(parse_until({"elif", "else", "endif"}));
    } while (!words_.failed() && end_ == "elif");
    if (words_.failed()) return;
    if (end_ == "else") {
      end_block();
      statement.bodies.push_back(parse_until({"endif"}));
    }
    end_block();
  }

  void parse_for(Statement& statement) {
    statement.target = words_.parse_target(false);
    if (!words_.take_name("in")) words_.fail("'in'");
    statement.expressions.push_back(words_.parse_tuple(false));
    statement.expressions.push_back(words_.take_name("if") ? words_.parse_expression() : nullptr);
    if (words_.next_is_name("recursive")) words_.fail("no recursive loop: they are not understood");
    end_block();
    ++loops_;
    statement.bodies.push_back(parse_until({"else", "endfor"}));
    --loops_;
    if (!words_.failed() && end_ == "else") {
      end_block();
      statement.bodies.push_back(parse_until({"endfor"}));
    }
    end_block();
  }

  void parse_set(Statement& statement) {
    statement.target = words_.parse_target(true);
    if (words_.take_sign("=")) {
      statement.expressions.push_back(words_.parse_tuple());
      return end_block();
    }
    statement.kind = Kind::kSetBlock;
    statement.expressions.push_back(words_.parse_filters(captured(statement.line)));
    end_block();
    parse_last_body(statement, "endset");
  }

  // A break inside the body of a macro cannot end a loop around it.
  void parse_called_body(Statement& statement, std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    parse_last_body(statement, end);
    loops_ = loops;
  }

  void parse_macro(Statement& statement) {
    statement.text = words_.expect_identifier("the name of the macro");
    statement.parameters = words_.parse_parameters();
    end_block();
    parse_called_body(statement, "endmacro");
  }

  void parse_call(Statement& statement) {
    if (words_.next_is_sign("(")) statement.parameters = words_.parse_parameters();
    const Token first = words_.peek();
    statement.expressions.push_back(words_.parse_expression());
    const auto& call = statement.expressions[0];
    if (call != nullptr && call->kind != Expression::Kind::kCall) {
      words_.fail_at(first.line, describe(first), "the call of a macro");
    }
    end_block();
    parse_called_body(statement, "endcall");
  }

  void parse_with(Statement& statement) {
    while (!words_.failed() && !words_.next_is(Token::Kind::kBlockEnd)) {
      auto name = words_.expect_identifier("a name to assign to");
      words_.expect_sign("=");
      statement.parameters.emplace_back(std::move(name), words_.parse_expression());
      if (!words_.take_sign(",")) break;
    }
    end_block();
    parse_last_body(statement, "endwith");
  }

  ExpressionParser words_;
  std::string end_;  // the block that ended the last body
  int blocks_ = 0, loops_ = 0;
};

}  // namespace

Result<Body> parse_body(std::string_view source, std::string_view name) {
  if (!is_valid_utf8(source)) {
    return invalid_argument(
        fmt::format("{}:1: found bytes that are no UTF-8, expected text", name));
  }
  auto tokens = tokenize(source, name);
  if (!tokens) return tokens.error();
  return Parser(std::move(tokens).value(), name).run();
}

}  // namespace prony::token::jinja
