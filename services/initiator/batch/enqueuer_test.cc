// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch/enqueuer.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/base/status.h"
#include "muster/item/queue_names.h"
#include "muster/item/work_item_codec.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/queue_store.h"
#include "muster/sync/unique_id_generator.h"
#include "services/initiator/batch/job_queues.h"
#include "services/initiator/batch/opener.h"
#include "services/initiator/batch/source.h"
#include "services/initiator/retention/remover.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/telemetry/shown.h"

namespace muster::initiator::batch {
namespace {

using ledger::BatchState;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A real data directory, an input of `rows` lines, and a job that cuts it into items of ten.
class BatchEnqueuerTest : public ::testing::Test {
 protected:
  BatchEnqueuerTest() {
    job_.name = "sum";
    job_.revision = "r1";
    job_.input.columns = {{"n", "n"}};
    job_.item.transactions = 10;
    job_.queue.partitions = 2;
    const backend::DataDirUrls urls(dir_.path());
    queues_ = *backend::OpenQueueStore(urls.queue, backend::Mode::kReadWrite,
                                       backend::Holders::kInProcess, base::RealClock());
    ledger_ = *backend::OpenBatchLedger(urls.ledger, backend::Mode::kReadWrite);
    sync_ = *backend::OpenSyncStore(urls.sync);
    blobs_ = *backend::OpenBlobStore(urls.blobs);
    bus_ = *backend::OpenTriggerBus("local:");
    numbers_ = std::make_unique<sync::UniqueIdGenerator>(sync_.get(), "batch",
                                                         sync::UniqueIdOptions{1, 25});
  }

  void WriteInput(int rows, const std::string& first = "0") {
    std::ofstream file(input_);
    file << "n\n" << first << "\n";
    for (int i = 1; i < rows; ++i) file << i << "\n";
  }

  // Submits as a new process would: it reads the input and its format anew.
  absl::StatusOr<Submission> Submit(SubmitRequest request = {"req", "1", "", true, false,
                                                             std::nullopt},
                                    const std::stop_token& stop = {}) {
    auto source = BatchSource::Open(input_, job_.input);
    if (!source.ok()) return source.status();
    source_ = *std::move(source);
    enqueuer_ = std::make_unique<BatchEnqueuer>(&job_, source_.get(),
                                                Dependencies{.queues = queues_.get(),
                                                             .bus = bus_.get(),
                                                             .ledger = ledger_.get(),
                                                             .blobs = blobs_.get(),
                                                             .clock = base::RealClock(),
                                                             .metrics = &registry_},
                                                Options{.account = "acme", .run_items = 4});
    MUSTER_RETURN_IF_ERROR(CreateQueues(queues_.get(), "acme", job_));
    return Opener().Open(request, stop);
  }

  BatchOpener Opener() {
    return BatchOpener(&job_, source_.get(), ledger_.get(), numbers_.get(), base::RealClock());
  }

  // Returns the content of the input queues: for each item index, one slice for each message.
  std::map<uint32_t, std::vector<std::string>> Queued() {
    std::map<uint32_t, std::vector<std::string>> items;
    for (const queue::QueueId& id : item::InputQueues("acme", "sum", 2)) {
      while (true) {
        const auto messages = *queues_->Receive(id, {32, absl::Hours(1)});
        if (messages.empty()) break;
        for (const queue::Message& message : messages) {
          const auto item = item::DecodeWorkItem(message.body, blobs_.get());
          items[item->index].push_back(item->slice);
        }
      }
    }
    return items;
  }

