// SPDX-License-Identifier: Apache-2.0

// ReflectionClient: asks a server what it serves, as grpcurl does.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grpcpp/channel.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace muster::rpc {

// Debian has no stubs of the reflection service, and stubs of our own would clash with those inside
// gRPC's library: so this client uses the messages by name. A failed call fails the test.
class ReflectionClient {
 public:
  explicit ReflectionClient(std::shared_ptr<grpc::Channel> channel)
      : channel_(std::move(channel)) {}

  std::vector<std::string> Services();
  // Returns the name of the file that describes `symbol`; "" when the server has none.
  std::string FileOf(const std::string& symbol);

 private:
  // Returns the answer to a request in protobuf's text form.
  std::unique_ptr<google::protobuf::Message> Ask(const std::string& request);

  const std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace muster::rpc
