// SPDX-License-Identifier: Apache-2.0
#include "bench/queue_gateway/connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <iostream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::gateway_bench {

void Die(absl::string_view why) {
  std::cerr << "gateway_load: " << why << std::endl;
  std::exit(1);  // NOLINT(concurrency-mt-unsafe): one thread
}

Connection::Connection(int port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    Die(absl::StrCat("nothing listens at port ", port));
  }
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

Connection::~Connection() { close(socket_); }

void Connection::Send(absl::string_view bytes) {
  is_busy_ = true;
  while (!bytes.empty()) {
    const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) Die("the server hung up on a request");
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

bool Connection::Receive(Reply* reply) {
  std::array<char, size_t{64} << 10> piece;
  const ssize_t got = recv(socket_, piece.data(), piece.size(), MSG_DONTWAIT);
  if (got == 0) Die("the server hung up");
  if (got < 0) {
    if (errno == EAGAIN || errno == EINTR) return false;
    Die("the connection broke");
  }
  unread_.append(piece.data(), static_cast<size_t>(got));
  return Parse(reply);
}

namespace {

// The text after "NAME:" in a head, in any case; "": it is not there.
absl::string_view HeaderOf(absl::string_view head, absl::string_view name) {
  while (!head.empty()) {
    const size_t end = head.find("\r\n");
    const absl::string_view line = head.substr(0, end);
    if (absl::StartsWithIgnoreCase(line, name) && line.size() > name.size() &&
        line[name.size()] == ':') {
      return absl::StripAsciiWhitespace(line.substr(name.size() + 1));
    }
    if (end == absl::string_view::npos) break;
    head.remove_prefix(end + 2);
  }
  return "";
}

// The data of a chunked body from `at` on; false: its end is not there yet. `end` is after it.
bool Unchunk(absl::string_view bytes, std::string* data, size_t* end) {
  size_t at = *end;
  data->clear();
  while (true) {
    const size_t line = bytes.find("\r\n", at);
    if (line == absl::string_view::npos) return false;
    uint64_t size = 0;
    if (!absl::SimpleHexAtoi(bytes.substr(at, line - at), &size)) Die("a chunk has no size");
    at = line + 2;
    if (bytes.size() < at + size + 2) return false;
    data->append(bytes.data() + at, size);
    at += size + 2;
    if (size == 0) break;
  }
  *end = at;
  return true;
}

}  // namespace

bool Connection::Parse(Reply* reply) {
  const size_t blank = unread_.find("\r\n\r\n");
  if (blank == std::string::npos) return false;
  const absl::string_view head = absl::string_view(unread_).substr(0, blank);
  constexpr size_t kStatusAt = 9;
  if (head.size() < kStatusAt + 3 || !absl::SimpleAtoi(head.substr(kStatusAt, 3), &reply->status)) {
    Die("a reply has no status");
  }
  size_t end = blank + 4;
  if (absl::EqualsIgnoreCase(HeaderOf(head, "transfer-encoding"), "chunked")) {
    if (!Unchunk(unread_, &reply->body, &end)) return false;
  } else {
    size_t length = 0;
    const absl::string_view text = HeaderOf(head, "content-length");
    if (!text.empty() && !absl::SimpleAtoi(text, &length)) Die("a reply has no length");
    if (unread_.size() < end + length) return false;
    reply->body = unread_.substr(end, length);
    end += length;
  }
  unread_.erase(0, end);
  is_busy_ = false;
  return true;
}

}  // namespace muster::gateway_bench
