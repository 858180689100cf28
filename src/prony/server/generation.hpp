// Generation: one HTTP request that generates, with its choices, from the first token to the last
// byte: streams events as tokens come or collects them for one body. It knows formats and the
// exchange, nothing of scheduling. Thread safety: loop thread only.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "prony/net/http_server.hpp"
#include "prony/server/api.hpp"
#include "prony/server/format.hpp"
#include "prony/server/step_loop.hpp"
#include "prony/token/tokenizer.hpp"

namespace prony::server {

class Generation {
 public:
  /// `stream_headers` open the stream or the body. Keeps a reference to `tokenizer`.
  Generation(GenerationRequest request, Formatter formatter, const token::Tokenizer& tokenizer,
             std::shared_ptr<net::Exchange> exchange, net::Headers stream_headers,
             net::Headers body_headers);

  /// One choice per prompt, in order; returns its index.
  void add_choice(Ticket ticket, int32_t prompt_tokens);

  /// Takes one token's news of one of its tickets and writes what there is to write.
  void take(const Output& output);
  /// All choices have ended (or the request failed): the answer is complete.
  bool complete() const { return failed_ || open_choices_ == 0; }
  /// Tickets that have not ended.
  std::vector<Ticket> open_tickets() const;

  const GenerationRequest& request() const { return request_; }
  net::Exchange& exchange() { return *exchange_; }

 private:
  struct Choice {
    Ticket ticket = 0;
    ChoicePiece whole;    // collected when not streaming
    bool opened = false;  // chat: the role chunk is out
    bool ended = false;
  };
  ChoicePiece piece_of(const Output& output, int32_t index) const;
  LogprobEntry logprob_entry(const Output& output) const;
  void stream(Choice& choice, ChoicePiece piece);
  void fail(const Error& error);
  void finish();

  GenerationRequest request_;
  Formatter formatter_;
  const token::Tokenizer& tokenizer_;
  std::shared_ptr<net::Exchange> exchange_;
  net::Headers stream_headers_, body_headers_;
  std::vector<Choice> choices_;
  Usage usage_;
  int32_t open_choices_ = 0;
  bool streaming_ = false;  // the head of the stream is out
  bool failed_ = false;
};

}  // namespace prony::server
