#include "prony/net/socket.hpp"

#include <fmt/format.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <memory>

namespace prony::net {
namespace {

using core::Nanos;

void set_option(int fd, int level, int name, int value) {
  ::setsockopt(fd, level, name, &value, sizeof value);
}

struct AddrinfoDeleter {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using AddrinfoList = std::unique_ptr<addrinfo, AddrinfoDeleter>;

/// getaddrinfo for TCP; `rc` is its return value.
AddrinfoList look_up(const std::string& host, uint16_t port, int flags, int& rc) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  rc = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  return AddrinfoList(rc == 0 ? list : nullptr);
}

/// The software receive stamp of a message in CLOCK_REALTIME [ns]; 0 if it has none.
Nanos kernel_stamp_realtime_ns(msghdr& message) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_TIMESTAMPING) continue;
    scm_timestamping stamps{};
    std::memcpy(&stamps, CMSG_DATA(header), sizeof stamps);
    return static_cast<Nanos>(stamps.ts[0].tv_sec) * core::kNanosPerSecond + stamps.ts[0].tv_nsec;
  }
  return 0;
}

}  // namespace

std::string errno_text(int error) {
  std::array<char, 128> buffer{};
  std::string text = ::strerror_r(error, buffer.data(), buffer.size());  // GNU form
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

Result<std::vector<Address>> resolve(const Origin& origin) {
  int rc = 0;
  const AddrinfoList list = look_up(origin.host, origin.port, 0, rc);
  if (rc != 0) {
    std::string reason = rc == EAI_SYSTEM ? errno_text(errno) : ::gai_strerror(rc);
    std::transform(reason.begin(), reason.begin() + 1, reason.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return environment_error(fmt::format("cannot resolve host '{}': {}", origin.host, reason));
  }
  std::vector<Address> found;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(entry->ai_addr, entry->ai_addrlen, text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) == 0) {
      found.push_back({.ip = text.data(), .port = origin.port});
    }
  }
  if (found.empty()) {
    return environment_error(fmt::format("cannot resolve host '{}': no address", origin.host));
  }
  return found;
}

Result<int> start_connect(const Address& address) {
  const auto error = [&address](const std::string& reason) {
    return environment_error(fmt::format("{}:{}: {}", address.ip, address.port, reason));
  };
  int rc = 0;
  const AddrinfoList list = look_up(address.ip, address.port, AI_NUMERICHOST, rc);
  if (rc != 0) return error("not a numeric address");
  const int fd = ::socket(list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return error(errno_text(errno));
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_TIMESTAMPING,
             SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE);
  if (::connect(fd, list->ai_addr, list->ai_addrlen) != 0 && errno != EINPROGRESS) {
    const int reason = errno;
    ::close(fd);
    return error(errno_text(reason));
  }
  return fd;
}

Result<int> listen_on(const std::string& host, uint16_t port) {
  const auto error = [&](const std::string& reason) {
    return environment_error(fmt::format("cannot listen on {}:{}: {}", host, port, reason));
  };
  int rc = 0;
  const AddrinfoList list = look_up(host, port, AI_PASSIVE, rc);
  if (rc != 0) return error(::gai_strerror(rc));
  int reason = 0;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    const int fd = ::socket(entry->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
      set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
      if (::bind(fd, entry->ai_addr, entry->ai_addrlen) == 0 && ::listen(fd, 4096) == 0) return fd;
    }
    reason = errno;
    if (fd >= 0) ::close(fd);
  }
  return error(errno_text(reason));
}

uint16_t local_port(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return 0;
  if (storage.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

int accept_connection(int listener) {
  const int fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd >= 0) set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  return fd;
}

int connect_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

void set_reset_on_close(int fd) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

ssize_t receive_stamped(EventLoop& loop, int fd, std::span<char> buffer, ReceiveStamp& stamp) {
  alignas(cmsghdr) std::array<char, 256> control;  // one SCM_TIMESTAMPING, with room to spare
  iovec piece{.iov_base = buffer.data(), .iov_len = buffer.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t n = ::recvmsg(fd, &message, 0);
  if (n <= 0) return n;
  stamp.user_ns = core::monotonic_ns();
  stamp.kernel_ns = stamp.user_ns;
  const Nanos realtime_ns = kernel_stamp_realtime_ns(message);
  stamp.from_kernel = realtime_ns != 0;
  if (stamp.from_kernel) {
    // The conversion is good to tens of ns; a stamp may not come out later than its read.
    stamp.kernel_ns = std::min(stamp.user_ns, realtime_ns + loop.realtime_to_monotonic_ns());
  }
  return n;
}

ssize_t send_pieces(int fd, std::span<const std::string_view> pieces) {
  std::array<iovec, 4> vector;
  size_t count = 0;
  for (const std::string_view piece : pieces) {
    vector[count++] = {.iov_base = const_cast<char*>(piece.data()), .iov_len = piece.size()};
  }
  msghdr message{};
  message.msg_iov = vector.data();
  message.msg_iovlen = count;
  return ::sendmsg(fd, &message, MSG_NOSIGNAL);
}

}  // namespace prony::net
