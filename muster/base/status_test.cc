// SPDX-License-Identifier: Apache-2.0
#include "muster/base/status.h"

#include <optional>

#include "absl/strings/cord.h"
#include "gtest/gtest.h"
#include "muster/base/retry.h"

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

TEST(MismatchTest, StaysWithAStatusThatIsAnnotated) {
  const Mismatch odd{"a\nb\\", "", "\"memory\"", std::string("\0\xff", 2)};
  const absl::Status status = WithMismatch(absl::FailedPreconditionError("otherwise"), odd);
  EXPECT_EQ(MismatchOf(Annotate(status, "opening")), odd);
  EXPECT_EQ(status.message(), "otherwise");
}

TEST(MismatchTest, IsOnlyWhereItWasAdded) {
  EXPECT_EQ(MismatchOf(absl::FailedPreconditionError("otherwise")), std::nullopt);
  EXPECT_EQ(MismatchOf(absl::OkStatus()), std::nullopt);
  EXPECT_TRUE(WithMismatch(absl::OkStatus(), {"a", "b", "c", "d"}).ok());
  absl::Status garbage = absl::InternalError("x");
  garbage.SetPayload("muster/mismatch", absl::Cord("one\ntwo"));
  EXPECT_EQ(MismatchOf(garbage), std::nullopt);
}

}  // namespace

}  // namespace muster::base
