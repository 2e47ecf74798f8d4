#include "muster/kubernetes/leader_lease.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/fake_clock.h"
#include "muster/kubernetes/testing/scripted_server.h"
#include "nlohmann/json.hpp"

namespace muster::kubernetes {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::Respond;
using ::testing::SizeIs;

// Two leases and what they do to each other are tested on a real API server (tests/kubernetes);
// here it answers what that never would when asked to.
class LeaderLeaseTest : public ::testing::Test {
 protected:
  static std::string Lease(const std::string& holder, int64_t transitions, int64_t seconds,
                           const std::string& version) {
    return json({{"metadata", {{"resourceVersion", version}}},
                 {"spec",
                  {{"holderIdentity", holder},
                   {"leaseTransitions", transitions},
                   {"leaseDurationSeconds", seconds}}}})
        .dump();
  }
  // We take it, with token 5.
  void Take() {
    server_.Expect(Respond(200, Lease("", 4, 4, "1")));
    server_.Expect(Respond(200, "{}"));
    ASSERT_TRUE(lease_.Hold().value());
    ASSERT_EQ(lease_.Token(), 5);
  }
  json Sent(size_t request) { return json::parse(server_.Await(request + 1)[request].body); }

  base::FakeClock clock_;
  testing::ScriptedServer server_;
  std::unique_ptr<Client> client_ = server_.NewClient(&clock_, {.max_attempts = 1});
  LeaderLease lease_{client_.get(), {{"home", "leader"}, "us", absl::Seconds(4)}, &clock_};
};

TEST_F(LeaderLeaseTest, MakesALeaseThatIsNotThere) {
  server_.Expect(Respond(404, "{}"));
  server_.Expect(Respond(201, "{}"));
  EXPECT_TRUE(lease_.Hold().value());
  EXPECT_EQ(lease_.Token(), 1);
  EXPECT_EQ(Sent(1)["spec"]["holderIdentity"], "us");
  EXPECT_EQ(Sent(1)["spec"]["leaseTransitions"], 1);
  EXPECT_EQ(Sent(1)["spec"]["leaseDurationSeconds"], 4);
  EXPECT_EQ(Sent(1)["spec"]["renewTime"], "2011-11-11T00:00:00.000000Z");
}

TEST_F(LeaderLeaseTest, GoesOnWithHigherTokensThoughTheLeaseWasDeleted) {
  Take();
  clock_.Advance(absl::Seconds(9));
  server_.Expect(Respond(404, "{}"));
  server_.Expect(Respond(201, "{}"));
  EXPECT_TRUE(lease_.Hold().value());
  EXPECT_EQ(lease_.Token(), 6);
}

TEST_F(LeaderLeaseTest, LosesARaceToMakeItOrToTakeIt) {
  server_.Expect(Respond(404, "{}"));
  server_.Expect(Respond(409, "{}"));
  EXPECT_FALSE(lease_.Hold().value());
  server_.Expect(Respond(200, Lease("", 4, 4, "1")));
  server_.Expect(Respond(409, "{}"));
  EXPECT_FALSE(lease_.Hold().value());
  EXPECT_EQ(lease_.Token(), std::nullopt);
}

TEST_F(LeaderLeaseTest, HoldsWithoutNewsOnlyForItsDuration) {
  Take();
  clock_.Advance(absl::Seconds(3));
  server_.Expect(Respond(500, "{}"));
  EXPECT_EQ(lease_.Hold().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(lease_.Token(), 5);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(lease_.Token(), std::nullopt);
}

// Others may count from when the write arrived; we count from before it was sent.
TEST_F(LeaderLeaseTest, CountsItsTimeFromBeforeTheRequest) {
  const auto patient = server_.NewClient(&clock_, {.max_attempts = 2});
  LeaderLease lease(patient.get(), {{"home", "leader"}, "us", absl::Seconds(4)}, &clock_);
  server_.Expect(Respond(429, "{}", "Retry-After: 3\r\n"));
  server_.Expect(Respond(200, Lease("", 4, 4, "1")));
  server_.Expect(Respond(200, "{}"));
  std::thread holder([&] { EXPECT_TRUE(lease.Hold().value()); });
  clock_.AwaitSleepers(1);
  clock_.Advance(absl::Seconds(3));
  holder.join();
  EXPECT_EQ(lease.Token(), 5);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(lease.Token(), std::nullopt);
}

TEST_F(LeaderLeaseTest, TakesItsOwnNameWithAnotherTokenForAnother) {
  server_.Expect(Respond(200, Lease("us", 4, 4, "1")));
  EXPECT_FALSE(lease_.Hold().value());
  clock_.Advance(absl::Seconds(4));
  server_.Expect(Respond(200, Lease("us", 4, 4, "1")));
  server_.Expect(Respond(200, "{}"));
  EXPECT_TRUE(lease_.Hold().value());
  EXPECT_EQ(lease_.Token(), 5);
}

TEST_F(LeaderLeaseTest, BoundsTheDurationThatAnotherWrote) {
  server_.Expect(Respond(200, Lease("them", 4, int64_t{1} << 40, "1")));
  EXPECT_FALSE(lease_.Hold().value());
  clock_.Advance(absl::Hours(1));
  server_.Expect(Respond(200, Lease("them", 4, int64_t{1} << 40, "1")));
  server_.Expect(Respond(200, "{}"));
  EXPECT_TRUE(lease_.Hold().value());
}

TEST_F(LeaderLeaseTest, ReleasesOnlyWhatIsItsOwn) {
  server_.Expect(Respond(200, Lease("them", 4, 4, "1")));
  EXPECT_TRUE(lease_.Release().ok());
  EXPECT_THAT(server_.requests(), SizeIs(1));
}

TEST_F(LeaderLeaseTest, IsNotHeldAnyMoreThoughTheReleaseFailed) {
  Take();
  server_.Expect(Respond(500, "{}"));
  EXPECT_EQ(lease_.Release().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(lease_.Token(), std::nullopt);
}

TEST_F(LeaderLeaseTest, NamesTheVerbThatARoleLacks) {
  server_.Expect(Respond(403, "{}"));
  const absl::Status status = lease_.Hold().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()), HasSubstr("verb 'get' on resource 'leases'"));
}

}  // namespace
}  // namespace muster::kubernetes
