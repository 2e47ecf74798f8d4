// SPDX-License-Identifier: Apache-2.0
#include "muster/nats/server_version.h"

#include <functional>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/nats/fake_server.h"
#include "tests/fakes/nats/nats_server.h"

namespace muster::nats {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Sends its greeting to the client, and hangs up.
std::function<void(int)> Greets(std::string greeting) {
  return [greeting = std::move(greeting)](int guest) {
    FakeServer::Say(guest, greeting);
    close(guest);
  };
}

absl::StatusOr<std::string> VersionAt(const std::string& address) {
  return ServerVersion(address, absl::Seconds(10));
}

TEST(ServerVersionTest, IsWhatEachServerSays) {
  for (const std::string& program : testing::NatsServer::Programs()) {
    const testing::NatsServer server(program);
    const auto version = VersionAt(AddressesIn(server.url()).front());
    ASSERT_TRUE(version.ok()) << version.status();
    EXPECT_THAT(*version, StartsWith("2."));
  }
}

TEST(ServerVersionTest, IsUnknownOfWhoDoesNotGreet) {
  for (const char* greeting : {"", "HTTP/1.1 400 Bad Request\r\n", "INFO \r\n", "INFO {}\r\n",
                               "INFO {\"version\": 2}\r\n", "INFO {\"version\": \"2.10.1\""}) {
    FakeServer server(Greets(greeting));
    EXPECT_TRUE(absl::IsUnavailable(VersionAt(server.address()).status())) << greeting;
  }
  FakeServer endless(Greets(std::string(100'000, 'x')));
  EXPECT_TRUE(absl::IsUnavailable(VersionAt(endless.address()).status()));
  for (const char* nowhere : {"", ":", "127.0.0.1:1", "127.0.0.1:99999999", "[::1]", "no host:1"}) {
    EXPECT_TRUE(absl::IsUnavailable(VersionAt(nowhere).status())) << nowhere;
  }
}

TEST(ServerVersionTest, FindsTheAddressesInUrls) {
  EXPECT_THAT(AddressesIn("nats://a:1,tls://user:se@cret@b, c:7/"),
              ElementsAre("a:1", "b:4222", "c:7"));
  EXPECT_THAT(AddressesIn("nats://[::1]:5,[::2]"), ElementsAre("[::1]:5", "[::2]:4222"));
  EXPECT_THAT(AddressesIn(""), IsEmpty());
}

TEST(ServerVersionTest, SyncsAlwaysFrom210On) {
  for (const char* can : {"2.10.0", "2.10.27-RC.1", "2.15.2", "3.0", "dev"}) {
    EXPECT_TRUE(CanSyncAlways(can)) << can;
  }
  for (const char* cannot : {"2.9.10", "2.9", "1.99.1"}) {
    EXPECT_FALSE(CanSyncAlways(cannot)) << cannot;
  }
}

}  // namespace
}  // namespace muster::nats