  telemetry::Registry registry_;
  const os::TempDir dir_;
  const std::string input_ = dir_ / "in.csv";
  job::JobDefinition job_;
  std::unique_ptr<queue::QueueStore> queues_;
  std::unique_ptr<ledger::BatchLedger> ledger_;
  std::unique_ptr<sync::OptimisticSyncStore> sync_;
  std::unique_ptr<blob::BlobStore> blobs_;
  std::unique_ptr<bus::TriggerBus> bus_;
  std::unique_ptr<sync::UniqueIdGenerator> numbers_;
  std::unique_ptr<BatchSource> source_;
  std::unique_ptr<BatchEnqueuer> enqueuer_;
};

// Workers use the visibility timeout of the job's current definition: a batch may belong to an
// earlier one.
TEST_F(BatchEnqueuerTest, MakesQueuesWithTheVisibilityOfItsJobAndLeavesThoseThatAreThere) {
  const queue::QueueId there = item::InputQueue("acme", "sum", 0);
  ASSERT_TRUE(queues_->CreateQueue(there, queue::WithVisibility({}, absl::Minutes(1))).ok());
  job_.queue.visibility = absl::Minutes(9);
  WriteInput(10);
  ASSERT_TRUE(Submit().ok());
  const auto visibility = [&](const queue::QueueId& queue) {
    return queue::VisibilityOf(queues_->GetMetadata(queue).value());
  };
  EXPECT_EQ(visibility(there), absl::Minutes(1));
  EXPECT_EQ(visibility(item::InputQueue("acme", "sum", 1)), absl::Minutes(9));
  EXPECT_EQ(visibility(item::OutputQueue("acme", "sum", 0)), std::nullopt);
}

TEST_F(BatchEnqueuerTest, PutsEveryRecordExactlyOnceOverAllPartitionsAndSeals) {
  WriteInput(95);
  const auto submission = Submit();
  ASSERT_TRUE(submission.ok()) << submission.status();
  EXPECT_EQ(submission->start, Start::kNew);
  EXPECT_EQ(submission->batch.number, 1u);
  ASSERT_TRUE(enqueuer_->Enqueue(1, {}).ok());
  const ledger::Batch batch = *ledger_->Get(1);
  EXPECT_EQ(batch.state, BatchState::kSealed);
  EXPECT_EQ(batch.items, 10u);
  EXPECT_EQ(batch.transactions, 95u);
  EXPECT_EQ(batch.enqueued_items, 10u);
  EXPECT_GT(queues_->Stats(item::InputQueue("acme", "sum", 0))->ready, 0);
  EXPECT_GT(queues_->Stats(item::InputQueue("acme", "sum", 1))->ready, 0);
  std::string all;
  for (const auto& [index, slices] : Queued()) {
    ASSERT_EQ(slices.size(), 1u) << "item " << index;
    all += slices.front();
  }
  std::string expected;
  for (int i = 0; i < 95; ++i) absl::StrAppend(&expected, i, "\n");
  EXPECT_EQ(all, expected);
}

// An item that expired while it waited or was worked on would be put again as one that was lost,
// for ever.
TEST_F(BatchEnqueuerTest, PutsItemsThatDoNotExpire) {
  WriteInput(4);
  ASSERT_TRUE(Submit().ok());
  ASSERT_TRUE(enqueuer_->Enqueue(1, {}).ok());
  const auto messages = queues_->Peek(item::InputQueue("acme", "sum", 0), 32).value();
  ASSERT_FALSE(messages.empty());
  for (const queue::Message& message : messages) {
    EXPECT_EQ(message.expiration_time, absl::InfiniteFuture());
  }
}

TEST_F(BatchEnqueuerTest, GoesOnWhereTheLedgerEnds) {
  WriteInput(200);
  ASSERT_TRUE(Submit().ok());
  std::stop_source stop;
  // Stops after the first runs, at the first announcement.
  const auto watch = *bus_->Subscribe([&stop](const auto&) { stop.request_stop(); });
  EXPECT_TRUE(absl::IsCancelled(enqueuer_->Enqueue(1, stop.get_token())));
  const uint64_t before = ledger_->Get(1)->items;
  EXPECT_GT(before, 0u);
  EXPECT_LT(before, 20u);
  const auto submission = Submit();
  ASSERT_TRUE(submission.ok()) << submission.status();
  EXPECT_EQ(submission->start, Start::kContinued);
  EXPECT_EQ(submission->batch.number, 1u);
  ASSERT_TRUE(enqueuer_->Enqueue(1, {}).ok());
  const auto queued = Queued();
  EXPECT_EQ(queued.size(), 20u);
  for (const auto& [index, slices] : queued) EXPECT_EQ(slices.size(), 1u) << "item " << index;
}

TEST_F(BatchEnqueuerTest, ARecordedItemThatWasNotAcknowledgedIsPutAgain) {
  WriteInput(30);
  ASSERT_TRUE(Submit().ok());
  // A crash between ledger and queue: the ledger has an item that never reached the queue.
  input::SliceReader slices = source_->Slices(source_->FirstRecord(), {10, 1 << 20});
  const auto first = slices.Next();
  ASSERT_TRUE(ledger_
                  ->Append(1, 0,
                           {{{(*first)->offset, (*first)->length, (*first)->first_line, 10,
                              base::Fingerprint((*first)->data), false}}})
                  .ok());
  ASSERT_TRUE(Submit().ok());
  ASSERT_TRUE(enqueuer_->Enqueue(1, {}).ok());
  EXPECT_EQ(Queued().size(), 3u);
}

TEST_F(BatchEnqueuerTest, EnqueuingTwiceChangesNothing) {
  WriteInput(30);
  ASSERT_TRUE(Submit().ok());
  ASSERT_TRUE(enqueuer_->Enqueue(1, {}).ok());
  ASSERT_TRUE(enqueuer_->Enqueue(1, {}).ok());
  EXPECT_EQ(queues_->Stats(item::InputQueue("acme", "sum", 0))->total_in +
                queues_->Stats(item::InputQueue("acme", "sum", 1))->total_in,
            3);
}

TEST_F(BatchEnqueuerTest, RefillsJustTheItemsThatAreAskedFor) {
  base::LogCapture log;
  WriteInput(50);
  ASSERT_TRUE(Submit().ok());
  ASSERT_TRUE(enqueuer_->Enqueue(1, {}).ok());
  for (const queue::QueueId& id : item::InputQueues("acme", "sum", 2)) {
    ASSERT_TRUE(queues_->Clear(id).ok());
  }
  ASSERT_TRUE(enqueuer_->Refill(1, {1, 4}).ok());
  EXPECT_EQ(telemetry::Shown(registry_, R"(muster_refilled_items_total{queue="sum-in"})"), 2);
  const auto queued = Queued();
  EXPECT_EQ(queued.size(), 2u);
  EXPECT_EQ(queued.at(4).front(), "40\n41\n42\n43\n44\n45\n46\n47\n48\n49\n");
  EXPECT_EQ(ledger_->Get(1)->refills, 1u);
}

TEST_F(BatchEnqueuerTest, GivesItemsTheTraceOfTheirBatchHoweverOftenTheyArePut) {
  WriteInput(30);
  const auto trace = base::TraceContext::FromTraceparent(
      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  const uint64_t batch = Submit({"req", "1", "", true, false, *trace})->batch.number;
  ASSERT_TRUE(enqueuer_->Enqueue(batch, {}).ok());
  ASSERT_TRUE(Submit().ok());  // like a submitter after a restart that names no trace
  ASSERT_TRUE(enqueuer_->Refill(batch, {0, 2}).ok());
  int items = 0;
  for (const queue::QueueId& id : item::InputQueues("acme", "sum", 2)) {
    const std::vector<queue::Message> messages = *queues_->Receive(id, {32, absl::Hours(1)});
    for (const queue::Message& message : messages) {
      EXPECT_EQ(item::DecodeWorkItemHeader(message.body)->identity.trace, *trace);
      ++items;
    }
  }
  EXPECT_EQ(items, 5);
}

TEST_F(BatchEnqueuerTest, RefusesAnotherContentUnderTheSameName) {
  WriteInput(30, "0");
  ASSERT_TRUE(Submit().ok());
  ASSERT_TRUE(enqueuer_->Enqueue(1, {}).ok());
  WriteInput(30, "9");
  const absl::Status status = Submit().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("10 transactions from line 2 differ"));
}

TEST_F(BatchEnqueuerTest, RefusesAShorterAndALongerInput) {
  WriteInput(30);
  ASSERT_TRUE(Submit().ok());
  ASSERT_TRUE(enqueuer_->Enqueue(1, {}).ok());
  WriteInput(29);
  EXPECT_THAT(std::string(Submit().status().message()), HasSubstr("shorter"));
  WriteInput(31);
  EXPECT_THAT(std::string(Submit().status().message()), HasSubstr("bytes"));
}

TEST_F(BatchEnqueuerTest, RefusesAnInputThatChangedWhereItWasNotSplitYet) {
  WriteInput(200);
  ASSERT_TRUE(Submit().ok());
  WriteInput(200);
  EXPECT_EQ(Submit()->start, Start::kContinued) << "the same content, written again";
  std::fstream file(input_, std::ios::in | std::ios::out);
  file.seekp(-3, std::ios::end);
  file << "7";
  file.close();
  const absl::Status status = Submit().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("what follows its first 0 records differs"));
}

TEST_F(BatchEnqueuerTest, PassesOverNumbersThatTheLedgerHasAlready) {
  WriteInput(10);
  ASSERT_TRUE(Submit({"first", "1", "", true, false}).ok());
  // The state after a restore of a backup with the ledger, but without the number generator's
  // record.
  ledger::Batch taken;
  taken.number = 2;
  ASSERT_TRUE(ledger_->Create(taken).ok());
  const auto submission = Submit({"second", "1", "", true, false});
  ASSERT_TRUE(submission.ok()) << submission.status();
  EXPECT_GT(submission->batch.number, 2u);
}

TEST_F(BatchEnqueuerTest, StopsReadingAnInputWhenAsked) {
  WriteInput(10);
  ASSERT_TRUE(Submit().ok());
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(absl::IsCancelled(Submit({"req", "1", "", true, false}, stop.get_token()).status()));
}

TEST_F(BatchEnqueuerTest, AnOpenBatchIsBoundToItsRevisionAndHandler) {
  WriteInput(30);
  ASSERT_TRUE(Submit().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Submit({"req", "2", "", true, false}).status()));
  job_.revision = "r2";
  EXPECT_TRUE(absl::IsFailedPrecondition(Submit().status()));
}

