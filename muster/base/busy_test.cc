#include "muster/base/busy.h"

#include "gtest/gtest.h"
#include "muster/base/retry_policy.h"
#include "muster/base/status_macros.h"

namespace muster::base {
namespace {

TEST(BusyTest, IsToldFromOtherFailuresHoweverItIsAnnotated) {
  EXPECT_TRUE(IsBusy(Busy("another has it")));
  EXPECT_TRUE(IsBusy(Annotate(Busy("another has it"), "the queues")));
  EXPECT_FALSE(IsBusy(absl::FailedPreconditionError("another has it")));
  EXPECT_FALSE(IsBusy(absl::OkStatus()));
}

TEST(BusyTest, IsNotTriedAgainAtOnce) {
  EXPECT_TRUE(absl::IsFailedPrecondition(Busy("another has it")));
  EXPECT_FALSE(IsTransient(Busy("another has it")));
}

}  // namespace
}  // namespace muster::base
