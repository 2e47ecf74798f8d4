// SPDX-License-Identifier: Apache-2.0
#include "services/controller/away_ledgers.h"

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "muster/ledger/batch_ledger.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::controller {
namespace {

constexpr uint64_t kBatch = 7;
constexpr absl::Duration kLease = absl::Seconds(10);
constexpr absl::Duration kPause = absl::Milliseconds(250);  // the first one

class AwayLedgersTest : public ::testing::Test {
 protected:
  base::FakeClock clock_;
  AwayLedgers away_{absl::Minutes(10), &clock_};
};

// A result that came late in the pause was put back for a whole one, and nothing triggers a look
// when it comes again: a controller that forgot it found it at its next safety check, 30 s later.
TEST_F(AwayLedgersTest, LooksForResultsThatWerePutBackAlsoOnceTheLedgerIsThere) {
  EXPECT_FALSE(away_.NoteAway(kBatch, absl::UnavailableError("it restarts")).ok());
  clock_.Advance(absl::Milliseconds(200));
  EXPECT_TRUE(absl::IsUnavailable(away_.MayAsk(kBatch)));
  EXPECT_EQ(away_.PauseOf(kBatch), kPause) << "so it comes again at 450 ms";
  clock_.Advance(absl::Milliseconds(50));
  EXPECT_TRUE(away_.MayAsk(kBatch).ok());
  away_.NoteThere(kBatch);
  EXPECT_TRUE(away_.MayAsk(kBatch).ok());
  EXPECT_EQ(away_.ShortestPause(kLease), kPause);
  clock_.Advance(kPause);
  EXPECT_EQ(away_.ShortestPause(kLease), kPause);
  clock_.Advance(kPause);
  EXPECT_EQ(away_.ShortestPause(kLease), absl::InfiniteDuration()) << "all have come again";
}

TEST_F(AwayLedgersTest, BeginsWithAShortPauseAgainAfterTheLedgerWasThere) {
  for (int i = 0; i < 5; ++i) {
    away_.NoteAway(kBatch, absl::UnavailableError("it restarts")).IgnoreError();
  }
  EXPECT_EQ(away_.PauseOf(kBatch), 16 * kPause);
  away_.NoteThere(kBatch);
  away_.NoteAway(kBatch, absl::UnavailableError("again")).IgnoreError();
  EXPECT_TRUE(absl::IsUnavailable(away_.MayAsk(kBatch)));
  EXPECT_EQ(away_.PauseOf(kBatch), kPause);
}

// The batch with the lowest number was forgotten, and its grace began anew with each other one.
TEST_F(AwayLedgersTest, ForgetsTheBatchThatWasNotedLeastRecently) {
  const auto note = [this](uint64_t batch) {
    return away_.NoteAway(batch, ledger::UnknownToAll(batch, 2));
  };
  for (uint64_t batch = 1; batch <= kMaxAway; ++batch)
    EXPECT_TRUE(absl::IsUnavailable(note(batch)));
  clock_.Advance(absl::Minutes(10) - absl::Seconds(1));
  EXPECT_TRUE(absl::IsUnavailable(note(1)));
  EXPECT_TRUE(absl::IsUnavailable(note(kMaxAway + 1)));
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(absl::IsInvalidArgument(note(1)));
  EXPECT_TRUE(absl::IsUnavailable(note(2))) << "it was forgotten";
}

// A short batch's first result may be there before the report knows of the batch; its submitter
// should not wait a quarter of a second for that.
TEST_F(AwayLedgersTest, LooksAgainWithinMillisecondsForABatchThatIsNotRegisteredYet) {
  EXPECT_TRUE(absl::IsUnavailable(away_.NoteAway(kBatch, NotRegisteredYet(kBatch))));
  EXPECT_EQ(away_.PauseOf(kBatch), absl::Milliseconds(4));
  EXPECT_TRUE(away_.IsUsual(kBatch));
  int times = 1;
  for (; away_.IsUsual(kBatch); ++times) {
    away_.NoteAway(kBatch, NotRegisteredYet(kBatch)).IgnoreError();
  }
  EXPECT_EQ(times, 7) << "which lasts a quarter of a second together";
  EXPECT_EQ(away_.PauseOf(kBatch), absl::Milliseconds(256));
}

TEST_F(AwayLedgersTest, WaitsAWholePauseForALedgerThatGoesAwayBeforeItsBatchIsRegistered) {
  away_.NoteAway(kBatch, NotRegisteredYet(kBatch)).IgnoreError();
  away_.NoteAway(kBatch, absl::UnavailableError("it restarts")).IgnoreError();
  EXPECT_EQ(away_.PauseOf(kBatch), kPause);
  EXPECT_FALSE(away_.IsUsual(kBatch));
}

}  // namespace
}  // namespace muster::controller
