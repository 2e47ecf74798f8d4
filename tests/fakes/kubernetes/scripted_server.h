// SPDX-License-Identifier: Apache-2.0

// ScriptedServer: speaks just enough HTTP on a loopback port to misbehave as a test needs.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/string_view.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/kubernetes/access.h"
#include "muster/kubernetes/client.h"

namespace muster::kubernetes::testing {

struct ScriptedRequest {
  std::string line;     // "GET /api/v1/pods?limit=200"
  std::string headers;  // as they came
  std::string body;
};

// The bytes that the server sends for a request. It then closes the connection, unless the answer
// hangs.
struct ScriptedAnswer {
  std::string bytes = "";
  bool hangs = false;  // until the client goes away, or the server ends
  // Called before the bytes are sent.
  std::function<void()> before = nullptr;
};

ScriptedAnswer Respond(int code, absl::string_view body, absl::string_view headers = "");
// Sends a body without an end: the client receives no more than `body`.
ScriptedAnswer RespondAndHang(absl::string_view body);
ScriptedAnswer Hang();

// Thread-safe. Answers the requests in order, each on its own connection, with the answers from
// Expect; further requests hang.
class ScriptedServer {
 public:
  // Ends the process when there is no free port: a test cannot go on.
  ScriptedServer();
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  std::string url() const;
  // Has the token "secret-token".
  Access access() const;
  std::unique_ptr<Client> NewClient(base::Clock* clock, ClientOptions options = {}) const;

  void Expect(ScriptedAnswer answer);
  // Waits for `count` requests in all, and returns them.
  std::vector<ScriptedRequest> Await(size_t count);
  std::vector<ScriptedRequest> requests() const;

 private:
  void Accept();
  void Serve(int fd);
  ScriptedAnswer Next(ScriptedRequest request);
  void HoldOpen(int fd);

  int listener_ = -1;
  int port_ = 0;

  mutable base::Mutex mu_;
  base::CondVar arrived_;
  std::deque<ScriptedAnswer> answers_ ABSL_GUARDED_BY(mu_);
  std::vector<ScriptedRequest> requests_ ABSL_GUARDED_BY(mu_);
  std::vector<std::thread> servers_ ABSL_GUARDED_BY(mu_);
  std::vector<int> open_ ABSL_GUARDED_BY(mu_);
  bool is_ending_ ABSL_GUARDED_BY(mu_) = false;

  std::thread acceptor_;
};

}  // namespace muster::kubernetes::testing
