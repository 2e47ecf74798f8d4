// SPDX-License-Identifier: Apache-2.0
#include "muster/nats/stream_provisioner.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/base/status.h"
#include "muster/nats/connection.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/nats/nats_server.h"

namespace muster::nats {
namespace {

class StreamProvisionerTest : public ::testing::TestWithParam<std::string> {
 protected:
  StreamProvisionerTest() { EXPECT_TRUE(provisioner_.Ensure().ok()); }

  bool IsThere() { return jetstream_.GetStream("kept").ok(); }

  testing::NatsServer server_{GetParam()};
  const std::unique_ptr<Connection> connection_ = Connection::Open(server_.url(), {}).value();
  JetStream jetstream_{connection_.get(), absl::Seconds(10)};
  base::FakeClock clock_;
  StreamProvisioner provisioner_{
      &jetstream_, {{"name", "kept"}, {"subjects", {"kept.*"}}, {"storage", "file"}}, &clock_};
};

TEST_P(StreamProvisionerTest, MakesAnewWhatStaysGone) {
  ASSERT_TRUE(jetstream_.DeleteStream("kept").ok());
  EXPECT_TRUE(absl::IsUnavailable(provisioner_.OnMissing()));
  clock_.Advance(kGoneFor - absl::Milliseconds(1));
  EXPECT_TRUE(absl::IsUnavailable(provisioner_.OnMissing()));
  EXPECT_FALSE(IsThere());
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(provisioner_.OnMissing().ok());
  EXPECT_TRUE(IsThere());
}

TEST_P(StreamProvisionerTest, LeavesAStreamThatIsThereAfterAllAsItIs) {
  ASSERT_TRUE(jetstream_.DeleteStream("kept").ok());
  EXPECT_TRUE(absl::IsUnavailable(provisioner_.OnMissing()));
  clock_.Advance(kGoneFor);
  ASSERT_TRUE(provisioner_.Ensure().ok());
  ASSERT_TRUE(jetstream_.Publish({.subject = "kept.a", .data = "x"}).ok());
  EXPECT_TRUE(provisioner_.OnMissing().ok());
  EXPECT_EQ(jetstream_.GetStream("kept")->messages, 1u);
  // The patience starts again.
  ASSERT_TRUE(jetstream_.DeleteStream("kept").ok());
  EXPECT_TRUE(absl::IsUnavailable(provisioner_.OnMissing()));
}

TEST_P(StreamProvisionerTest, ForgetsThatItWasGoneLongAgo) {
  ASSERT_TRUE(jetstream_.DeleteStream("kept").ok());
  EXPECT_TRUE(absl::IsUnavailable(provisioner_.OnMissing()));
  clock_.Advance(kMaxBetweenSightings + absl::Milliseconds(1));
  EXPECT_TRUE(absl::IsUnavailable(provisioner_.OnMissing()));
  clock_.Advance(kGoneFor);
  EXPECT_TRUE(provisioner_.OnMissing().ok());
}

TEST_P(StreamProvisionerTest, MakesNothingWhileTheServerIsAway) {
  server_.Kill();
  clock_.Advance(kGoneFor);
  EXPECT_TRUE(absl::IsUnavailable(provisioner_.OnMissing()));
  clock_.Advance(kGoneFor);
  EXPECT_TRUE(absl::IsUnavailable(provisioner_.OnMissing()));
  server_.Restart();
  absl::Status there = provisioner_.OnMissing();
  while (!there.ok() && absl::IsUnavailable(there)) there = provisioner_.OnMissing();
  EXPECT_TRUE(there.ok()) << there;
}

// Of processes that started together, one found the stream that another one was making, and died
// of a write that nobody listened to yet.
TEST_P(StreamProvisionerTest, WritesOnceAStreamListensThatIsBeingMade) {
  ASSERT_TRUE(jetstream_.DeleteStream("kept").ok());
  int writes = 0;
  const absl::Status written = WriteOnceHeard([&] {
    if (++writes == 3) EXPECT_TRUE(provisioner_.Ensure().ok());
    return jetstream_.Publish({.subject = "kept.a", .data = "x"}).status();
  });
  EXPECT_TRUE(written.ok()) << written;
  EXPECT_EQ(writes, 3);
  EXPECT_EQ(jetstream_.GetStream("kept")->messages, 1u);
  const auto refuse = [&] { return ++writes, absl::InternalError("it is full"); };
  EXPECT_TRUE(absl::IsInternal(WriteOnceHeard(refuse)));
  EXPECT_EQ(writes, 4);
}

INSTANTIATE_TEST_SUITE_P(Servers, StreamProvisionerTest,
                         ::testing::ValuesIn(testing::NatsServer::Programs()),
                         [](const auto& server) { return absl::StrCat("Server", server.index); });

}  // namespace
}  // namespace muster::nats
