// ServerConnection: one accepted connection of an HttpServer as a state machine: reads a request,
// hands it over with an Exchange, sends the answer, reads the next one. Requests that come while
// one is being answered (pipelining) wait their turn. Owned by its server and, for as long as it is
// being answered, by the Exchange. Thread safety: loop thread only.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "prony/net/fd_watch.hpp"
#include "prony/net/http_format.hpp"
#include "prony/net/http_parser.hpp"
#include "prony/net/http_server.hpp"

namespace prony::net {

class ServerConnection;

/// What every connection of a server needs of it; outlives none of them: a closed server is a null
/// pointer there.
class ServerContext {
 public:
  ServerContext(EventLoop& loop_in, const HttpServer::Options& options_in,
                HttpServer::Handler handler_in)
      : loop(loop_in), options(options_in), handler(std::move(handler_in)) {}
  virtual ~ServerContext() = default;
  virtual void forget(ServerConnection& connection) = 0;

  EventLoop& loop;
  const HttpServer::Options options;
  const HttpServer::Handler handler;
  HttpDate date;
  bool draining = false;  // answers say Connection: close
};

class ServerConnection final : public FdWatch::Handler,
                               public std::enable_shared_from_this<ServerConnection> {
 public:
  ServerConnection(ServerContext& server, int fd);
  ~ServerConnection() override = default;

  void start();
  void close();
  void drain();  // closes an idle connection
  bool closed() const { return state_ == State::kClosed; }

  // For its Exchange.
  class ExchangeImpl;
  void respond(int status, const Headers& headers, std::string_view body);
  void start_stream(int status, const Headers& headers);
  void write(std::string_view piece);
  void write_raw(std::string_view bytes);
  void finish(bool keep_alive);
  void abort(bool reset);
  size_t queued_bytes() const { return out_.size() - out_sent_; }
  core::Nanos last_write_ns() const { return last_write_ns_; }

 private:
  enum class State {
    kReading,    // a request, or the wait for one
    kAnswering,  // an Exchange is out
    kLingering,  // everything said: waits for the peer to close, so that no RST eats the answer
    kClosed,
  };
  enum class Body { kNone, kWhole, kChunked, kUntilClose, kRaw };

  void on_readable() override;
  void on_writable() override;
  void take_input(std::string_view bytes);
  bool take_request(std::string_view& bytes);
  void dispatch();
  void refuse(int status, std::string_view message);
  void end_of_stream();
  void end_answer(bool keep_alive);
  void on_deadline();
  void rearm();
  std::string head(int status, const Headers& headers, bool& keep_alive);
  void send(std::span<const std::string_view> pieces);
  void send_marked(std::span<const std::string_view> pieces);
  void flush();
  void linger();

  ServerContext* server_;
  EventLoop& loop_;
  FdWatch watch_;
  RequestParser parser_;
  Timer timer_;
  State state_ = State::kReading;
  ExchangeImpl* exchange_ = nullptr;

  uint64_t requests_ = 0;
  std::string in_;                    // input not yet parsed
  bool resuming_ = false;             // a task to parse in_ is posted
  core::Nanos request_since_ns_ = 0;  // idle since, or first byte of the request at

  bool head_only_ = false;  // HEAD: no body in the answer
  bool may_keep_ = false;   // the client would keep the connection
  bool http_1_0_ = false;
  Body body_ = Body::kNone;  // what has been begun

  std::string out_;  // not yet in the kernel, from out_sent_ on
  size_t out_sent_ = 0;
  bool close_after_flush_ = false;
  bool write_failed_ = false;                                      // the read side finds out why
  uint64_t queued_total_ = 0, sent_total_ = 0, marked_total_ = 0;  // bytes
  core::Nanos last_write_ns_ = 0;
  core::Nanos progress_ns_ = 0;  // the peer last took bytes, or the queue began
};

}  // namespace prony::net
