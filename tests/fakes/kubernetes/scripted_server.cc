// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/kubernetes/scripted_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::kubernetes::testing {
namespace {

// Returns the value of the header "Content-Length: value\r\n"; 0 when there is none.
size_t ContentLength(const std::string& head) {
  constexpr absl::string_view kName = "Content-Length: ";
  const size_t at = head.find(std::string(kName));
  if (at == std::string::npos) return 0;
  size_t length = 0;
  const size_t begin = at + kName.size();
  return absl::SimpleAtoi(head.substr(begin, head.find('\r', begin) - begin), &length) ? length : 0;
}

// nullopt: the client has gone.
std::optional<ScriptedRequest> Receive(int fd) {
  std::string bytes;
  char piece[4096];
  size_t head_end = std::string::npos;
  size_t whole = std::string::npos;
  while (bytes.size() < whole) {
    const ssize_t got = recv(fd, piece, sizeof(piece), 0);
    if (got <= 0) return std::nullopt;
    bytes.append(piece, static_cast<size_t>(got));
    head_end = bytes.find("\r\n\r\n");
    if (head_end != std::string::npos) whole = head_end + 4 + ContentLength(bytes);
  }
  const size_t line_end = bytes.find(" HTTP/");
  return ScriptedRequest{bytes.substr(0, line_end), bytes.substr(0, head_end),
                         bytes.substr(head_end + 4)};
}

void SendAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

}  // namespace

ScriptedAnswer Respond(int code, absl::string_view body, absl::string_view headers) {
  return {absl::StrCat("HTTP/1.1 ", code, " Said\r\nContent-Length: ", body.size(),
                       "\r\nConnection: close\r\n", headers, "\r\n", body)};
}

ScriptedAnswer RespondAndHang(absl::string_view body) {
  return {absl::StrCat("HTTP/1.1 200 Said\r\nConnection: close\r\n\r\n", body), true};
}

ScriptedAnswer Hang() { return {"", true}; }

ScriptedServer::ScriptedServer() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener_, generic, length) != 0 || listen(listener_, 16) != 0 ||
      getsockname(listener_, generic, &length) != 0) {
    std::perror("a port for a test's server");
    std::abort();
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

ScriptedServer::~ScriptedServer() {
  std::vector<std::thread> servers;
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  {
    base::MutexLock lock(&mu_);
    is_ending_ = true;
    for (const int fd : open_) shutdown(fd, SHUT_RDWR);
    servers = std::move(servers_);
  }
  for (std::thread& server : servers) server.join();
  close(listener_);
}

std::string ScriptedServer::url() const { return absl::StrCat("http://127.0.0.1:", port_); }

Access ScriptedServer::access() const {
  Access access;
  access.server = url();
  access.token.data = "secret-token";
  access.default_namespace = "home";
  return access;
}

std::unique_ptr<Client> ScriptedServer::NewClient(base::Clock* clock, ClientOptions options) const {
  return Client::Open(access(), clock, options).value();
}

void ScriptedServer::Expect(ScriptedAnswer answer) {
  base::MutexLock lock(&mu_);
  answers_.push_back(std::move(answer));
}

std::vector<ScriptedRequest> ScriptedServer::Await(size_t count) {
  base::MutexLock lock(&mu_);
  while (requests_.size() < count) arrived_.Wait(&mu_);
  return requests_;
}

std::vector<ScriptedRequest> ScriptedServer::requests() const {
  base::MutexLock lock(&mu_);
  return requests_;
}

void ScriptedServer::Accept() {
  while (true) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    base::MutexLock lock(&mu_);
    open_.push_back(fd);
    servers_.emplace_back([this, fd] { Serve(fd); });
  }
}

void ScriptedServer::Serve(int fd) {
  if (std::optional<ScriptedRequest> request = Receive(fd)) {
    const ScriptedAnswer answer = Next(*std::move(request));
    if (answer.before) answer.before();
    SendAll(fd, answer.bytes);
    if (answer.hangs) HoldOpen(fd);
  }
  base::MutexLock lock(&mu_);
  open_.erase(std::find(open_.begin(), open_.end(), fd));
  close(fd);
}

ScriptedAnswer ScriptedServer::Next(ScriptedRequest request) {
  base::MutexLock lock(&mu_);
  requests_.push_back(std::move(request));
  arrived_.NotifyAll();
  if (answers_.empty()) return Hang();
  ScriptedAnswer answer = std::move(answers_.front());
  answers_.pop_front();
  return answer;
}

void ScriptedServer::HoldOpen(int fd) {
  char ignored[256];
  while (recv(fd, ignored, sizeof(ignored), 0) > 0) {
  }
}

}  // namespace muster::kubernetes::testing
