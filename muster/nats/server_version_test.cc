#include "muster/nats/server_version.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/nats/testing/nats_server.h"

namespace muster::nats {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Says `greeting` to the first who connects, and hangs up.
class MadeUpServer {
 public:
  explicit MadeUpServer(std::string greeting) : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(place);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&place), size), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&place), &size), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(place.sin_port));
    thread_ = std::thread([this, greeting = std::move(greeting)] {
      const int guest = accept(listener_, nullptr, nullptr);
      // The guest may have hung up already.
      (void)send(guest, greeting.data(), greeting.size(), MSG_NOSIGNAL);
      close(guest);
    });
  }
  ~MadeUpServer() {
    thread_.join();
    close(listener_);
  }

  const std::string& address() const { return address_; }

 private:
  const int listener_;
  std::string address_;
  std::thread thread_;
};

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
    MadeUpServer server(greeting);
    EXPECT_TRUE(absl::IsUnavailable(VersionAt(server.address()).status())) << greeting;
  }
  MadeUpServer endless(std::string(100'000, 'x'));
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
