// SPDX-License-Identifier: Apache-2.0
#include "muster/os/notify_socket.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace muster::os {

namespace {

constexpr char kReady[] = "READY=1";
// systemd has no word for a service that is not ready any more, and ignores names that begin so.
constexpr char kNotReady[] = "X_MUSTER_READY=0";
constexpr char kStopping[] = "STOPPING=1";
constexpr char kMetrics[] = "X_MUSTER_METRICS=";

constexpr int kMaxDatagrams = 64;
constexpr size_t kMaxDatagramBytes = 4096;
constexpr timeval kSendLimit = {.tv_sec = 1, .tv_usec = 0};

struct UnixAddress {
  sockaddr_un address = {};
  socklen_t size = 0;
};

absl::StatusOr<UnixAddress> AddressOf(absl::string_view text) {
  UnixAddress result;
  result.address.sun_family = AF_UNIX;
  if ((text.front() != '/' && text.front() != '@') ||
      text.size() >= sizeof(result.address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat(kNotifySocketVariable, " is '", text, "', neither a path nor @NAME"));
  }
  std::copy(text.begin(), text.end(), std::begin(result.address.sun_path));
  if (text.front() == '@') result.address.sun_path[0] = '\0';
  result.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size());
  return result;
}

// Whether a datagram's sender may speak for the program.
bool IsOwn(msghdr* message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender;
    std::memcpy(&sender, CMSG_DATA(part), sizeof(sender));
    return sender.uid == geteuid() || sender.uid == 0;
  }
  return false;
}

}  // namespace

absl::StatusOr<NotifySocket> NotifySocket::Open() {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.get() < 0) return absl::ErrnoToStatus(errno, "socket");
  const int on = 1;
  if (setsockopt(socket.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0) {
    return absl::ErrnoToStatus(errno, "SO_PASSCRED");
  }
  // Without a path the kernel picks a name that is free: a NUL, and some digits.
  UnixAddress own;
  own.address.sun_family = AF_UNIX;
  auto* const address = reinterpret_cast<sockaddr*>(&own.address);
  if (bind(socket.get(), address, sizeof(sa_family_t)) != 0) {
    return absl::ErrnoToStatus(errno, "bind");
  }
  own.size = sizeof(own.address);
  if (getsockname(socket.get(), address, &own.size) != 0) {
    return absl::ErrnoToStatus(errno, "getsockname");
  }
  std::string name(&own.address.sun_path[0], own.size - offsetof(sockaddr_un, sun_path));
  name.front() = '@';
  return NotifySocket(std::move(socket), std::move(name));
}

void NotifySocket::ReadLines(absl::string_view datagram, std::optional<bool>* readiness) {
  for (absl::string_view line : absl::StrSplit(datagram, '\n')) {
    if (line == kReady) *readiness = true;
    if (line == kNotReady || line == kStopping) *readiness = false;
    if (absl::ConsumePrefix(&line, kMetrics)) metrics_ = std::string(line);
  }
}

std::optional<bool> NotifySocket::TakeReadiness() {
  std::optional<bool> readiness;
  for (int i = 0; i < kMaxDatagrams; ++i) {
    std::array<char, kMaxDatagramBytes> bytes;
    // Room for credentials alone: descriptors that are sent along are closed by the kernel.
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control;
    iovec place{bytes.data(), bytes.size()};
    msghdr message = {};
    message.msg_iov = &place;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    if (got < 0) break;
    if (IsOwn(&message)) ReadLines({bytes.data(), static_cast<size_t>(got)}, &readiness);
  }
  return readiness;
}

absl::Status Notifier::TellReady(bool ready, absl::string_view status,
                                 absl::string_view metrics) const {
  if (address_.empty()) return absl::OkStatus();
  const absl::StatusOr<UnixAddress> to = AddressOf(address_);
  if (!to.ok()) return to.status();
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return absl::ErrnoToStatus(errno, "socket");
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kSendLimit, sizeof(kSendLimit));
  std::string text = absl::StrCat(ready ? kReady : kNotReady, "\nSTATUS=", status);
  if (!metrics.empty()) absl::StrAppend(&text, "\n", kMetrics, metrics);
  if (sendto(socket.get(), text.data(), text.size(), MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&to->address), to->size) < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(kNotifySocketVariable, " ", address_));
  }
  return absl::OkStatus();
}

std::string TakeNotifyAddress() {
  const char* const found = std::getenv(kNotifySocketVariable);  // NOLINT(concurrency-mt-unsafe)
  const std::string address = found == nullptr ? "" : found;
  unsetenv(kNotifySocketVariable);  // NOLINT(concurrency-mt-unsafe): no other thread runs
  return address;
}

}  // namespace muster::os
