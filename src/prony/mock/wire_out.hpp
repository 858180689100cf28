// WireOut: puts the bytes of a streamed answer on the wire in the framing and pieces that the plan
// asks for. Thread safety: loop thread.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "prony/mock/plan.hpp"
#include "prony/net/http_server.hpp"

namespace prony::mock {

class WireOut {
 public:
  WireOut(const Plan& plan, std::shared_ptr<net::Exchange> exchange, std::string request_id)
      : plan_(plan), exchange_(std::move(exchange)), request_id_(std::move(request_id)) {}

  void head();
  /// One event, or several that leave together. Its last byte goes with the last write.
  void put(std::string_view bytes);
  /// Ends the body as the framing has it; the connection lives on if plan and framing let it.
  void finish();
  /// A whole answer of the plan.
  void whole();

 private:
  void write(std::string_view piece);
  bool keeps() const { return plan_.after == After::kKeep; }

  const Plan& plan_;
  std::shared_ptr<net::Exchange> exchange_;
  std::string request_id_;
};

}  // namespace prony::mock
