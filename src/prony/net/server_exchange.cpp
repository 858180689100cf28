#include "prony/net/server_exchange.hpp"

#include "prony/core/check.hpp"

namespace prony::net {

ServerConnection::ExchangeImpl::~ExchangeImpl() {
  if (connection_ == nullptr) return;
  if (connection_->body_ == Body::kNone) {
    connection_->respond(500, {{"Content-Type", "application/json"}},
                         R"({"error":{"message":"the request was dropped",)"
                         R"("type":"internal_error","param":null,"code":500}})");
  } else {
    connection_->abort(false);
  }
}

void ServerConnection::ExchangeImpl::respond(int status, const Headers& headers,
                                             std::string_view body) {
  if (connection_ == nullptr) return;
  const auto connection = std::exchange(connection_, nullptr);
  connection->respond(status, headers, body);
  last_write_ns_ = connection->last_write_ns();
  on_peer_close_ = nullptr;
}

void ServerConnection::ExchangeImpl::start_stream(int status, const Headers& headers) {
  if (connection_ != nullptr) connection_->start_stream(status, headers);
}

void ServerConnection::ExchangeImpl::write(std::string_view piece) {
  if (connection_ != nullptr) connection_->write(piece);
}

void ServerConnection::ExchangeImpl::write_raw(std::string_view bytes) {
  if (connection_ != nullptr) connection_->write_raw(bytes);
}

void ServerConnection::ExchangeImpl::finish(bool keep_alive) {
  if (connection_ == nullptr) return;
  const auto connection = std::exchange(connection_, nullptr);
  last_write_ns_ = connection->last_write_ns();
  connection->finish(keep_alive);
  on_peer_close_ = nullptr;
}

void ServerConnection::ExchangeImpl::abort(bool reset) {
  if (connection_ == nullptr) return;
  const auto connection = std::exchange(connection_, nullptr);
  last_write_ns_ = connection->last_write_ns();
  connection->abort(reset);
  on_peer_close_ = nullptr;
}

void ServerConnection::ExchangeImpl::on_peer_close(std::function<void()> callback) {
  if (connection_ != nullptr) on_peer_close_ = std::move(callback);
}

size_t ServerConnection::ExchangeImpl::queued_bytes() const {
  return connection_ == nullptr ? 0 : connection_->queued_bytes();
}

core::Nanos ServerConnection::ExchangeImpl::last_write_ns() const {
  return connection_ == nullptr ? last_write_ns_ : connection_->last_write_ns();
}

void ServerConnection::ExchangeImpl::peer_closed() {
  last_write_ns_ = connection_->last_write_ns();
  connection_ = nullptr;
  // Moved out first: the callback may drop the last reference to this exchange.
  if (const auto callback = std::exchange(on_peer_close_, nullptr)) callback();
}

}  // namespace prony::net
