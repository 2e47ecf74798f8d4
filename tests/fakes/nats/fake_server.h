// SPDX-License-Identifier: Apache-2.0

// A scripted server for one client, which sends data that a real NATS server never would.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace muster::nats {

class FakeServer {
 public:
  // Runs `talk` on its own thread with the socket of the first client. The client must leave, or
  // `talk` must end, before the server is destroyed.
  explicit FakeServer(std::function<void(int guest)> talk)
      : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(place);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&place), size), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&place), &size), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(place.sin_port));
    thread_ =
        std::thread([this, talk = std::move(talk)] { talk(accept(listener_, nullptr, nullptr)); });
  }
  ~FakeServer() {
    thread_.join();
    close(listener_);
  }
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  const std::string& address() const { return address_; }

  // The guest may have hung up already.
  static void Say(int guest, absl::string_view text) {
    (void)send(guest, text.data(), text.size(), MSG_NOSIGNAL);
  }
  // Returns when the client has sent `text`, or has left.
  static void ReceiveUntil(int guest, absl::string_view text) {
    std::string heard;
    char byte = 0;
    while (!absl::EndsWith(heard, text) && recv(guest, &byte, 1, 0) == 1) heard += byte;
  }

 private:
  const int listener_;
  std::string address_;
  std::thread thread_;
};

}  // namespace muster::nats
