// SPDX-License-Identifier: Apache-2.0

// HttpServerTest: the fixture of the tests of the gateway's HTTP server.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "services/queue-gateway/http/server.h"

namespace muster::queue_gateway::http {

// More than the kernel holds for a peer.
inline constexpr size_t kLargeBytes = size_t{64} << 20;
inline constexpr char kEnd[] = "\r\n\r\n";

// Replies with what it got; "/wait" waits for Release first.
class HttpServerTest : public ::testing::Test {
 protected:
  std::unique_ptr<Server> Start(ServerOptions options = {}) {
    options.address = "127.0.0.1:0";
    auto started = Server::Start(
        options, [this](const Request& request) { return Handle(request); },
        [](int status, const Request&) {
          return Reply{status, {{"x-refused", "yes"}}, "refused"};
        });
    EXPECT_TRUE(started.ok()) << started.status();
    return *std::move(started);
  }

  Reply Handle(const Request& request) {
    ++handled_;
    if (request.target == "/wait") {
      base::MutexLock lock(&mu_);
      ++waiting_;
      changed_.NotifyAll();
      while (!released_) changed_.Wait(&mu_);
    }
    if (request.target == "/large") return {200, {}, std::string(kLargeBytes, 'x')};
    if (request.target == "/none") return {204, {{"x-a", "1"}}, ""};
    Reply reply{200, {{"Content-Type", "text/plain"}}, ""};
    reply.body = absl::StrCat(request.method, " ", request.target, " [", request.body, "]");
    if (const auto echo = HeaderOf(request.headers, "x-echo")) {
      reply.headers.emplace_back("x-echo", *echo);
    }
    return reply;
  }

  void AwaitWaiting(int count) {
    base::MutexLock lock(&mu_);
    while (waiting_ < count) changed_.Wait(&mu_);
  }
  void Release() {
    base::MutexLock lock(&mu_);
    released_ = true;
    changed_.NotifyAll();
  }

  std::atomic<int> handled_ = 0;
  base::Mutex mu_;
  base::CondVar changed_;
  int waiting_ ABSL_GUARDED_BY(mu_) = 0;
  bool released_ ABSL_GUARDED_BY(mu_) = false;
};

inline std::string Get(absl::string_view target, absl::string_view headers = "") {
  return absl::StrCat("GET ", target, " HTTP/1.1\r\nHost: here\r\n", headers, "\r\n");
}
inline std::string LastGet(absl::string_view target, absl::string_view headers = "") {
  return Get(target, absl::StrCat(headers, "Connection: close\r\n"));
}
inline std::string Put(absl::string_view headers, absl::string_view body) {
  return absl::StrCat("PUT /q HTTP/1.1\r\nHost: here\r\nConnection: close\r\n", headers, "\r\n",
                      body);
}

}  // namespace muster::queue_gateway::http