TEST_F(BatchEnqueuerTest, ABatchThatIsBoundToNoVersionGoesOnWithAny) {
  WriteInput(30);
  ASSERT_TRUE(Submit({"req", "", "", true, false}).ok());
  const auto submission = Submit({"req", "2", "", true, false});
  ASSERT_TRUE(submission.ok()) << submission.status();
  EXPECT_EQ(submission->start, Start::kContinued);
  EXPECT_EQ(submission->batch.handler_version, "") << "it stays what it was submitted as";
  job_.revision = "r2";
  const absl::Status other = Submit({"req", "2", "", true, false}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(other)) << other;
  EXPECT_THAT(std::string(other.message()), HasSubstr("job revision r1 and handler version any"));
}

TEST_F(BatchEnqueuerTest, AFinishedBatchOfAnotherRevisionMakesRoomForANewOne) {
  WriteInput(30);
  ASSERT_TRUE(Submit().ok());
  ASSERT_TRUE(enqueuer_->Enqueue(1, {}).ok());
  ASSERT_TRUE(ledger_->MarkComplete(1, absl::UnixEpoch()).ok());
  EXPECT_EQ(Submit()->start, Start::kDone);
  job_.revision = "r2";
  EXPECT_TRUE(absl::IsFailedPrecondition(Submit({"req", "1", "", false, false}).status()))
      << "a chosen request id never makes a second batch";
  const auto submission = Submit();
  ASSERT_TRUE(submission.ok()) << submission.status();
  EXPECT_EQ(submission->batch.number, 2u);
}

