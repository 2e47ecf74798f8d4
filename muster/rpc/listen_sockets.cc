// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/listen_sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster::rpc {

namespace {

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

absl::Status CannotListen(const Address& address) {
  return absl::UnavailableError(absl::StrCat("cannot listen on ", address.ToString(),
                                             ": it is in use, or not this machine's"));
}

AddressList Resolve(const std::string& host) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), "0", &hints, &found) != 0) found = nullptr;
  return {found, freeaddrinfo};
}

int PortOf(int socket) {
  sockaddr_storage bound = {};
  socklen_t length = sizeof(bound);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &length) != 0) return 0;
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                           : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
}

void SetPort(sockaddr* address, int port) {
  const in_port_t in_order = htons(static_cast<uint16_t>(port));
  if (address->sa_family == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = in_order;
  if (address->sa_family == AF_INET) reinterpret_cast<sockaddr_in*>(address)->sin_port = in_order;
}

bool SetOption(int socket, int level, int name, int value) {
  return setsockopt(socket, level, name, &value, sizeof(value)) == 0;
}

// No descriptor: this address cannot be listened on.
os::FileDescriptor OpenSocket(sockaddr* address, socklen_t length, int port, bool both_families) {
  SetPort(address, port);
  os::FileDescriptor listening(
      socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int fd = listening.get();
  // A server that is started again takes its port back from connections that still linger.
  const bool open = fd >= 0 && SetOption(fd, SOL_SOCKET, SO_REUSEADDR, 1) &&
                    (address->sa_family != AF_INET6 ||
                     SetOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, both_families ? 0 : 1)) &&
                    bind(fd, address, length) == 0 && listen(fd, SOMAXCONN) == 0;
  return open ? std::move(listening) : os::FileDescriptor();
}

bool IsWildcard(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

// The wildcards of both families stand for all addresses of the machine, as in gRPC.
os::FileDescriptor OpenWildcard(int port) {
  sockaddr_in6 any6 = {};
  any6.sin6_family = AF_INET6;
  any6.sin6_addr = in6addr_any;
  os::FileDescriptor listening =
      OpenSocket(reinterpret_cast<sockaddr*>(&any6), sizeof(any6), port, true);
  if (listening.get() >= 0) return listening;
  sockaddr_in any4 = {};
  any4.sin_family = AF_INET;
  any4.sin_addr.s_addr = htonl(INADDR_ANY);
  return OpenSocket(reinterpret_cast<sockaddr*>(&any4), sizeof(any4), port, false);
}

}  // namespace

absl::StatusOr<ListenSockets> ListenOn(const Address& address) {
  ListenSockets listening{address, {}};
  int& port = listening.address.port;
  std::vector<os::FileDescriptor>& sockets = listening.sockets;
  if (IsWildcard(address.host)) {
    sockets.push_back(OpenWildcard(port));
  } else {
    const AddressList addresses = Resolve(address.host);
    for (addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
      sockets.push_back(OpenSocket(each->ai_addr, each->ai_addrlen, port, false));
      // A name stands for one port of all its addresses, also for one that the system picks.
      if (port == 0 && sockets.back().get() >= 0) port = PortOf(sockets.back().get());
    }
  }
  // A machine without IPv6 has no ::1, and "localhost" works there all the same.
  std::erase_if(sockets, [](const os::FileDescriptor& socket) { return socket.get() < 0; });
  if (sockets.empty()) return CannotListen(address);
  port = PortOf(sockets.front().get());
  return listening;
}

}  // namespace muster::rpc
