// SPDX-License-Identifier: Apache-2.0
#include "bench/queue_bench/connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "bench/queue_bench/check.h"

namespace muster::queue_bench {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int NewSocket() {
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0) Die("cannot make a socket");
  return made;
}

bool Connects(int socket, int port) {
  const sockaddr_in address = Loopback(port);
  return connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

}  // namespace

bool Listens(int port) {
  const int probe = NewSocket();
  const bool listens = Connects(probe, port);
  close(probe);
  return listens;
}

int FreePort() {
  const int probe = NewSocket();
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(probe, generic, size) != 0 || getsockname(probe, generic, &size) != 0) {
    Die("cannot bind a port of 127.0.0.1");
  }
  close(probe);
  return ntohs(address.sin_port);
}

Connection::Connection(int port) : socket_(NewSocket()) {
  if (!Connects(socket_, port)) Die(absl::StrCat("cannot connect to port ", port));
  const int on = 1;
  if (setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0) {
    Die("cannot set TCP_NODELAY");
  }
}

Connection::~Connection() { close(socket_); }

void Connection::Send(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) Die("the server has gone");
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

std::string Connection::ReadLine() {
  size_t end;
  while ((end = unread_.find("\r\n", at_)) == std::string::npos) ReadMore();
  std::string line = unread_.substr(at_, end - at_);
  at_ = end + 2;
  return line;
}

void Connection::Skip(size_t bytes) {
  while (unread_.size() - at_ < bytes) ReadMore();
  at_ += bytes;
}

void Connection::ReadMore() {
  constexpr size_t kChunk = size_t{64} << 10;
  unread_.erase(0, at_);
  at_ = 0;
  const size_t had = unread_.size();
  unread_.resize(had + kChunk);
  ssize_t got;
  do {
    got = recv(socket_, &unread_[had], kChunk, 0);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) Die("the server has gone");
  unread_.resize(had + static_cast<size_t>(got));
}

}  // namespace muster::queue_bench
