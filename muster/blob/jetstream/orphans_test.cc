// Against each server that NatsServer::Programs names.
#include "muster/blob/jetstream/orphans.h"

#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/blob/jetstream/limits.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/blob/jetstream/bucket_fixture.h"

namespace muster::blob::jetstream {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class OrphansTest : public BucketTest {
 protected:
  OrphansTest() { clock_.StepWallClock(absl::Now() - clock_.Now()); }

  // A put that dies before its metadata.
  void LeaveChunks(const std::string& nuid) {
    ASSERT_TRUE(jetstream_.Publish({.subject = "$O.muster.C." + nuid, .data = "x"}).ok());
  }
  std::unique_ptr<JetStreamBlobStore> OpenLater(absl::Duration by) {
    clock_.Advance(by);
    return Open({.clock = &clock_});
  }

  base::FakeClock clock_;
};

TEST_P(OrphansTest, OpeningRemovesWhatAPutThatDiedLongAgoLeft) {
  ASSERT_TRUE(Open()->Put("b", "body").ok());
  LeaveChunks(MakeNuid(clock_.Now()));
  EXPECT_THAT(ChunkSubjects(), SizeIs(2));
  const auto store = OpenLater(kOrphanAge + absl::Hours(1));
  EXPECT_THAT(ChunkSubjects(), SizeIs(1));
  EXPECT_EQ(*store->Get("b"), "body");
}

TEST_P(OrphansTest, OpeningLeavesAPutAloneThatMayBeUnderWay) {
  Open();
  LeaveChunks(MakeNuid(clock_.Now()));
  OpenLater(kOrphanAge - absl::Hours(1));
  EXPECT_THAT(ChunkSubjects(), SizeIs(1));
}

TEST_P(OrphansTest, LeavesWhatOthersLeftInTheBucket) {
  Open();
  LeaveChunks("bdZVJBTRXnUzIu7Yfkm6Xr");
  OpenLater(kOrphanAge + absl::Hours(1));
  EXPECT_THAT(ChunkSubjects(), ElementsAre("$O.muster.C.bdZVJBTRXnUzIu7Yfkm6Xr"));
}

TEST_P(OrphansTest, RemovesNothingWhereItCannotTellWhatIsNamed) {
  Open();
  LeaveChunks(MakeNuid(clock_.Now()));
  ASSERT_TRUE(jetstream_.Publish({.subject = "$O.muster.M.Yg==", .data = "garbage"}).ok());
  const auto removed = RemoveOrphans(&jetstream_, "muster", absl::Now() + absl::Hours(1));
  EXPECT_TRUE(absl::IsFailedPrecondition(removed.status())) << removed.status();
  EXPECT_THAT(ChunkSubjects(), SizeIs(1));
  // The store works all the same.
  EXPECT_TRUE(OpenLater(kOrphanAge + absl::Hours(1))->Put("c", "body").ok());
}

TEST_P(OrphansTest, CountsThePuts) {
  Open();
  for (int i = 0; i < 3; ++i) {
    const std::string nuid = MakeNuid(clock_.Now());
    LeaveChunks(nuid);
    LeaveChunks(nuid);
  }
  EXPECT_EQ(*RemoveOrphans(&jetstream_, "muster", absl::Now() + absl::Hours(1)), 3u);
  EXPECT_THAT(ChunkSubjects(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Servers, OrphansTest, EachServer(), &ServerName);

}  // namespace
}  // namespace muster::blob::jetstream
