// SPDX-License-Identifier: Apache-2.0
#include "muster/os/notify_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <string>

#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"

namespace muster::os {
namespace {

TEST(NotifySocketTest, HearsWhatWasToldLast) {
  NotifySocket socket = NotifySocket::Open().value();
  const Notifier program(socket.name());
  EXPECT_EQ(socket.TakeReadiness(), std::nullopt);
  ASSERT_TRUE(program.TellReady(true, "ready").ok());
  EXPECT_EQ(socket.TakeReadiness(), true);
  EXPECT_EQ(socket.TakeReadiness(), std::nullopt);
  ASSERT_TRUE(program.TellReady(true, "ready").ok());
  ASSERT_TRUE(program.TellReady(false, "not ready").ok());
  EXPECT_EQ(socket.TakeReadiness(), false);
}

TEST(NotifySocketTest, HearsWhereTheProgramServesItsMetrics) {
  NotifySocket socket = NotifySocket::Open().value();
  const Notifier program(socket.name());
  ASSERT_TRUE(program.TellReady(true, "ready", "127.0.0.1:4711").ok());
  EXPECT_EQ(socket.metrics(), "") << "nothing was read yet";
  EXPECT_EQ(socket.TakeReadiness(), true);
  EXPECT_EQ(socket.metrics(), "127.0.0.1:4711");
  ASSERT_TRUE(program.TellReady(false, "not ready").ok());
  EXPECT_EQ(socket.TakeReadiness(), false);
  EXPECT_EQ(socket.metrics(), "127.0.0.1:4711");
}

TEST(NotifySocketTest, HearsOneProgramEach) {
  NotifySocket one = NotifySocket::Open().value();
  NotifySocket other = NotifySocket::Open().value();
  ASSERT_TRUE(Notifier(one.name()).TellReady(true, "").ok());
  EXPECT_EQ(other.TakeReadiness(), std::nullopt);
  EXPECT_EQ(one.TakeReadiness(), true);
}

// As systemd listens.
TEST(NotifierTest, TellsASocketThatHasAPath) {
  const TempDir folder;
  const std::string path = folder / "notify";
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(&address.sun_path[0], sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_TRUE(Notifier(path).TellReady(true, "all is well").ok());
  std::string heard(100, '\0');
  heard.resize(static_cast<size_t>(recv(socket.get(), heard.data(), heard.size(), 0)));
  EXPECT_EQ(heard, "READY=1\nSTATUS=all is well");
}

TEST(NotifierTest, SaysThatNothingHearsIt) {
  EXPECT_TRUE(Notifier("").TellReady(true, "").ok());
  EXPECT_FALSE(Notifier("/no/such/socket").TellReady(true, "").ok());
  EXPECT_FALSE(Notifier("vsock:2:1234").TellReady(true, "").ok());
  EXPECT_FALSE(Notifier("/" + std::string(200, 'x')).TellReady(true, "").ok());
}

TEST(NotifierTest, TakesItsAddressOutOfTheEnvironment) {
  setenv(kNotifySocketVariable, "@here", 1);
  EXPECT_EQ(TakeNotifyAddress(), "@here");
  EXPECT_EQ(TakeNotifyAddress(), "");
}

}  // namespace
}  // namespace muster::os
