// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/nats/nats_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "tests/fakes/base/killable_process.h"

namespace muster::nats::testing {
namespace {

// A test that is killed, or aborts, and so cannot end its server.
const base::testing::RegisteredProcess holder("holder", [](const std::string& dir) {
  setenv("TMPDIR", dir.c_str(), 1);
  const NatsServer server;
  base::testing::Send(server.url());
  base::testing::AwaitKill();
});

// A bare connection to a server, which greets at once.
class Line {
 public:
  explicit Line(absl::string_view url) {
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(url.substr(url.rfind(':') + 1), &port));
    struct sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const struct timeval patience = {.tv_sec = 20, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    EXPECT_EQ(connect(fd_, reinterpret_cast<const struct sockaddr*>(&address), sizeof(address)), 0);
  }
  ~Line() { close(fd_); }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  bool Greets() {
    char c = 0;
    return read(fd_, &c, 1) == 1 && c == 'I';  // of INFO
  }
  // Waits for the end of the connection; false: it lasts.
  bool Ends() {
    char data[4096];
    ssize_t bytes = 0;
    do {
      bytes = read(fd_, data, sizeof(data));
    } while (bytes > 0);
    return bytes == 0 || errno == ECONNRESET;
  }

 private:
  const int fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

TEST(NatsServerTest, DiesWithATestThatCannotEndIt) {
  const os::TempDir dir;
  base::testing::KillableProcess test("holder", dir.path());
  Line line(test.Receive().value());
  ASSERT_TRUE(line.Greets());
  ASSERT_TRUE(test.Kill());
  EXPECT_TRUE(line.Ends());
}

TEST(NatsServerTest, OutlivesTheThreadThatStartedIt) {
  NatsServer server;
  std::thread([&server] { server.Restart(); }).join();
  EXPECT_TRUE(Line(server.url()).Greets());
}

}  // namespace
}  // namespace muster::nats::testing
