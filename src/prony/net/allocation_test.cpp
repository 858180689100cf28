// The client's token path allocates nothing: operator new is counted while tokens stream through
// connection, framer and timers. A file of its own, because it replaces operator new for the whole
// test program.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "prony/core/check.hpp"
#include "prony/net/sse.hpp"
#include "prony/net/test_peer.hpp"

namespace {
thread_local bool t_counting = false;  // the server's thread may allocate
std::atomic<long> g_allocations{0};

void* counted_allocate(std::size_t size) {
  if (t_counting) ++g_allocations;
  void* block = std::malloc(size == 0 ? 1 : size);
  PRONY_CHECK(block != nullptr, "out of memory");
  return block;
}
}  // namespace

// Where it inlines these, g++ takes the free() of a block from our own operator new for a mistake.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

void* operator new(std::size_t size) {
  return counted_allocate(size);
}
void* operator new[](std::size_t size) {
  return counted_allocate(size);
}
void operator delete(void* block) noexcept {
  std::free(block);
}
void operator delete[](void* block) noexcept {
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept {
  std::free(block);
}
void operator delete[](void* block, std::size_t) noexcept {
  std::free(block);
}

namespace prony::net {
namespace {

class TokenCounter final : public HttpConnection::Handler, SseFramer::Sink {
 public:
  TokenCounter(EventLoop& loop, const Origin& origin)
      : loop_(loop),
        request_(format_request("POST", origin, "/", {}, "{}")),
        connection(loop, origin, {.ip = "127.0.0.1", .port = origin.port}, *this),
        stall_(loop, [this] { loop_.stop(); }) {}

  int events = 0;
  bool complete = false;

 private:
  static constexpr int kWarmUp = 100;  // all cuts of the server have been seen

  void on_connected(core::Nanos) override { connection.send(request_); }
  void on_sent(core::Nanos, core::Nanos) override {}
  void on_head(const ResponseHead&, const ReceiveStamp&) override {}
  void on_body(std::string_view piece, const ReceiveStamp& stamp) override {
    framer_.feed(piece, *this);
    stall_.arm(stamp.user_ns + 5 * core::kNanosPerSecond);
    if (events >= kWarmUp) t_counting = true;
  }
  void on_complete(const ReceiveStamp&, bool) override {
    t_counting = false;
    complete = true;
    loop_.stop();
  }
  void on_error(const NetError&, const ReceiveStamp&) override { loop_.stop(); }
  bool on_event(const SseEvent&) override {
    ++events;
    return true;
  }

  EventLoop& loop_;
  std::string request_;
  SseFramer framer_;

 public:
  HttpConnection connection;

 private:
  Timer stall_;
};

TEST(Allocation, TheCounterCounts) {
  t_counting = true;
  int* volatile block = new int(1);  // volatile: a pair that the compiler sees through is no call
  delete block;
  t_counting = false;
  EXPECT_EQ(g_allocations.exchange(0), 1);
}

TEST(Allocation, NoneOnTheTokenPath) {
  constexpr int kEvents = 300;
  RawServer server([&](TestSocket& socket, int) {
    socket.read_until("{}");
    socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < kEvents; ++i) {
      // Whole chunks, halves of chunks and pieces of events.
      std::string chunk = "20\r\ndata: {\"choices\":[{\"text\":\"a\"}\n\n\r\n";
      const size_t cut = static_cast<size_t>(i) % chunk.size();
      socket.write(std::string_view(chunk).substr(0, cut));
      ::usleep(100);
      socket.write(std::string_view(chunk).substr(cut));
      ::usleep(100);
    }
    socket.write("0\r\n\r\n");
  });
  EventLoop loop;
  TokenCounter client(loop, local_origin(server.port()));
  client.connection.connect();
  loop.run();
  EXPECT_TRUE(client.complete);
  EXPECT_EQ(client.events, kEvents);
  EXPECT_EQ(g_allocations.load(), 0);
}

}  // namespace
}  // namespace prony::net
