#include <arpa/inet.h>
#include <ifaddrs.h>

#include <array>

#include "prony/telemetry/session.hpp"

namespace prony::telemetry {

bool is_local_address(const std::string& ip) {
  if (ip.starts_with("127.") || ip == "::1") return true;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return false;
  bool found = false;
  for (const ifaddrs* each = first; each != nullptr && !found; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    const int family = each->ifa_addr->sa_family;
    const void* address = nullptr;
    if (family == AF_INET) {
      address = &reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr;
    } else if (family == AF_INET6) {
      address = &reinterpret_cast<const sockaddr_in6*>(each->ifa_addr)->sin6_addr;
    } else {
      continue;
    }
    std::array<char, INET6_ADDRSTRLEN> text{};
    found = ::inet_ntop(family, address, text.data(), text.size()) != nullptr && ip == text.data();
  }
  ::freeifaddrs(first);
  return found;
}

}  // namespace prony::telemetry
