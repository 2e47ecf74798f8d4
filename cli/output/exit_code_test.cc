// SPDX-License-Identifier: Apache-2.0
#include "cli/output/exit_code.h"

#include "gtest/gtest.h"

namespace muster::cli {
namespace {

TEST(ExitCodeTest, TellsWhatIsBusyFromWhatIsWrong) {
  EXPECT_EQ(ExitCodeOf(base::Busy("another process has it")), kUnreachable);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("it does not answer")), kUnreachable);
  EXPECT_EQ(ExitCodeOf(absl::ResourceExhaustedError("it is full")), kUnreachable);
  EXPECT_EQ(ExitCodeOf(absl::FailedPreconditionError("it is complete")), kError);
  EXPECT_EQ(ExitCodeOf(absl::DataLossError("it is damaged")), kDamaged);
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), kOk);
}

}  // namespace
}  // namespace muster::cli
