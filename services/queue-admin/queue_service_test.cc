// SPDX-License-Identifier: Apache-2.0
#include "services/queue-admin/queue_service.h"

#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/item/redrive.h"
#include "muster/ledger/remote/remote_batch_records.h"
#include "muster/ledger/rocksdb/rocksdb_batch_ledger.h"
#include "muster/queue/limits.h"
#include "muster/queue/store_decorators.h"
#include "services/initiator/api/ledger_service.h"
#include "services/initiator/api/mesh_reopener.h"
#include "tests/fakes/initiator/queue_service_fixture.h"

namespace muster::queue_admin {
namespace {

using initiator::QueueServiceTest;
using initiator::api::LedgerService;
using initiator::api::MeshReopener;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(QueueServiceTest, ListsTheQueuesOfAnAccountPageByPage) {
  for (const char* name : {"alpha", "beta", "work-too", "zeta"}) {
    ASSERT_TRUE(queues_->CreateQueue({"acme", name}, {}).ok());
  }
  ASSERT_TRUE(queues_->CreateQueue({"other", "theirs"}, {}).ok());
  int pages = 0;
  EXPECT_THAT(ListAll("", 2, &pages), ElementsAre("alpha", "beta", "work", "work-too", "zeta"));
  EXPECT_EQ(pages, 3);
  pages = 0;
  EXPECT_THAT(ListAll("", 5, &pages), SizeIs(5));
  EXPECT_EQ(pages, 1);
  EXPECT_THAT(ListAll("work", 0, &pages), ElementsAre("work", "work-too"));
  EXPECT_THAT(ListAll("nothing", 0, &pages), IsEmpty());
}

// Deletes the queue "beta" when it is looked at: between the list of the queues and its counts.
class VanishingStore final : public queue::InterceptedStore {
 public:
  using InterceptedStore::InterceptedStore;

