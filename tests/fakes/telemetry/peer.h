// SPDX-License-Identifier: Apache-2.0

// An HTTP client that does only what a test says.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "muster/os/file_descriptor.h"

namespace muster::telemetry {

inline int PortOf(absl::string_view address) {
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port)) << address;
  return port;
}

// A connection to a server on loopback, at HOST:PORT.
class Peer {
 public:
  explicit Peer(absl::string_view server, int receive_bytes = 0)
      : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_bytes > 0) {
      setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
    }
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(PortOf(server)));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }

  // Later reads end after so long without a byte.
  void GiveUpAfter(absl::Duration limit) {
    const timeval time = absl::ToTimeval(limit);
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
  }

  void Send(absl::string_view text) {
    EXPECT_EQ(send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }

  // All that comes until the server hangs up.
  std::string ReadToEnd() {
    std::string all;
    char bytes[4096];
    ssize_t count = 0;
    while ((count = recv(socket_.get(), bytes, sizeof(bytes), 0)) > 0) all.append(bytes, count);
    return all;
  }

  // What comes up to and including `end`, or until the server hangs up.
  std::string ReadUntil(absl::string_view end) {
    std::string all;
    char byte = 0;
    while (!absl::EndsWith(all, end) && recv(socket_.get(), &byte, 1, 0) > 0) all.push_back(byte);
    return all;
  }

  std::string Ask(absl::string_view request) {
    Send(request);
    return ReadToEnd();
  }

 private:
  os::FileDescriptor socket_;
};

}  // namespace muster::telemetry
