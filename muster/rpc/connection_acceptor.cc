// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/connection_acceptor.h"

#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
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

void SetTcpOption(int socket, int name, int value) {
  setsockopt(socket, IPPROTO_TCP, name, &value, sizeof(value));
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

absl::Status ConnectionAcceptor::Add(ListenSockets sockets, Take take) {
  const std::string address = sockets.address.ToString();
  MUSTER_CHECK(!thread_.joinable(), "takes ", address, " over while it accepts");
  if (wake_.get() < 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address, ": no descriptor is left"));
  }
  listeners_.push_back({std::move(sockets), std::move(take)});
  return absl::OkStatus();
}

void ConnectionAcceptor::Start() {
  thread_ = std::thread([this] { Run(); });
}

std::vector<ListenSockets> ConnectionAcceptor::Stop() {
  if (thread_.joinable()) {
    MUSTER_CHECK(eventfd_write(wake_.get(), 1) == 0, "the acceptor cannot be woken: ", errno);
    thread_.join();
  }
  std::vector<ListenSockets> sockets;
  for (Listener& listener : std::exchange(listeners_, {})) {
    sockets.push_back(std::move(listener.sockets));
  }
  return sockets;
}

void ConnectionAcceptor::Run() {
  std::vector<pollfd> waits = {{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
  std::vector<const Listener*> listener_of = {nullptr};
  for (const Listener& listener : listeners_) {
    for (const os::FileDescriptor& socket : listener.sockets.sockets) {
      waits.push_back({.fd = socket.get(), .events = POLLIN, .revents = 0});
      listener_of.push_back(&listener);
    }
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
      if (waits[i].revents != 0 && !AcceptFrom(waits[i].fd, listener_of[i]->take)) pause = true;
    }
  }
}

bool ConnectionAcceptor::AcceptFrom(int socket, const Take& take) {
  for (int i = 0; i < kAcceptsInARow; ++i) {
    const int fd = accept4(socket, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      Admit(fd, socket, take);
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
        if (!ShedOne(socket)) return false;
        continue;
      default:  // no memory, or an error of the network that the system passes on
        return false;
    }
  }
  return true;
}

// The system gives each new descriptor the lowest free number. So a number at the bound says that
// as many are open, and what lies above stays for files and for calls to other servers.
void ConnectionAcceptor::Admit(int fd, int socket, const Take& take) {
  os::FileDescriptor connection(fd);
  if (fd >= max_descriptor_ || !HasRoom()) return NoteRefusal();
  open_[fd] = InodeOf(fd);
  most_open_ = std::max(most_open_, open_.size());
  // A small message goes out at once; a peer that acknowledges nothing is given up (both as gRPC's
  // listener has it).
  SetTcpOption(fd, TCP_NODELAY, 1);
  SetTcpOption(fd, TCP_USER_TIMEOUT,
               static_cast<int>(absl::ToInt64Milliseconds(kKeepaliveTimeout)));
  take(socket, connection.Release());
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