TEST_F(BatchEnqueuerTest, ABatchOfANewVersionCountsInPlaceOfAllThatWereMadeOfTheInput) {
  WriteInput(10);
  for (const uint64_t number : {1, 2, 3}) {
    const auto submission = Submit({"req", absl::StrCat("v", number), "", true, false});
    ASSERT_TRUE(submission.ok()) << submission.status();
    EXPECT_EQ(submission->start, Start::kNew);
    ASSERT_TRUE(enqueuer_->Enqueue(number, {}).ok());
    ASSERT_TRUE(ledger_->MarkComplete(number, absl::UnixEpoch()).ok());
  }
  EXPECT_THAT(ledger_->Get(1)->replaces, ::testing::IsEmpty());
  EXPECT_THAT(ledger_->Get(3)->replaces, ::testing::ElementsAre(2, 1));
}

// As a job of every night does that begins with --new and is begun again when it was killed.
TEST_F(BatchEnqueuerTest, ANewBatchIsBegunOnlyWhereNoneOfTheSameInputIsUnderWay) {
  const SubmitRequest always_new = {"req", "1", "", true, true};
  WriteInput(10);
  ASSERT_EQ(Submit(always_new)->batch.number, 1u);
  const auto again = Submit(always_new);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->batch.number, 1u);
  EXPECT_EQ(again->start, Start::kContinued);
  WriteInput(11);
  const auto other = Submit(always_new);
  EXPECT_EQ(other->batch.number, 2u) << "other content";
  EXPECT_THAT(other->batch.replaces, ::testing::IsEmpty());
  const auto other_version = Submit({"req", "2", "", true, true});
  EXPECT_EQ(other_version->batch.number, 3u);
  EXPECT_THAT(other_version->batch.replaces, ::testing::ElementsAre(2))
      << "which would count the same beside it";
  ASSERT_TRUE(enqueuer_->Enqueue(3, {}).ok());
  ASSERT_TRUE(ledger_->MarkComplete(3, absl::UnixEpoch()).ok());
  const auto beside = Submit({"req", "2", "", true, true});
  EXPECT_EQ(beside->batch.number, 4u);
  EXPECT_THAT(beside->batch.replaces, ::testing::IsEmpty());
}