  absl::StatusOr<queue::QueueStats> Stats(const queue::QueueId& queue) override {
    if (queue.name == "beta") EXPECT_TRUE(InterceptedStore::DeleteQueue(queue).ok());
    return InterceptedStore::Stats(queue);
  }
};

TEST_F(QueueServiceTest, GoesOnBehindAPageOfWhichAQueueWasDeletedMeanwhile) {
  for (const char* name : {"alpha", "beta", "zeta"}) {
    ASSERT_TRUE(queues_->CreateQueue({"acme", name}, {}).ok());
  }
  VanishingStore store(queues_.get());
  QueueService service(&store, reopener_.get(), &sync_, &bus_, "initiator-1", &clock_);
  v1::ListQueuesRequest request;
  request.set_account("acme");
  request.set_page_size(1);
  std::vector<std::string> names;
  do {
    grpc::ServerContext context;
    v1::ListQueuesResponse page;
    ASSERT_TRUE(service.ListQueues(&context, &request, &page).ok());
    for (const v1::QueueSummary& queue : page.queues()) names.push_back(queue.queue().name());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(names, ElementsAre("alpha", "work", "zeta"));
}

TEST_F(QueueServiceTest, TellsOfEachQueueWhatItIsAndHolds) {
  Put("a");
  v1::ListQueuesRequest request;
  request.set_account("acme");
  v1::ListQueuesResponse response;
  ASSERT_EQ(Call(&Stub::ListQueues, request, &response), absl::OkStatus());
  ASSERT_THAT(response.queues(), SizeIs(1));
  EXPECT_EQ(response.queues(0).queue().account(), "acme");
  EXPECT_EQ(response.queues(0).metadata().at("owner"), "ann");
  EXPECT_EQ(response.queues(0).stats().ready(), 1);
}

TEST_F(QueueServiceTest, EndsAPageEarlyRatherThanMakeItTooLarge) {
  const queue::Metadata metadata = {{"note", std::string(queue::kMaxMetadataBytes - 4, 'x')}};
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(queues_->CreateQueue({"acme", absl::StrCat("large-", 1000 + i)}, metadata).ok());
  }
  int pages = 0;
  EXPECT_THAT(ListAll("large-", 1000, &pages), SizeIs(500));
  EXPECT_EQ(pages, 2);
}

TEST_F(QueueServiceTest, AnswersTheCountsOfAQueue) {
  Put("a");
  GiveUp("b");
  clock_.Advance(absl::Seconds(90));
  v1::GetQueueStatsResponse response;
  ASSERT_EQ(Call(&Stub::GetQueueStats, About<v1::GetQueueStatsRequest>(), &response),
            absl::OkStatus());
  EXPECT_EQ(response.stats().ready(), 1);
  EXPECT_EQ(response.stats().poison(), 1);
  EXPECT_EQ(response.stats().total_in(), 2);
  EXPECT_EQ(response.stats().oldest_age().seconds(), 90);
}

TEST_F(QueueServiceTest, PeeksWithoutTaking) {
  const std::string first = Put("first");
  Put("second");
  const auto response = OrDie(Peek(1, 3));
  ASSERT_THAT(response.messages(), SizeIs(1));
  EXPECT_EQ(response.messages(0).message_id(), first);
  EXPECT_EQ(response.messages(0).body(), "fir");
  EXPECT_EQ(response.messages(0).body_bytes(), 5);
  EXPECT_EQ(response.messages(0).dequeue_count(), 0);
  EXPECT_EQ(queues_->Stats(id_)->ready, 2);
}

TEST_F(QueueServiceTest, AnswersAsManyBodiesAsAMessageHolds) {
  for (int i = 0; i < 5; ++i) Put(std::string(queue::kMaxBodyBytes, 'x'));
  EXPECT_THAT(OrDie(Peek(32)).messages(), SizeIs(2));
  EXPECT_THAT(OrDie(Peek(32, 10)).messages(), SizeIs(5));
}

TEST_F(QueueServiceTest, ListsPoisonOldestFirstPageByPage) {
  std::vector<std::string> given_up;
  for (int i = 0; i < 40; ++i) given_up.push_back(GiveUp(absl::StrCat(i), "it rained"));
  const auto all = OrDie(ListPoison(1000));
  ASSERT_THAT(all.messages(), SizeIs(40));
  EXPECT_EQ(all.messages(0).cause().reason(), "it rained");
  EXPECT_EQ(all.messages(0).cause().attempts(), 3);
  EXPECT_EQ(all.messages(0).cause().holder(), "worker-1");
  EXPECT_EQ(all.messages(39).message_id(), given_up[39]);
  const auto rest = OrDie(ListPoison(33, given_up[37], 1));
  ASSERT_THAT(rest.messages(), SizeIs(2));
  EXPECT_EQ(rest.messages(0).body(), "3");
  EXPECT_EQ(rest.messages(0).body_bytes(), 2);
  EXPECT_THAT(OrDie(ListPoison(33, given_up[39])).messages(), IsEmpty());
  EXPECT_THAT(OrDie(ListPoison(34)).messages(), SizeIs(34));
}

TEST_F(QueueServiceTest, RedrivesTheOldestPoison) {
  GiveUp("a");
  GiveUp("b");
  GiveUp("c");
  EXPECT_EQ(OrDie(Redrive({}, 2)), 2);
  EXPECT_EQ(queues_->Stats(id_)->ready, 2);
  EXPECT_EQ(OrDie(Redrive({}, INT64_MAX)), 1);
  EXPECT_EQ(OrDie(Redrive({}, INT64_MAX)), 0);
}

// Workers found redriven messages with their next safety check only, up to half a minute later.
TEST_F(QueueServiceTest, WakesTheListenersOfRedrivenMessages) {
  std::vector<std::string> heard;
  const auto hearing = bus_.Subscribe([&](const bus::InterRoleCommunicationEvent& event) {
    const auto* const work = std::get_if<bus::CloudQueueWorkDetectedTriggerEvent>(&event.payload);
    if (work != nullptr) heard.push_back(absl::StrCat(work->queue_name, " ", work->messages));
  });
  EXPECT_EQ(OrDie(Redrive({}, 2)), 0);
  EXPECT_THAT(heard, IsEmpty()) << "nothing was redriven";
  GiveUp("a");
  GiveUp("b");
  EXPECT_EQ(OrDie(Redrive({}, 2)), 2);
  EXPECT_THAT(heard, ElementsAre("work 2"));
}

TEST_F(QueueServiceTest, RedrivesAtARateUntilTheServerDrains) {
  GiveUp("a");
  GiveUp("b");
  auto request = About<v1::RedriveRequest>();
  request.set_max_messages(2);
  request.set_messages_per_second(1);
  std::thread caller([&] {
    v1::RedriveResponse response;
    EXPECT_TRUE(absl::IsCancelled(Call(&Stub::Redrive, request, &response)));
  });
  clock_.AwaitSleepers(1);
  EXPECT_EQ(queues_->Stats(id_)->ready, 1);
  service_->Drain();
  clock_.Advance(absl::Milliseconds(200));
  caller.join();
  EXPECT_EQ(queues_->Stats(id_)->poison, 1);
  EXPECT_EQ(OrDie(Redrive({}, 2)), 1) << "one without a rate is quick";
}

TEST_F(QueueServiceTest, RefusesARateThatCannotBe) {
  auto request = About<v1::RedriveRequest>();
  request.set_max_messages(2);
  v1::RedriveResponse response;
  for (const int64_t rate : {-1, 1'000'001}) {
    request.set_messages_per_second(rate);
    EXPECT_THAT(Fields(Call(&Stub::Redrive, request, &response)),
                ElementsAre("messages_per_second"));
  }
  request.set_max_messages(0);
  request.add_message_ids("one");
  request.set_messages_per_second(1);
  EXPECT_THAT(Fields(Call(&Stub::Redrive, request, &response)), ElementsAre("messages_per_second"));
}

TEST_F(QueueServiceTest, RedrivesPoisonByNameAndPassesOverWhatIsGone) {
  GiveUp("a");
  const std::string second = GiveUp("b");
  EXPECT_EQ(OrDie(Redrive({"nonsense", second, second}, 0)), 1);
  EXPECT_EQ(OrDie(Redrive({second}, 0)), 0);
  EXPECT_EQ(OrDie(Peek(32)).messages(0).message_id(), second);
}

TEST_F(QueueServiceTest, OpensTheBatchOfARedrivenItemAgain) {
  CompleteBatch();
  GiveUp(ItemBody(1));
  EXPECT_EQ(OrDie(Redrive({}, 1)), 1);
  EXPECT_EQ(ledger_->Get(kBatch)->state, ledger::BatchState::kSealed);
  EXPECT_THAT(*report_client_->UncountedItems(kBatch, 2, 0, 10), ElementsAre(1));
  EXPECT_EQ(report_client_->GetProgress(kBatch)->aggregated, 10);
}

TEST_F(QueueServiceTest, LeavesPoisonWhereItIsWhenItsBatchCannotBeOpened) {
  GiveUp(ItemBody(1));  // of an unknown batch
  EXPECT_TRUE(absl::IsFailedPrecondition(Redrive({}, 1).status()));
  EXPECT_EQ(queues_->Stats(id_)->poison, 1);
}

TEST_F(QueueServiceTest, LeavesThePoisonOfACancelledBatchAndRedrivesTheRest) {
  ledger::Batch batch;
  batch.number = kBatch;
  ASSERT_EQ(ledger_->Create(batch), absl::OkStatus());
  ASSERT_EQ(ledger_->Cancel(kBatch, clock_.Now(), "a mistake"), absl::OkStatus());
  GiveUp(ItemBody(1));
  GiveUp("no work item");
  auto request = About<v1::RedriveRequest>();
  request.set_max_messages(1);
  v1::RedriveResponse response;
  ASSERT_EQ(Call(&Stub::Redrive, request, &response), absl::OkStatus());
  EXPECT_EQ(response.redriven(), 1);
  EXPECT_EQ(response.kept_messages(), 1);
  ASSERT_THAT(response.kept(), SizeIs(1));
  EXPECT_EQ(response.kept(0).why(), "batch 7 is cancelled");
  EXPECT_EQ(queues_->Stats(id_)->poison, 1);
  EXPECT_EQ(ledger_->Get(kBatch)->state, ledger::BatchState::kCancelled);
}

// A redrive over another initiator took the item's row out of the report, while the batch stayed
// complete in its own ledger, so its initiator did not put the item again.
TEST_F(QueueServiceTest, OpensTheBatchOfAnotherInitiatorInItsLedger) {
  CompleteBatch();
  GiveUp(ItemBody(1));
  LedgerService owner(ledger_.get(), reopener_.get(), nullptr, nullptr,
                      {nullptr, [](uint64_t, const v1::BatchOutcome*) {}});
  rpc::ServerOptions listening;
  listening.addresses = {"localhost:0"};
  const auto server =
      OrDie(rpc::Server::Start(listening, {{v1::LedgerService::service_full_name(), &owner}}));
  ledger::remote::RemoteBatchRecords elsewhere([&] { return server->addresses(); }, {}, kLong);
  const auto own_ledger = OrDie(ledger::rocksdb::RocksDbBatchLedger::Open(dir_ / "own", {}));
  item::LedgerBatchReopener here(own_ledger.get(), report_client_.get());
  MeshReopener reopener(&here, &elsewhere);

  item::RedriveRequest request;
  request.queue = id_;
  const auto summary = item::RedriveItems(request, *queues_, reopener);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->messages, 1);
  EXPECT_EQ(ledger_->Get(kBatch)->state, ledger::BatchState::kSealed);
  EXPECT_THAT(*report_client_->UncountedItems(kBatch, 2, 0, 10), ElementsAre(1));

