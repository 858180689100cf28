#include "prony/server/generation.hpp"

#include <algorithm>
#include <utility>

namespace prony::server {

Generation::Generation(GenerationRequest request, Formatter formatter,
                       const token::Tokenizer& tokenizer, std::shared_ptr<net::Exchange> exchange,
                       net::Headers stream_headers, net::Headers body_headers)
    : request_(std::move(request)),
      formatter_(std::move(formatter)),
      tokenizer_(tokenizer),
      exchange_(std::move(exchange)),
      stream_headers_(std::move(stream_headers)),
      body_headers_(std::move(body_headers)) {}

void Generation::add_choice(Ticket ticket, int32_t prompt_tokens) {
  Choice choice;
  choice.ticket = ticket;
  choice.whole.index = static_cast<int32_t>(choices_.size());
  choices_.push_back(std::move(choice));
  usage_.prompt_tokens += prompt_tokens;
  ++open_choices_;
}

std::vector<Ticket> Generation::open_tickets() const {
  std::vector<Ticket> tickets;
  for (const auto& choice : choices_) {
    if (!choice.ended) tickets.push_back(choice.ticket);
  }
  return tickets;
}

void Generation::take(const Output& output) {
  if (failed_) return;
  if (output.error) return fail(*output.error);
  const auto found = std::find_if(choices_.begin(), choices_.end(),
                                  [&](const Choice& c) { return c.ticket == output.ticket; });
  PRONY_CHECK(found != choices_.end(), "news of a ticket of another request");
  Choice& choice = *found;
  ++usage_.completion_tokens;
  if (output.output_tokens == 1) usage_.cached_tokens += output.cached_tokens;
  auto piece = piece_of(output, choice.whole.index);
  if (output.finish != Finish::kNone) {
    choice.ended = true;
    --open_choices_;
  }
  if (request_.stream) {
    stream(choice, std::move(piece));
  } else {
    choice.whole.text += piece.text;
    choice.whole.token_ids.insert(choice.whole.token_ids.end(), piece.token_ids.begin(),
                                  piece.token_ids.end());
    choice.whole.logprobs.insert(choice.whole.logprobs.end(), piece.logprobs.begin(),
                                 piece.logprobs.end());
    choice.whole.finish = piece.finish;
    choice.whole.stop_reason = piece.stop_reason;
  }
  if (open_choices_ == 0) finish();
}

ChoicePiece Generation::piece_of(const Output& output, int32_t index) const {
  ChoicePiece piece;
  piece.index = index;
  piece.text = output.text;
  piece.finish = output.finish;
  piece.stop_reason = output.stop_reason;
  if (request_.return_token_ids) piece.token_ids.push_back(output.token);
  if (request_.logprobs >= 0) piece.logprobs.push_back(logprob_entry(output));
  return piece;
}

LogprobEntry Generation::logprob_entry(const Output& output) const {
  const token::DecodeOptions kShowSpecial{.skip_special = false};
  LogprobEntry entry;
  entry.token = tokenizer_.decode(std::vector<int32_t>{output.token}, kShowSpecial);
  tokenizer_.append_bytes(output.token, kShowSpecial, entry.bytes);
  entry.logprob = output.logprob;
  for (const auto& [token, logprob] : output.top) {
    entry.top.emplace_back(tokenizer_.decode(std::vector<int32_t>{token}, kShowSpecial), logprob);
  }
  return entry;
}

void Generation::stream(Choice& choice, ChoicePiece piece) {
  const Usage* usage = request_.continuous_usage ? &usage_ : nullptr;
  if (!streaming_) {
    streaming_ = true;
    exchange_->start_stream(200, stream_headers_);
  }
  std::string events;
  if (request_.chat && !choice.opened) {
    // As vLLM: the role comes with the first result, with the usage of no token yet.
    Usage none = usage_;
    none.completion_tokens = 0;
    events += formatter_.role_event(piece.index, usage != nullptr ? &none : nullptr);
  }
  choice.opened = true;
  // A token whose text is still held back makes no event, unless the event tells something else.
  const bool says_something = !piece.text.empty() || piece.finish != Finish::kNone ||
                              !piece.token_ids.empty() || !piece.logprobs.empty() ||
                              usage != nullptr;
  if (says_something) events += formatter_.piece_event(piece, usage);
  if (!events.empty()) exchange_->write(events);
}

// Before the stream has begun an error is an HTTP status; after it, an event and the end marker.
void Generation::fail(const Error& error) {
  failed_ = true;
  const bool refused = error.code == ErrorCode::kInvalidArgument;
  const ApiError api{refused ? 400 : 500, refused ? "BadRequestError" : "InternalServerError",
                     error.message, ""};
  const auto body = format_error(api);
  if (!streaming_) {
    exchange_->respond(api.status, body_headers_, body);
    return;
  }
  exchange_->write(Formatter::error_event(body));
  exchange_->write(Formatter::done_event());
  exchange_->finish();
}

void Generation::finish() {
  if (!request_.stream) {
    std::vector<ChoicePiece> pieces;
    for (auto& choice : choices_) pieces.push_back(std::move(choice.whole));
    exchange_->respond(200, body_headers_, formatter_.whole(pieces, usage_));
    return;
  }
  std::string events;
  if (request_.include_usage) events += formatter_.usage_event(usage_);
  events += Formatter::done_event();
  exchange_->write(events);
  exchange_->finish();
}

}  // namespace prony::server