// Two jobs of a night had one id for one input. The second one was told to use --new, which counted
// in place of the first one's batch, and kept that from being continued.
TEST_F(BatchEnqueuerTest, TakesNoBatchOfAnotherJobForItsOwn) {
  WriteInput(10);
  const SubmitRequest night = {"night", "1", "", false};
  ASSERT_TRUE(Submit(night).ok());
  const std::string first = std::exchange(job_.name, "other");
  for (const bool always_new : {false, true}) {
    const absl::Status refused = Submit({"night", "1", "", false, always_new}).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_EQ(refused.message(),
              "this request id belongs to batch 1 of job 'sum': choose another one");
  }
  job_.name = first;
  const auto continued = Submit(night);
  ASSERT_TRUE(continued.ok()) << continued.status();
  EXPECT_EQ(continued->start, Start::kContinued);
}

// As on a mesh: a cancelled batch frees its request id.
TEST_F(BatchEnqueuerTest, TakesTheRequestIdOfACancelledBatchOfAnotherJob) {
  WriteInput(10);
  ASSERT_TRUE(Submit({"night", "1", "", true}).ok());
  const auto second = Submit({"night", "2", "", true, true});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_THAT(second->batch.replaces, ::testing::ElementsAre(1));
  ASSERT_TRUE(ledger_->Cancel(2, absl::UnixEpoch(), "the wrong job").ok());
  job_.name = "other";
  const auto begun = Submit({"night", "2", "", true});
  ASSERT_TRUE(begun.ok()) << begun.status();
  EXPECT_EQ(begun->start, Start::kNew);
  EXPECT_EQ(begun->batch.number, 3u);
  EXPECT_THAT(begun->batch.replaces, ::testing::IsEmpty()) << "that is the other job's";
}

TEST_F(BatchEnqueuerTest, TheRefusalOfOtherContentNamesTheWaysOn) {
  WriteInput(10);
  ASSERT_TRUE(Submit().ok());
  WriteInput(11);
  const std::string refused(Submit().status().message());
  for (const char* way :
       {"--request-id of its own: it is counted once", "--new counts this content"}) {
    EXPECT_THAT(refused, HasSubstr(way));
  }
}

