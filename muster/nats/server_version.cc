// SPDX-License-Identifier: Apache-2.0
#include "muster/nats/server_version.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "muster/base/status.h"
#include "nlohmann/json.hpp"

namespace muster::nats {
namespace {

constexpr absl::string_view kGreeting = "INFO ";
// Large enough for a cluster, which names all its servers in the greeting.
constexpr size_t kMaxGreetingBytes = size_t{64} << 10;

// An open socket.
class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int get() const { return descriptor_; }

  // Whether it is ready for `events` before `deadline`.
  bool Await(short events, absl::Time deadline) const {
    pollfd waiting{descriptor_, events, 0};
    const absl::Duration left = std::max(absl::ZeroDuration(), deadline - absl::Now());
    return poll(&waiting, 1, static_cast<int>(absl::ToInt64Milliseconds(left))) == 1;
  }

 private:
  const int descriptor_;
};

absl::Status NoGreeting(const std::string& address) {
  return absl::UnavailableError(absl::StrCat(address, " does not say which version it is"));
}

// nullptr: no server listens there.
std::unique_ptr<Socket> ConnectTo(const addrinfo& place, absl::Time deadline) {
  auto made = std::make_unique<Socket>(
      socket(place.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (made->get() < 0) return nullptr;
  if (connect(made->get(), place.ai_addr, place.ai_addrlen) == 0) return made;
  int error = 0;
  socklen_t size = sizeof(error);
  if (errno != EINPROGRESS || !made->Await(POLLOUT, deadline) ||
      getsockopt(made->get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
    return nullptr;
  }
  return made;
}

absl::StatusOr<std::unique_ptr<Socket>> ConnectTo(const std::string& address, absl::Time deadline) {
  const size_t colon = address.rfind(':');
  const std::string host(
      absl::StripPrefix(absl::StripSuffix(absl::string_view(address).substr(0, colon), "]"), "["));
  const std::string port = address.substr(colon + 1);
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &wanted, &found) != 0) return NoGreeting(address);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> places(found, freeaddrinfo);
  for (const addrinfo* place = found; place != nullptr; place = place->ai_next) {
    if (std::unique_ptr<Socket> made = ConnectTo(*place, deadline)) return made;
  }
  return NoGreeting(address);
}

// Reads up to the end of the first line; empty: there was none.
std::string FirstLine(const Socket& socket, absl::Time deadline) {
  std::string text;
  char bytes[4096];
  while (text.size() < kMaxGreetingBytes && socket.Await(POLLIN, deadline)) {
    const ssize_t got = recv(socket.get(), bytes, sizeof(bytes), 0);
    if (got <= 0) break;
    text.append(bytes, static_cast<size_t>(got));
    if (const size_t end = text.find('\r'); end != std::string::npos) return text.substr(0, end);
  }
  return "";
}

}  // namespace

std::vector<std::string> AddressesIn(absl::string_view urls) {
  std::vector<std::string> addresses;
  for (absl::string_view url : absl::StrSplit(urls, ',', absl::SkipWhitespace())) {
    url = absl::StripAsciiWhitespace(url);
    if (const size_t scheme = url.find("://"); scheme != absl::string_view::npos) {
      url.remove_prefix(scheme + 3);
    }
    if (const size_t who = url.rfind('@'); who != absl::string_view::npos) {
      url.remove_prefix(who + 1);
    }
    url = url.substr(0, url.find('/'));
    const size_t colon = url.rfind(':');
    const bool has_port = colon != absl::string_view::npos && !absl::EndsWith(url, "]");
    addresses.push_back(absl::StrCat(url, has_port ? "" : ":4222"));
  }
  return addresses;
}

absl::StatusOr<std::string> ServerVersion(const std::string& address, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Socket> socket, ConnectTo(address, deadline));
  const std::string line = FirstLine(*socket, deadline);
  if (!absl::StartsWith(line, kGreeting)) return NoGreeting(address);
  const nlohmann::json greeting = nlohmann::json::parse(line.substr(kGreeting.size()), nullptr,
                                                        /*allow_exceptions=*/false);
  if (!greeting.is_object()) return NoGreeting(address);
  const auto version = greeting.find("version");
  if (version == greeting.end() || !version->is_string()) return NoGreeting(address);
  return version->get<std::string>();
}

bool CanSyncAlways(absl::string_view version) {
  const std::vector<absl::string_view> parts = absl::StrSplit(version, '.');
  int major = 0, minor = 0;
  if (parts.size() < 2 || !absl::SimpleAtoi(parts[0], &major) ||
      !absl::SimpleAtoi(parts[1], &minor)) {
    return true;
  }
  return major > 2 || (major == 2 && minor >= 10);
}

}  // namespace muster::nats
