// SPDX-License-Identifier: Apache-2.0

// What an HTTP request and its reply are to the gateway, without the library that reads them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::queue_gateway::http {

// In the order in which they came, or go out.
using Headers = std::vector<std::pair<std::string, std::string>>;

// The first value of the header `name`, in any case; nullopt: there is none.
std::optional<absl::string_view> HeaderOf(const Headers& headers, absl::string_view name);

struct Request {
  std::string method;
  std::string target;  // as sent, still encoded: "/account/queue?comp=metadata"
  Headers headers;     // names as sent, values without the space around them
  std::string body;    // whole; of a chunked one, the data
  std::string peer_ip;
  bool is_https = false;
};

struct Reply {
  int status = 200;
  Headers headers;   // names as they go out; the server adds Content-Length and Connection
  std::string body;  // not sent for HEAD, 204 and 304
};

// The way back of a request. Thread-safe.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // Sends the reply; once.
  virtual void Answer(Reply reply) = 0;
  // For an answer that takes long: calls `gone`, at most once, on a thread of the server, if the
  // peer hangs up before it. Then no answer is needed: let go of the exchange. Called before the
  // handler returns, at most once; after the answer it does nothing.
  virtual void WatchPeer(std::function<void()> gone) = 0;
  // Whether the peer has hung up; asked before the answer.
  virtual bool HasHungUp() { return false; }
};

}  // namespace muster::queue_gateway::http
