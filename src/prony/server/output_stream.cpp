#include "prony/server/output_stream.hpp"

#include <utility>

namespace prony::server {

const char* finish_name(Finish finish) {
  switch (finish) {
    case Finish::kStop:
      return "stop";
    case Finish::kLength:
      return "length";
    case Finish::kAbort:
      return "abort";
    case Finish::kNone:
      break;
  }
  PRONY_CHECK(false, "an unfinished sequence has no finish reason");
  return "";
}

Result<OutputStream> OutputStream::create(const token::Tokenizer& tokenizer,
                                          const Options& options) {
  auto matcher = token::StopMatcher::create(options.stop);
  if (!matcher) return matcher.error();
  return OutputStream(tokenizer, options, std::move(matcher).value());
}

OutputStream::OutputStream(const token::Tokenizer& tokenizer, const Options& options,
                           token::StopMatcher matcher)
    : tokenizer_(&tokenizer),
      options_(options),
      detokenizer_(tokenizer),
      matcher_(std::move(matcher)) {}

Finish OutputStream::push(token::TokenId id, std::string& text) {
  PRONY_CHECK(!finished_, "token after the end of its sequence");
  ++token_count_;
  const bool may_stop = token_count_ > options_.min_tokens;
  Finish finish = Finish::kNone;
  if (may_stop && !options_.ignore_eos && tokenizer_->is_eos(id)) {
    finish = Finish::kStop;
  } else {
    piece_.clear();
    detokenizer_.push(id, piece_);
    if (!may_stop) {
      text += piece_;
    } else if (matcher_.push(piece_, text)) {
      finished_ = true;
      return Finish::kStop;
    }
    if (token_count_ >= options_.max_tokens) finish = Finish::kLength;
  }
  if (finish != Finish::kNone) {
    finished_ = true;
    flush(text);
  }
  return finish;
}

// The end: what is still held back belongs to the text, unless it completes a stop string.
void OutputStream::flush(std::string& text) {
  piece_.clear();
  detokenizer_.flush(piece_);
  if (!piece_.empty() && matcher_.push(piece_, text)) return;
  matcher_.flush(text);
}

std::optional<std::string> OutputStream::stop_reason() const {
  const auto index = matcher_.matched();
  if (!index) return std::nullopt;
  return options_.stop[*index];
}

}  // namespace prony::server
