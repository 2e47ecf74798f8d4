#include "muster/rpc/call.h"

#include <optional>
#include <utility>

#include "gtest/gtest.h"
#include "muster/rpc/limits.h"
#include "tests/fakes/base/fake_clock.h"

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

// Without a deadline a call's is the end of gRPC's time, in the year 2262.
TEST(Call, IsNotWorkedOnOnceItsDeadlineHasPassed) {
  const grpc::ServerContext context;
  base::FakeClock clock;
  clock.StepWallClock(absl::Hours(24 * 365 * 300));
  bool worked = false;
  const grpc::Status status = Answer(
      context,
      [&worked] {
        worked = true;
        return absl::OkStatus();
      },
      &clock);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_FALSE(worked);
}

TEST(Call, AnswersTheStatusOfItsWork) {
  const grpc::ServerContext context;
  const grpc::Status status = Answer(context, [] { return absl::NotFoundError("no batch 7"); });
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "no batch 7");
}

TEST(Call, AdvisesWhenToTryAgainWhatMayPass) {
  const auto advice = [](absl::Status status) { return RetryAfter(WithAdvice(std::move(status))); };
  EXPECT_EQ(advice(absl::UnavailableError("no store")), kRetryUnavailable);
  EXPECT_EQ(advice(absl::ResourceExhaustedError("disk full")), kRetryExhausted);
  EXPECT_EQ(advice(WithRetryAfter(absl::UnavailableError("busy"), absl::Minutes(1))),
            absl::Minutes(1));
  EXPECT_EQ(advice(absl::NotFoundError("no batch 7")), std::nullopt);
  EXPECT_EQ(advice(absl::OkStatus()), std::nullopt);
}

TEST(Call, SendsItsAdvice) {
  const grpc::ServerContext context;
  const grpc::Status status = Answer(context, [] { return absl::UnavailableError("no store"); });
  EXPECT_EQ(RetryAfter(FromGrpc(status)), kRetryUnavailable);
}

}  // namespace
}  // namespace muster::rpc
