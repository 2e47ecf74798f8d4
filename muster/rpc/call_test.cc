#include "muster/rpc/call.h"

#include "gtest/gtest.h"
#include "muster/base/fake_clock.h"

namespace muster::rpc {
namespace {

TEST(Call, RefusesWorkWhoseDeadlineHasPassed) {
  base::FakeClock clock;
  const absl::Time now = clock.Now();
  EXPECT_TRUE(RefuseIfLate(now + absl::Seconds(1), now).ok());
  EXPECT_TRUE(RefuseIfLate(absl::InfiniteFuture(), now).ok());
  EXPECT_EQ(RefuseIfLate(now, now).code(), absl::StatusCode::kDeadlineExceeded);
  const absl::Status late = RefuseIfLate(now - absl::Milliseconds(250), now);
  EXPECT_EQ(late.message(), "the call's deadline had passed 250ms before work on it could begin");
}

TEST(Call, WithoutDeadlineIsNeverLate) {
  const grpc::ServerContext context;
  bool worked = false;
  const grpc::Status status = Answer(context, [&worked] {
    worked = true;
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok());
  EXPECT_TRUE(worked);
}

TEST(Call, AnswersTheStatusOfItsWork) {
  const grpc::ServerContext context;
  const grpc::Status status = Answer(context, [] { return absl::NotFoundError("no batch 7"); });
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "no batch 7");
}

}  // namespace
}  // namespace muster::rpc
