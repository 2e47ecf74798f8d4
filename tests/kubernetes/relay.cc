// SPDX-License-Identifier: Apache-2.0
#include "tests/kubernetes/relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace muster::kubernetes_test {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

bool SendWhole(int to, const char* bytes, ssize_t size) {
  while (size > 0) {
    const ssize_t sent = send(to, bytes, static_cast<size_t>(size), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent;
    size -= sent;
  }
  return true;
}

}  // namespace

Relay::Relay(int server_port)
    : server_port_(server_port), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = Loopback(0);
  socklen_t length = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener_, generic, length) != 0 || listen(listener_, 16) != 0 ||
      getsockname(listener_, generic, &length) != 0) {
    std::perror("a port for a test's relay");
    std::abort();
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

Relay::~Relay() {
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  std::vector<std::thread> passers;
  std::vector<Pair> pairs;
  {
    base::MutexLock lock(&mu_);
    is_blocked_ = false;
    unblocked_.NotifyAll();
    CutLocked();
    passers = std::move(passers_);
    pairs = std::move(pairs_);
  }
  for (std::thread& passer : passers) passer.join();
  for (const Pair& pair : pairs) {
    close(pair.client);
    close(pair.server);
  }
  close(listener_);
}

void Relay::Cut() {
  base::MutexLock lock(&mu_);
  CutLocked();
}

void Relay::CutLocked() {
  for (const Pair& pair : pairs_) {
    shutdown(pair.client, SHUT_RDWR);
    shutdown(pair.server, SHUT_RDWR);
  }
}

void Relay::Block() {
  base::MutexLock lock(&mu_);
  is_blocked_ = true;
}

void Relay::Unblock() {
  base::MutexLock lock(&mu_);
  CutLocked();
  is_blocked_ = false;
  unblocked_.NotifyAll();
}

void Relay::Accept() {
  while (true) {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Loopback(server_port_);
    if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      shutdown(client, SHUT_RDWR);
    }
    base::MutexLock lock(&mu_);
    pairs_.push_back({client, server});
    passers_.emplace_back([this, client, server] { Pass(client, server); });
    passers_.emplace_back([this, client, server] { Pass(server, client); });
  }
}

void Relay::Pass(int from, int to) {
  char bytes[16384];
  while (true) {
    const ssize_t size = recv(from, bytes, sizeof(bytes), 0);
    {
      base::MutexLock lock(&mu_);
      while (is_blocked_) unblocked_.Wait(&mu_);
    }
    if (size <= 0 || !SendWhole(to, bytes, size)) break;
  }
  shutdown(from, SHUT_RDWR);
  shutdown(to, SHUT_RDWR);
}

}  // namespace muster::kubernetes_test
