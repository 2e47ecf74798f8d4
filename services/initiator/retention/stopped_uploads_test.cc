// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/retention/stopped_uploads.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/rpc/status.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::initiator::retention {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StoppedUploadsTest : public ::testing::Test {
 protected:
  void Add(uint64_t batch, uint64_t bytes, absl::Duration expires_in) {
    uploads_.Add(batch, bytes, clock_.Monotonic() + expires_in);
  }

  base::FakeClock clock_;
  StoppedUploads uploads_{{.max_stopped = 3, .max_stopped_bytes = 100}, &clock_};
};

TEST_F(StoppedUploadsTest, ExpireInTheOrderOfTheirTimes) {
  Add(1, 1, absl::Hours(3));
  Add(2, 1, absl::Hours(1));
  Add(3, 1, absl::Hours(2));
  EXPECT_THAT(uploads_.Expired(10), IsEmpty());
  clock_.Advance(absl::Hours(2));
  EXPECT_THAT(uploads_.Expired(10), ElementsAre(2, 3));
  EXPECT_THAT(uploads_.Expired(1), ElementsAre(2));
  EXPECT_FALSE(uploads_.HasExpired(1));
  uploads_.Remove(2);
  Add(3, 2, absl::Hours(1));  // its client sent a byte, and left again
  EXPECT_THAT(uploads_.Expired(10), IsEmpty());
  EXPECT_FALSE(uploads_.HasExpired(3));
}

TEST_F(StoppedUploadsTest, ExpireAgainAfterAPauseWhereTheyCouldNotBeGivenUp) {
  Add(1, 1, absl::ZeroDuration());
  uploads_.Postpone(1, absl::Minutes(1));
  uploads_.Postpone(2, absl::Minutes(1));
  EXPECT_THAT(uploads_.Expired(10), IsEmpty());
  clock_.Advance(absl::Minutes(1));
  EXPECT_THAT(uploads_.Expired(10), ElementsAre(1));
}

TEST_F(StoppedUploadsTest, KeepFurtherOnesFromBeginningWhereThereAreTooMany) {
  Add(1, 0, absl::Hours(2));
  Add(2, 0, absl::Hours(1));
  EXPECT_TRUE(uploads_.CheckRoom().ok());
  Add(2, 0, absl::Hours(1));
  EXPECT_TRUE(uploads_.CheckRoom().ok()) << "it is the same one";
  Add(3, 0, absl::Hours(3));
  const absl::Status full = uploads_.CheckRoom();
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(full.message(), HasSubstr("3 uploads that were cut off"));
  EXPECT_THAT(full.message(), HasSubstr("--max-stopped-uploads 3"));
  EXPECT_THAT(full.message(), HasSubstr("expires in 1h"));
  EXPECT_EQ(rpc::RetryAfter(full), absl::Minutes(5));
  EXPECT_EQ(rpc::Reason(full)->reason, "TOO_MANY_STOPPED_UPLOADS");
  clock_.Advance(absl::Hours(1) - absl::Seconds(30));
  EXPECT_EQ(rpc::RetryAfter(uploads_.CheckRoom()), absl::Seconds(30));
  uploads_.Remove(2);
  EXPECT_TRUE(uploads_.CheckRoom().ok());
}

TEST_F(StoppedUploadsTest, KeepFurtherOnesFromBeginningWhereTheyHaveTooManyBytes) {
  Add(1, 99, absl::Hours(1));
  EXPECT_TRUE(uploads_.CheckRoom().ok());
  Add(1, 100, absl::Hours(1));
  EXPECT_TRUE(absl::IsResourceExhausted(uploads_.CheckRoom()));
  uploads_.Postpone(1, absl::Hours(1));
  EXPECT_TRUE(absl::IsResourceExhausted(uploads_.CheckRoom()));
  uploads_.Remove(1);
  EXPECT_TRUE(uploads_.CheckRoom().ok());
}

}  // namespace
}  // namespace muster::initiator::retention
