// SPDX-License-Identifier: Apache-2.0

// What a BatchRemover does with the dead letters of a batch.
#include <memory>
#include <set>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/item/queue_names.h"
#include "muster/v1/work_item.pb.h"
#include "services/initiator/retention/remover.h"
#include "services/initiator/retention/remover_fixture.h"

namespace muster::initiator::retention {
namespace {

// Over the queue of job "shop".
class DeadLetterRemoverTest : public BatchRemoverTest {
 protected:
  DeadLetterRemoverTest() { EXPECT_TRUE(queues_->CreateQueue(queue_, {}).ok()); }

  // Gives up the first item of the batch.
  void GiveUp(uint64_t batch) {
    v1::WorkItem dead;
    dead.set_batch(batch);
    dead.set_transactions(1);
    dead.set_content_hash(base::Fingerprint("a").ToBytes());
    queue::NewMessage message;
    message.body = dead.SerializeAsString();
    const auto put = queues_->Put(queue_, {&message, 1});
    ASSERT_TRUE(put.ok()) << put.status();
    const queue::DeadLetterRequest request{put->front().receipt, {"it is poison", 1, "w", {}}};
    ASSERT_TRUE(queues_->DeadLetter(queue_, {&request, 1}).ok());
  }

  void CompleteWithDeadLetter(uint64_t batch) {
    GiveUp(batch);
    Create(batch);
    CountWithDeadLetter(batch);
    Complete(batch);
  }

  int64_t Poison() { return queues_->Stats(queue_)->poison; }

  const std::unique_ptr<queue::QueueStore> queues_ =
      backend::OpenQueueStore(urls_.queue, backend::Mode::kReadWrite, backend::Holders::kInProcess,
                              &clock_)
          .value();
  const queue::QueueId queue_ = item::InputQueue("local", "shop", 0);
  absl::Status drop_answer_;
  BatchRemover dropper_{
      {ledger_.get(), &report_client_, blobs_.get(), nullptr, &clock_, nullptr, nullptr, nullptr,
       [this](const ledger::Batch& batch, std::set<uint64_t> items) {
         return drop_answer_.ok() ? DropPoison(queues_.get(), "local", batch, std::move(items))
                                  : drop_answer_;
       }}};
};

// They kept the queues of a deleted job for ever, and the doctor advised a redrive that was
// refused.
TEST_F(DeadLetterRemoverTest, DropsDeadLettersOnceNobodyCanRedriveThem) {
  CompleteWithDeadLetter(1);
  GiveUp(2);
  clock_.Advance(kRetention.content);
  EXPECT_EQ(*dropper_.RemoveDue(10), 1u);
  EXPECT_EQ(Poison(), 2) << "it can be redriven";
  clock_.Advance(kRetention.items - kRetention.content);
  EXPECT_EQ(*dropper_.RemoveDue(10), 1u);
  EXPECT_EQ(Poison(), 1) << "of the other batch";
}

TEST_F(DeadLetterRemoverTest, KeepsTheItemsUntilTheirDeadLettersAreDropped) {
  CompleteWithDeadLetter(1);
  clock_.Advance(kRetention.items);
  ASSERT_EQ(*dropper_.RemoveDue(10), 1u) << "the content goes first";
  drop_answer_ = absl::UnavailableError("the server is away");
  EXPECT_TRUE(absl::IsUnavailable(dropper_.RemoveDue(10).status()));
  drop_answer_ = absl::OkStatus();
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(*dropper_.RemoveDue(10), 1u);
  EXPECT_EQ(Poison(), 0);
}

// Of a number that two initiators have drawn, the report and the queues have what is the first
// one's.
TEST_F(DeadLetterRemoverTest, LeavesTheDeadLettersOfAnotherInitiatorAlone) {
  GiveUp(1);
  ledger::Batch batch;
  batch.number = 1;
  batch.owner = "ours";
  batch.request_id = "request 1";
  batch.job = "shop";
  batch.job_definition = job_definition_;
  batch.created = clock_.Now();
  ASSERT_TRUE(ledger_->Create(batch).ok());
  report::BatchShape shape;
  shape.batch = 1;
  shape.job = "shop";
  shape.job_revision = "1";
  shape.owner = "another's";
  ASSERT_TRUE(report_->RegisterBatch(shape).ok());
  CountWithDeadLetter(1);
  Cancel(1);
  ASSERT_TRUE(dropper_.Delete(1).ok());
  EXPECT_EQ(Poison(), 1);
}

TEST_F(DeadLetterRemoverTest, DropsThoseOfACancelledBatch) {
  GiveUp(1);
  Create(1);
  CountWithDeadLetter(1, /*only_dead=*/true);
  Cancel(1);
  ASSERT_TRUE(dropper_.Delete(1).ok());
  EXPECT_EQ(Poison(), 0);
}

TEST_F(DeadLetterRemoverTest, KeepsThoseThatSayWhyAKeyIsHeld) {
  job_definition_ += "on_poison: hold\norder_by: price\n";
  CompleteWithDeadLetter(1);
  ASSERT_TRUE(dropper_.Delete(1).ok());
  EXPECT_EQ(Poison(), 1);
}

}  // namespace
}  // namespace muster::initiator::retention
