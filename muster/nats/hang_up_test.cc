// What a publisher is told whose server hangs up on it just then.
#include <future>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/nats/connection.h"
#include "tests/fakes/nats/made_up_server.h"

namespace muster::nats {
namespace {

// Greets, and resets the connection when it is told to.
class HangsUp {
 public:
  HangsUp() : server_([this](int guest) { Talk(guest); }) {}

  std::string url() const { return absl::StrCat("nats://", server_.address()); }
  void HangUp() {
    told_.set_value();
    gone_.get_future().wait();
  }

 private:
  void Talk(int guest) {
    FakeServer::Say(guest,
                    "INFO {\"server_id\":\"x\",\"version\":\"2.10.0\",\"proto\":1,"
                    "\"headers\":true,\"max_payload\":1048576}\r\n");
    FakeServer::ReceiveUntil(guest, "PING\r\n");
    FakeServer::Say(guest, "PONG\r\n");
    told_.get_future().wait();
    const linger reset{1, 0};
    setsockopt(guest, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    close(guest);
    gone_.set_value();
  }

  std::promise<void> told_, gone_;
  FakeServer server_;
};

// nats.c finds out that the connection is gone when it reads, or when it writes, whichever is
// first.
TEST(HangUpTest, ConfirmsNothingWhereTheServerHasHungUp) {
  for (int i = 0; i < 20; ++i) {
    HangsUp server;
    const auto connection = Connection::Open(server.url(), {});
    ASSERT_TRUE(connection.ok()) << connection.status();
    server.HangUp();
    const absl::Status lost =
        (*connection)->PublishNow({.subject = "news", .data = "!"}, absl::Seconds(10));
    EXPECT_TRUE(absl::IsUnavailable(lost)) << "the server was gone; at connection " << i;
  }
}

}  // namespace
}  // namespace muster::nats
