// SPDX-License-Identifier: Apache-2.0

// What a controller asks the ledgers of batches, and what it does with results while they do not
// answer.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/controller/controller.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/controller/controller_fixture.h"

namespace muster::controller {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST_F(ControllerTest, AsksTheLedgerOfABatchThatItExpectsBeforeItsResultsCome) {
  OpenBatch(2);
  Start();
  controller_->Expect(kBatch);
  while (records_->views() == 0) base::LetOthersRun();
  Put({Result(0), Result(1)});
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_EQ(records_->views(), 1) << "and not again";
  EXPECT_EQ(ledger_->Get(kBatch)->state, ledger::BatchState::kComplete);
}

// Each commit asked for the record of each of its batches, with the definition of its job.
TEST_F(ControllerTest, AsksTheLedgerOfABatchWhenItBeginsAndWhenAllIsCounted) {
  constexpr int kItems = 10;
  OpenBatch(kItems);
  Start();
  for (int i = 0; i < kItems; ++i) {
    Put({Result(static_cast<uint32_t>(i))});
    host_->AwaitItems(i + 1);
  }
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_EQ(records_->questions(), 2);
}

TEST_F(ControllerTest, CountsABatchThatItCouldNotPrepareFor) {
  OpenBatch(1);
  records_->Fail(kBatch, absl::UnavailableError("it cannot be read now"));
  Start();
  controller_->Expect(kBatch);
  while (records_->questions() == 0) base::LetOthersRun();
  controller_->Expect(kBatch + 1);  // never registered
  while (records_->questions() == 1) base::LetOthersRun();
  EXPECT_EQ(records_->views(), 0) << "it could prepare for neither";
  records_->Fail(kBatch, absl::OkStatus());
  Put({Result(0)});
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_EQ(records_->views(), 1) << "asked again when its result came";
  EXPECT_THAT(Rows(), ElementsAre("ann 1.25"));
  EXPECT_EQ(ledger_->Get(kBatch)->state, ledger::BatchState::kComplete);
  EXPECT_EQ(Stats().stored(), 0);
}

TEST_F(ControllerTest, CountsTheOtherBatchesWhileTheLedgerOfOneCannotBeRead) {
  constexpr uint64_t kDamaged = 8;
  OpenBatch(2);
  records_->Fail(kDamaged, absl::DataLossError("its record is corrupt"));
  v1::ItemResult damaged = Result(0);
  damaged.set_batch(kDamaged);
  Start();
  EXPECT_EQ(controller_->CheckCompletion(kDamaged), absl::OkStatus());
  Put({Result(0), damaged, Result(1)});
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_THAT(Rows(), ElementsAre("ann 2.50"));
  EXPECT_EQ(GetProgress().duplicates, 0);
  EXPECT_EQ(Stats().stored(), 1) << "the result waits until its ledger is mended";
  EXPECT_EQ(Stats().poison, 0);
}

TEST_F(ControllerTest, CountsTheResultsOfABatchWhoseLedgerIsMended) {
  OpenBatch(2);
  records_->Fail(kBatch, absl::DataLossError("its record is corrupt"));
  PutQuietly({Result(0), Result(1)});
  Start();
  clock_.AwaitSleepers(1);
  EXPECT_EQ(Stats().stored(), 2);
  records_->Fail(kBatch, absl::OkStatus());
  clock_.Advance(absl::Milliseconds(250));
  host_->AwaitCompletions(1);
  EXPECT_EQ(GetProgress().items(), 2);
  EXPECT_EQ(GetProgress().duplicates, 0);
}

// When both were killed, the controller receives the first heartbeat of the ledger's initiator a
// moment after its own start.
TEST_F(ControllerTest, CountsResultsSoonAfterTheLedgerOfTheirBatchIsBack) {
  OpenBatch(3);
  PutQuietly({Result(0)});
  PutBody(Together({Result(1), Result(2)}));
  records_->BeAwayFor(3);
  Start();
  for (const auto away : {absl::Milliseconds(250), absl::Milliseconds(500), absl::Seconds(1)}) {
    clock_.AwaitSleepers(1);
    EXPECT_EQ(Stats().stored(), 2);
    clock_.Advance(away);
  }
  host_->AwaitCompletions(1);
  EXPECT_EQ(GetProgress().items(), 3);
  EXPECT_EQ(GetProgress().duplicates, 0);
}

TEST_F(ControllerTest, LooksSoonForResultsThatWaitForALedgerAlsoAfterOtherWork) {
  OpenBatch(1);
  PutBody("no result");
  PutQuietly({Result(0)});
  records_->BeAwayFor(1);
  Start();
  clock_.AwaitSleepers(1);
  EXPECT_EQ(Stats().poison, 1);
  clock_.Advance(absl::Milliseconds(250));
  host_->AwaitCompletions(1);
}

// They would hold up the job for ever.
TEST_F(ControllerTest, PutsAsideResultsOfABatchThatNoInitiatorHasHadForAWhile) {
  OpenBatch(2);
  records_->BeUnknownToAll(true);
  PutQuietly({Result(0), Result(1)});
  Options options = Instantly();
  Start(options);
  const absl::Duration start = clock_.Monotonic();
  PassUntil(start + options.unknown_batch_grace - absl::Seconds(31));
  EXPECT_EQ(Stats().stored(), 2) << "the initiator may come back";
  EXPECT_EQ(Stats().poison, 0);
  PassUntil(start + 2 * options.unknown_batch_grace);
  EXPECT_EQ(Stats().stored(), 0);
  Stop();
  EXPECT_THAT(PoisonCauses(), Each("no initiator has had the ledger of batch 7 for 10m"));
  EXPECT_EQ(Stats().poison, 2);
}

// An initiator cannot tell what a queue has lost while something old lies at its head.
TEST_F(ControllerTest, MovesWaitingResultsOfABatchThatNoInitiatorHasToTheTail) {
  OpenBatch(2);
  records_->BeUnknownToAll(true);
  PutQuietly({Result(0), Result(1)});
  const uint64_t end = queues_->Extent(output_)->next;
  Start();
  const absl::Duration start = clock_.Monotonic();
  PassUntil(start + absl::Minutes(1));
  EXPECT_GE(queues_->Extent(output_)->oldest, end) << "the head of that moment has gone";
  EXPECT_EQ(Stats().stored(), 2) << "they wait, once each";
  EXPECT_LE(Stats().total_in, 2 + 2 * 6) << "and are moved no more than each ten seconds";
  records_->BeUnknownToAll(false);
  PassUntil(start + absl::Minutes(5));
  host_->AwaitCompletions(1);
  EXPECT_EQ(Stats().poison, 0);
  EXPECT_EQ(GetProgress().duplicates, 0);
}

// Its initiator would take them for lost, and put their items again.
TEST_F(ControllerTest, LeavesTheWaitingResultsOfABatchWhoseInitiatorDoesNotAnswerAtTheirPlace) {
  OpenBatch(1);
  records_->Fail(kBatch, absl::DataLossError("its record is corrupt"));
  PutQuietly({Result(0)});
  const uint64_t place = queues_->Extent(output_)->oldest;
  Start();
  PassUntil(clock_.Monotonic() + absl::Minutes(1));
  EXPECT_EQ(queues_->Extent(output_)->oldest, place);
}

TEST_F(ControllerTest, CountsResultsWhoseInitiatorComesBackInTime) {
  OpenBatch(2);
  records_->BeUnknownToAll(true);
  PutQuietly({Result(0), Result(1)});
  Options options = Instantly();
  Start(options);
  const absl::Duration start = clock_.Monotonic();
  PassUntil(start + options.unknown_batch_grace - absl::Seconds(31));
  records_->BeUnknownToAll(false);
  PassUntil(start + 2 * options.unknown_batch_grace);
  host_->AwaitCompletions(1);
  EXPECT_EQ(Stats().poison, 0);
}

}  // namespace
}  // namespace muster::controller
