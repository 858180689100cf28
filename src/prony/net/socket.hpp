// The few socket calls that client and server share. Every socket is nonblocking, close-on-exec and
// without Nagle's delay. Thread safety: functions any thread.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "prony/core/result.hpp"
#include "prony/net/event_loop.hpp"
#include "prony/net/http_client.hpp"

namespace prony::net {

/// strerror without its locks, lower case first letter, for our one-line messages.
std::string errno_text(int error);

/// Starts connect(); the descriptor becomes writable when it is decided. Receive stamps are on.
/// Error: kEnvironment, "IP:PORT: reason".
Result<int> start_connect(const Address& address);

/// Binds and listens. Error: kEnvironment, "cannot listen on HOST:PORT: reason".
Result<int> listen_on(const std::string& host, uint16_t port);
uint16_t local_port(int fd);

/// accept4; -1 with errno as accept4 leaves it.
int accept_connection(int listener);

/// SO_ERROR of a socket whose connect() is decided; 0 if it is connected.
int connect_error(int fd);

/// A failing close() that sends RST instead of FIN.
void set_reset_on_close(int fd);

/// recvmsg into `buffer`. The return value and errno are recvmsg's; `stamp` is filled if > 0.
ssize_t receive_stamped(EventLoop& loop, int fd, std::span<char> buffer, ReceiveStamp& stamp);

/// One sendmsg of up to four pieces, without SIGPIPE; return value and errno are sendmsg's.
ssize_t send_pieces(int fd, std::span<const std::string_view> pieces);

}  // namespace prony::net
