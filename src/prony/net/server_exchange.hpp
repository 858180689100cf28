// ExchangeImpl: the Exchange of one request on a ServerConnection; a closed one ignores every call.
// Thread safety: loop thread only.
#pragma once
#include <functional>
#include <memory>
#include <utility>

#include "prony/net/server_connection.hpp"

namespace prony::net {

class ServerConnection::ExchangeImpl final : public Exchange {
 public:
  explicit ExchangeImpl(std::shared_ptr<ServerConnection> connection)
      : connection_(std::move(connection)) {}
  ~ExchangeImpl() override;

  void respond(int status, const Headers& headers, std::string_view body) override;
  void start_stream(int status, const Headers& headers) override;
  void write(std::string_view piece) override;
  void write_raw(std::string_view bytes) override;
  void finish(bool keep_alive) override;
  void abort(bool reset) override;
  void on_peer_close(std::function<void()> callback) override;
  bool open() const override { return connection_ != nullptr; }
  size_t queued_bytes() const override;
  core::Nanos last_write_ns() const override;

  /// From the connection, which is closing.
  void peer_closed();

 private:
  std::shared_ptr<ServerConnection> connection_;  // null: over
  std::function<void()> on_peer_close_;
  core::Nanos last_write_ns_ = 0;  // of a finished exchange
};

}  // namespace prony::net