  ASSERT_EQ(ledger_->Cancel(kBatch, clock_.Now(), "a mistake"), absl::OkStatus());
  EXPECT_EQ(reopener.Grant(kBatch, {1}).status(),
            absl::FailedPreconditionError("batch 7 is cancelled"));
  EXPECT_TRUE(absl::IsUnavailable(reopener.Grant(kBatch + 1, {1}).status()))
      << "its initiator may be away";
}

TEST_F(QueueServiceTest, PurgesPoisonOnlyOrAllButPoison) {
  Put("a");
  GiveUp("b");  // leases "a", the first message, and gives it up
  v1::PurgeQueueResponse cleared;
  ASSERT_EQ(Call(&Stub::PurgeQueue, About<v1::PurgeQueueRequest>(), &cleared), absl::OkStatus());
  EXPECT_EQ(queues_->Stats(id_)->stored(), 0);
  EXPECT_EQ(queues_->Stats(id_)->poison, 1);
  v1::PurgePoisonResponse purged;
  ASSERT_EQ(Call(&Stub::PurgePoison, About<v1::PurgePoisonRequest>(), &purged), absl::OkStatus());
  EXPECT_EQ(purged.purged(), 1);
  EXPECT_EQ(queues_->Stats(id_)->poison, 0);
}

TEST_F(QueueServiceTest, KnowsNoQueueThatIsNotThere) {
  v1::GetQueueStatsResponse stats;
  EXPECT_TRUE(absl::IsNotFound(
      Call(&Stub::GetQueueStats, About<v1::GetQueueStatsRequest>("none"), &stats)));
  auto peek = About<v1::PeekMessagesRequest>("none");
  peek.set_max_messages(1);
  v1::PeekMessagesResponse peeked;
  EXPECT_TRUE(absl::IsNotFound(Call(&Stub::PeekMessages, peek, &peeked)));
  auto poison = About<v1::ListPoisonRequest>("none");
  poison.set_max_messages(1);
  v1::ListPoisonResponse listed;
  EXPECT_TRUE(absl::IsNotFound(Call(&Stub::ListPoison, poison, &listed)));
  auto oldest = About<v1::RedriveRequest>("none");
  oldest.set_max_messages(1);
  v1::RedriveResponse redriven;
  EXPECT_TRUE(absl::IsNotFound(Call(&Stub::Redrive, oldest, &redriven)));
  auto named = About<v1::RedriveRequest>("none");
  named.add_message_ids("nonsense");
  EXPECT_TRUE(absl::IsNotFound(Call(&Stub::Redrive, named, &redriven)));
  v1::PurgePoisonResponse purged;
  EXPECT_TRUE(
      absl::IsNotFound(Call(&Stub::PurgePoison, About<v1::PurgePoisonRequest>("none"), &purged)));
  v1::PurgeQueueResponse cleared;
  EXPECT_TRUE(
      absl::IsNotFound(Call(&Stub::PurgeQueue, About<v1::PurgeQueueRequest>("none"), &cleared)));
}

TEST_F(QueueServiceTest, RefusesANameThatNoQueueCanHave) {
  v1::GetQueueStatsResponse stats;
  v1::GetQueueStatsRequest nameless;
  EXPECT_THAT(Fields(Call(&Stub::GetQueueStats, nameless, &stats)), ElementsAre("queue.account"));
  EXPECT_THAT(Fields(Call(&Stub::GetQueueStats, About<v1::GetQueueStatsRequest>("No!"), &stats)),
              ElementsAre("queue.name"));
  v1::PurgeQueueResponse cleared;
  EXPECT_THAT(Fields(Call(&Stub::PurgeQueue, About<v1::PurgeQueueRequest>("No!"), &cleared)),
              ElementsAre("queue.name"));
  v1::PurgePoisonResponse purged;
  EXPECT_THAT(Fields(Call(&Stub::PurgePoison, About<v1::PurgePoisonRequest>("No!"), &purged)),
              ElementsAre("queue.name"));
}

TEST_F(QueueServiceTest, RefusesAPageThatIsNone) {
  v1::ListQueuesResponse response;
  v1::ListQueuesRequest request;
  EXPECT_THAT(Fields(Call(&Stub::ListQueues, request, &response)), ElementsAre("account"));
  request.set_account("acme");
  for (const int size : {-1, 1001}) {
    request.set_page_size(size);
    EXPECT_THAT(Fields(Call(&Stub::ListQueues, request, &response)), ElementsAre("page_size"));
  }
  request.set_page_size(1000);
  request.set_page_token("../work");
  EXPECT_THAT(Fields(Call(&Stub::ListQueues, request, &response)), ElementsAre("page_token"));
}

TEST_F(QueueServiceTest, RefusesNumbersThatAreOutOfBounds) {
  for (const int max : {-1, 0, 33}) {
    EXPECT_THAT(Fields(Peek(max).status()), ElementsAre("max_messages")) << max;
  }
  for (const int max : {-1, 0, 1001}) {
    EXPECT_THAT(Fields(ListPoison(max).status()), ElementsAre("max_messages")) << max;
  }
  EXPECT_THAT(Fields(Peek(1, -1).status()), ElementsAre("max_body_bytes"));
  EXPECT_THAT(Fields(ListPoison(1, "", -1).status()), ElementsAre("max_body_bytes"));
  EXPECT_THAT(Fields(ListPoison(1, "nonsense").status()), ElementsAre("after_message_id"));
}

TEST_F(QueueServiceTest, RefusesARedriveOfNothingOrOfTwoThings) {
  EXPECT_THAT(Fields(Redrive({}, 0).status()), ElementsAre("max_messages"));
  EXPECT_THAT(Fields(Redrive({}, -1).status()), ElementsAre("max_messages"));
  EXPECT_THAT(Fields(Redrive({"a"}, 1).status()), ElementsAre("max_messages"));
  EXPECT_THAT(Fields(Redrive(std::vector<std::string>(1001, "a"), 0).status()),
              ElementsAre("message_ids"));
}

}  // namespace
}  // namespace muster::queue_admin
