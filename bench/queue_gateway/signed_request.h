// SPDX-License-Identifier: Apache-2.0

// The requests of the load, signed with the development account's key by the published rules, with
// nothing of the gateway's own code.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::gateway_bench {

// Names in order, values as they mean; they are escaped on the way.
using Query = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method;
  std::string path;  // from the queue on: "/queue/messages"
  Query query;
  std::string body;
};

// Used by one thread.
class Signer {
 public:
  // `host`: HOST:PORT.
  explicit Signer(std::string host) : host_(std::move(host)) {}

  // The bytes to send. A signature is good for its second, and used again for the same head.
  std::string Sign(const Request& request);

 private:
  const std::string& Date();
  std::string Head(const Request& request);

  const std::string host_;
  int64_t second_ = 0;
  std::string date_;   // of that second
  std::string known_;  // what the last head was made of
  std::string head_;
};

}  // namespace muster::gateway_bench