// Its bytes are needed neither for the message nor to put it again.
TEST_F(BatchEnqueuerTest, PutsReferencesToLongItemsAndNeedsNoSourceToPutThemAgain) {
  const std::string longer(item::kShortSliceBytes, '7');
  WriteInput(2, longer);
  ASSERT_TRUE(Submit().ok());
  ASSERT_TRUE(enqueuer_->Enqueue(1, {}).ok());
  std::filesystem::resize_file(input_, 2);
  ASSERT_TRUE(enqueuer_->Refill(1, {0}).ok());
  const auto queued = Queued();
  EXPECT_THAT(queued.at(0), ::testing::ElementsAre("", "")) << "no message has the content";
}

// A worker gives up an item whose message has other bytes than its hash says.
TEST_F(BatchEnqueuerTest, PutsNoItemAgainWhoseBytesHaveChanged) {
  WriteInput(30);
  ASSERT_TRUE(Submit().ok());
  ASSERT_TRUE(enqueuer_->Enqueue(1, {}).ok());
  Queued();
  std::string good;
  std::getline(std::ifstream(input_), good, '\0');
  std::string damaged = good;
  std::replace(damaged.begin(), damaged.end(), '2', '3');
  std::ofstream(input_) << damaged;
  const absl::Status refused = enqueuer_->Refill(1, std::vector<uint64_t>{2});
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_THAT(refused.message(),
              HasSubstr("the bytes of item 1/2 (line 22) have changed since the batch was split"));
  EXPECT_THAT(Queued(), IsEmpty());
  std::ofstream(input_) << good;
  EXPECT_TRUE(enqueuer_->Refill(1, std::vector<uint64_t>{2}).ok());
  EXPECT_EQ(Queued().size(), 1u);
}

TEST_F(BatchEnqueuerTest, ALargeSliceIsClaimCheckedAndItsBlobGoesWithTheBatch) {
  job_.queue.content_inline = true;
  std::mt19937 random(1);  // the same noise every time; it does not compress
  std::string noise(700'000, '\0');
  for (char& c : noise) c = static_cast<char>('-' + random() % 80);
  WriteInput(2, noise);
  ASSERT_TRUE(Submit().ok());
  ASSERT_TRUE(enqueuer_->Enqueue(1, {}).ok());
  const auto queued = Queued();
  EXPECT_EQ(queued.at(0).front().substr(0, 100), noise.substr(0, 100));
  const ledger::Batch batch = *ledger_->Get(1);
  ASSERT_TRUE(retention::DeleteItemBlobs(ledger_.get(), blobs_.get(), batch, /*keep=*/{0}).ok());
  EXPECT_TRUE(blobs_->Get(item::BlobName(1, 0)).ok()) << "a redrive needs it";
  ASSERT_TRUE(retention::DeleteItemBlobs(ledger_.get(), blobs_.get(), batch, {}).ok());
  EXPECT_TRUE(absl::IsNotFound(blobs_->Get(item::BlobName(1, 0)).status()));
}

// Its blob is put before the ledger has the item: no later step would find it.
TEST_F(BatchEnqueuerTest, LeavesNoBlobOfAnItemThatCameAfterACancel) {
  job_.queue.content_inline = true;
  std::mt19937 random(1);
  std::string noise(700'000, '\0');
  for (char& c : noise) c = static_cast<char>('-' + random() % 80);
  job_.item.transactions = 1;
  WriteInput(1, absl::StrCat(noise, "\n", noise));
  ASSERT_TRUE(Submit().ok());
  const auto cancel = [&] { return ledger_->Cancel(1, absl::UnixEpoch(), "unwanted"); };
  BatchEnqueuer enqueuer(
      &job_, source_.get(),
      Dependencies{queues_.get(), bus_.get(), ledger_.get(), blobs_.get(), base::RealClock()},
      Options{.account = "acme", .run_items = 1, .before_next_run = cancel});
  EXPECT_FALSE(enqueuer.Enqueue(1, {}).ok());
  EXPECT_EQ(ledger_->Get(1)->items, 1u);
  EXPECT_TRUE(blobs_->Get(item::BlobName(1, 0)).ok()) << "it has an owner";
  EXPECT_TRUE(absl::IsNotFound(blobs_->Get(item::BlobName(1, 1)).status()));
}

}  // namespace
}  // namespace muster::initiator::batch
