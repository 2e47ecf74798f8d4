// SPDX-License-Identifier: Apache-2.0
#include "muster/client/batch.h"

#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PatienceTest : public ::testing::Test {
 protected:
  // One try that has failed, and the wait after it.
  absl::Status Fail(const absl::Status& trouble) {
    absl::Status answer;
    std::thread waiter([&] { answer = patience_.WaitAfter(trouble, {}); });
    clock_.AwaitSleepers(1);
    clock_.Advance(clock_.NextDeadline() - clock_.Monotonic());
    waiter.join();
    return answer;
  }

  base::FakeClock clock_;
  std::vector<std::string> told_;
  RetryBackoff patience_{
      absl::Minutes(1),
      [this](const absl::Status& trouble) { told_.emplace_back(trouble.message()); }, &clock_};
};

TEST_F(PatienceTest, SaysNothingOfWhatPassesWithinASecond) {
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Fail(absl::UnavailableError("not yet")).ok());
  EXPECT_THAT(told_, IsEmpty()) << "0.1 + 0.2 + 0.4 s before the fourth";
  patience_.Refresh();
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Fail(absl::UnavailableError("not yet")).ok());
  EXPECT_THAT(told_, IsEmpty()) << "it began anew";
}

TEST_F(PatienceTest, TellsOnceOfEachTroubleThatLasts) {
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(Fail(absl::UnavailableError("gone")).ok());
  EXPECT_THAT(told_, ElementsAre("gone"));
  patience_.Refresh();
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(Fail(absl::UnavailableError("gone again")).ok());
  EXPECT_THAT(told_, ElementsAre("gone", "gone again"));
}

TEST_F(PatienceTest, GivesUpAtOnceWhatWillNotPassAndInTheEndWhatMay) {
  EXPECT_TRUE(absl::IsNotFound(patience_.WaitAfter(absl::NotFoundError("no such job"), {})));
  EXPECT_TRUE(Fail(absl::UnavailableError("gone")).ok());
  clock_.Advance(absl::Minutes(2));
  EXPECT_TRUE(absl::IsUnavailable(patience_.WaitAfter(absl::UnavailableError("gone"), {})));
}

}  // namespace
}  // namespace muster::client
