#include "prony/token/jinja.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "prony/token/jinja_ast.hpp"
#include "prony/token/jinja_evaluator.hpp"
#include "prony/token/jinja_parser.hpp"
#include "prony/token/jinja_value.hpp"

namespace prony::token::jinja {
namespace {

constexpr size_t kMessageBytes = 300;

// One line of bounded length: parts of it may be a user's.
std::string one_line(std::string message) {
  if (message.size() > kMessageBytes) {
    size_t end = kMessageBytes;
    while (end > 0 && (message[end] & 0xC0) == 0x80) --end;
    message.resize(end);
    message += "...";
  }
  for (char& c : message) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return message;
}

}  // namespace

Template::Template(std::shared_ptr<const Body> body, std::string_view name)
    : body_(std::move(body)), name_(name) {}

Result<Template> Template::parse(std::string_view text, std::string_view name) {
  auto body = parse_body(text, name);
  if (!body) return body.error();
  return Template(std::make_shared<const Body>(std::move(body).value()), name);
}

Result<Text> Template::render(const core::Json& context, const RenderOptions& options) const {
  Run run(options);
  Dict variables;
  if (!context.is_object() && !context.is_null()) {
    return invalid_argument(fmt::format("{}: found variables that are no object", name_));
  }
  for (const auto& [name, value] : context.items()) {
    const bool foreign =
        std::find(options.foreign.begin(), options.foreign.end(), name) != options.foreign.end();
    variables.entries.emplace_back(run.text(name), from_json(run, value, foreign));
  }
  Text out = Evaluator(run, variables).render(*body_);
  if (!run.failed()) return out;
  auto message = one_line(run.message());
  if (run.raised()) return invalid_argument(std::move(message));
  return invalid_argument(fmt::format("{}:{}: {}", name_, run.line(), message));
}

Result<std::string> Template::render(const core::Json& context, const RenderLimits& limits) const {
  RenderOptions options;
  options.limits = limits;
  auto text = render(context, options);
  if (!text) return text.error();
  return std::move(text->bytes);
}

}  // namespace prony::token::jinja
