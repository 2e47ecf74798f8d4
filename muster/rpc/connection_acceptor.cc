#include "muster/rpc/connection_acceptor.h"

#include <fcntl.h>
#include <malloc.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/os/process_limits.h"
#include "muster/rpc/limits.h"

namespace muster::rpc {

namespace {

// Connections that are accepted of one listener before the others have their turn.
constexpr int kAcceptsInARow = 64;
// After an accept that failed for want of something; the connections wait in the system's queue.
constexpr int kPauseMilliseconds = 100;
// Between two log lines about refused connections.
constexpr absl::Duration kTellPause = absl::Minutes(1);
// When so many connections have closed, and none has come for so long, their memory goes back to
// the system.
constexpr size_t kManyConnections = 1000;
constexpr int kTrimMilliseconds = 10'000;
// A sweep takes at most this share of the thread's time.
constexpr int kSweepShare = 10;

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
os::FileDescriptor ListenOn(sockaddr* address, socklen_t length, int port, bool both_families) {
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
os::FileDescriptor ListenOnAll(int port) {
  sockaddr_in6 any6 = {};
  any6.sin6_family = AF_INET6;
  any6.sin6_addr = in6addr_any;
  os::FileDescriptor listening =
      ListenOn(reinterpret_cast<sockaddr*>(&any6), sizeof(any6), port, true);
  if (listening.get() >= 0) return listening;
  sockaddr_in any4 = {};
  any4.sin_family = AF_INET;
  any4.sin_addr.s_addr = htonl(INADDR_ANY);
  return ListenOn(reinterpret_cast<sockaddr*>(&any4), sizeof(any4), port, false);
}

os::FileDescriptor Reserve() { return os::FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

// 0: no such descriptor.
ino_t InodeOf(int fd) {
  struct stat info = {};
  return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

int HighestDescriptor() {
  const int64_t limit = os::DescriptorLimit();
  return static_cast<int>(std::min<int64_t>(limit - limit / kSpareDescriptorShare, INT32_MAX));
}

}  // namespace

ConnectionAcceptor::ConnectionAcceptor(size_t max_connections, base::Clock* clock)
    : max_connections_(max_connections),
      max_descriptor_(HighestDescriptor()),
      clock_(clock),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      reserve_(Reserve()) {}

ConnectionAcceptor::~ConnectionAcceptor() { Stop(); }

absl::StatusOr<int> ConnectionAcceptor::Listen(const Address& address, Take take) {
  MUSTER_CHECK(!thread_.joinable(), "listens on ", address.ToString(), " while it accepts");
  if (wake_.get() < 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address.ToString(), ": no descriptor is left"));
  }
  int port = address.port;
  std::vector<os::FileDescriptor> sockets;
  if (IsWildcard(address.host)) {
    sockets.push_back(ListenOnAll(port));
  } else {
    const AddressList addresses = Resolve(address.host);
    for (addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
      sockets.push_back(ListenOn(each->ai_addr, each->ai_addrlen, port, false));
      // A name stands for one port of all its addresses, also for one that the system picks.
      if (port == 0 && sockets.back().get() >= 0) port = PortOf(sockets.back().get());
    }
  }
  // A machine without IPv6 has no ::1, and "localhost" works there all the same.
  std::erase_if(sockets, [](const os::FileDescriptor& socket) { return socket.get() < 0; });
  if (sockets.empty()) return CannotListen(address);
  port = PortOf(sockets.front().get());
  for (os::FileDescriptor& socket : sockets) listeners_.push_back({std::move(socket), take});
  return port;
}

void ConnectionAcceptor::Start() {
  thread_ = std::thread([this] { Run(); });
}

void ConnectionAcceptor::Stop() {
  if (thread_.joinable()) {
    MUSTER_CHECK(eventfd_write(wake_.get(), 1) == 0, "the acceptor cannot be woken: ", errno);
    thread_.join();
  }
  listeners_.clear();
}

void ConnectionAcceptor::Run() {
  std::vector<pollfd> waits = {{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
  for (const Listener& listener : listeners_) {
    waits.push_back({.fd = listener.socket.get(), .events = POLLIN, .revents = 0});
  }
  for (bool pause = false;;) {
    // In a pause it waits for the wake-up only.
    const nfds_t watched = pause ? 1 : waits.size();
    const int calm = most_open_ < kManyConnections ? -1 : kTrimMilliseconds;
    const int ready = poll(waits.data(), watched, pause ? kPauseMilliseconds : calm);
    if (ready == 0 && !pause) TrimMemory();
    pause = ready < 0 && errno != EINTR;  // no memory for the moment
    if (ready < 0) continue;
    if (waits[0].revents != 0) return;
    for (size_t i = 1; i < watched; ++i) {
      if (waits[i].revents != 0 && !AcceptFrom(listeners_[i - 1])) pause = true;
    }
  }
}

bool ConnectionAcceptor::AcceptFrom(const Listener& listener) {
  for (int i = 0; i < kAcceptsInARow; ++i) {
    const int fd = accept4(listener.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      Admit(listener, fd);
      continue;
    }
    switch (errno) {
      case EINTR:
      case ECONNABORTED:  // the client has left the queue
        continue;
      case EAGAIN:
        return true;
      case EMFILE:
      case ENFILE:
        if (!ShedOne(listener.socket.get())) return false;
        continue;
      default:  // no memory, or an error of the network that the system passes on
        return false;
    }
  }
  return true;
}

// The system gives each new descriptor the lowest free number. So a number at the bound says that
// as many are open, and what lies above stays for files and for calls to other servers.
void ConnectionAcceptor::Admit(const Listener& listener, int fd) {
  os::FileDescriptor connection(fd);
  if (fd >= max_descriptor_ || !HasRoom()) return NoteRefusal();
  open_[fd] = InodeOf(fd);
  most_open_ = std::max(most_open_, open_.size());
  // A small message goes out at once; a peer that acknowledges nothing is given up (both as gRPC's
  // listener has it).
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT,
            static_cast<int>(absl::ToInt64Milliseconds(kKeepaliveTimeout)));
  listener.take(listener.socket.get(), connection.Release());
}

bool ConnectionAcceptor::HasRoom() {
  if (open_.size() < max_connections_) return true;
  // A flood of connections does not make the thread look through all others for each one.
  if (clock_->Monotonic() < swept_ + kSweepShare * sweep_took_) return false;
  Sweep();
  return open_.size() < max_connections_;
}

void ConnectionAcceptor::Sweep() {
  const absl::Duration began = clock_->Monotonic();
  std::erase_if(open_, [](const auto& entry) { return InodeOf(entry.first) != entry.second; });
  swept_ = clock_->Monotonic();
  sweep_took_ = swept_ - began;
}

// The allocator keeps what thousands of connections have used, in pieces, unless it is asked.
void ConnectionAcceptor::TrimMemory() {
  Sweep();
  if (most_open_ < open_.size() + kManyConnections) return;
  malloc_trim(0);
  most_open_ = open_.size();
}

bool ConnectionAcceptor::ShedOne(int socket) {
  reserve_.Close();
  os::FileDescriptor shed(accept4(socket, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  const bool was_shed = shed.get() >= 0;
  if (was_shed) NoteRefusal();
  shed.Close();
  reserve_ = Reserve();  // another thread may have been faster: then the next one pauses
  return was_shed;
}

void ConnectionAcceptor::NoteRefusal() {
  ++refused_;
  const absl::Duration now = clock_->Monotonic();
  if (now < told_ + kTellPause) return;
  base::Log(base::kWarning, "connections are refused: too many are open",
            {{"refused", refused_ - std::exchange(told_refused_, refused_)},
             {"open", open_.size()},
             {"connections_at_most", max_connections_},
             {"descriptors_at_most", max_descriptor_}});
  told_ = now;
}

}  // namespace muster::rpc
