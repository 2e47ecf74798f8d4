#include "services/initiator/queue_service.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/fake_clock.h"
#include "muster/base/temp_dir.h"
#include "muster/blob_file/file_blob_store.h"
#include "muster/ledger_rocksdb/rocksdb_batch_ledger.h"
#include "muster/queue/limits.h"
#include "muster/queue_rocksdb/rocksdb_queue_store.h"
#include "muster/redrive/batch_reopener.h"
#include "muster/report/store_desk.h"
#include "muster/report_sqlite/sqlite_report_store.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "muster/wire/work_item_codec.h"

namespace muster::initiator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Queue "acme/work" of a RocksDB store, which an initiator serves on loopback, with a ledger and a
// report for what is redriven.
class QueueServiceTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kBatch = 7;
  // Longer than any call takes on the slowest machine.
  static constexpr absl::Duration kLong = absl::Minutes(2);

  QueueServiceTest() {
    queue_rocksdb::Options options;
    options.clock = &clock_;
    queues_ = OrDie(queue_rocksdb::RocksDbQueueStore::Open(dir_ / "queue", options));
    ledger_ = OrDie(ledger_rocksdb::RocksDbBatchLedger::Open(dir_ / "ledger", {}));
    report_ = OrDie(report_sqlite::OpenSqliteReport(dir_ / "report.db", {.clock = &clock_}));
    desk_ = std::make_unique<report::StoreDesk>(report_.get(), [](uint64_t) {});
    reopener_ = std::make_unique<redrive::BatchReopener>(ledger_.get(), desk_.get());
    service_ = std::make_unique<QueueService>(queues_.get(), reopener_.get());
    rpc::ServerOptions listening;
    listening.addresses = {"localhost:0"};
    server_ = OrDie(
        rpc::Server::Start(listening, {{v1::QueueService::service_full_name(), service_.get()}}));
    rpc::ChannelOptions impatient;
    impatient.retry_unavailable = false;
    stub_ =
        v1::QueueService::NewStub(OrDie(rpc::OpenChannel(server_->addresses().front(), impatient)));
    EXPECT_TRUE(queues_->CreateQueue(id_, {{"owner", "ann"}}).ok());
  }

  template <typename T>
  static T OrDie(absl::StatusOr<T> result) {
    EXPECT_TRUE(result.ok()) << result.status();
    return *std::move(result);
  }

  template <typename Method, typename Request, typename Response>
  absl::Status Call(Method method, const Request& request, Response* response) {
    rpc::CallContext context(kLong);
    return rpc::FromGrpc((stub_.get()->*method)(&context, request, response));
  }

  // A request that names "acme/work".
  template <typename Request>
  static Request About(const std::string& name = "work") {
    Request request;
    request.mutable_queue()->set_account("acme");
    request.mutable_queue()->set_name(name);
    return request;
  }

  // Answers the message's id.
  std::string Put(const std::string& body) {
    std::vector<queue::NewMessage> messages(1);
    messages[0].body = body;
    return OrDie(queues_->Put(id_, messages)).front().message_id;
  }
  std::string GiveUp(const std::string& body, const std::string& reason = "it hung") {
    const std::string message_id = Put(body);
    const auto messages = OrDie(queues_->Receive(id_, {1, absl::Seconds(30)}));
    EXPECT_THAT(messages, SizeIs(1));
    const queue::Cause cause{reason, 3, "worker-1", {}};
    EXPECT_TRUE(
        queues_
            ->DeadLetter(id_, std::vector<queue::DeadLetterRequest>{{messages[0].receipt, cause}})
            ->front()
            .ok());
    return message_id;
  }

  std::vector<std::string> ListAll(const std::string& prefix, int page_size, int* pages) {
    std::vector<std::string> names;
    v1::ListQueuesRequest request;
    request.set_account("acme");
    request.set_prefix(prefix);
    request.set_page_size(page_size);
    do {
      v1::ListQueuesResponse response;
      EXPECT_EQ(Call(&Stub::ListQueues, request, &response), absl::OkStatus());
      for (const v1::QueueSummary& queue : response.queues()) {
        names.push_back(queue.queue().name());
      }
      request.set_page_token(response.next_page_token());
      ++*pages;
    } while (!request.page_token().empty());
    return names;
  }

  absl::StatusOr<v1::ListPoisonResponse> ListPoison(int max, const std::string& after = "",
                                                    int max_body_bytes = 0) {
    auto request = About<v1::ListPoisonRequest>();
    request.set_max_messages(max);
    request.set_after_message_id(after);
    request.set_max_body_bytes(max_body_bytes);
    v1::ListPoisonResponse response;
    const absl::Status listed = Call(&Stub::ListPoison, request, &response);
    if (!listed.ok()) return listed;
    return response;
  }
  absl::StatusOr<v1::PeekMessagesResponse> Peek(int max, int max_body_bytes = 0) {
    auto request = About<v1::PeekMessagesRequest>();
    request.set_max_messages(max);
    request.set_max_body_bytes(max_body_bytes);
    v1::PeekMessagesResponse response;
    const absl::Status peeked = Call(&Stub::PeekMessages, request, &response);
    if (!peeked.ok()) return peeked;
    return response;
  }
  absl::StatusOr<int64_t> Redrive(const std::vector<std::string>& messages, int64_t max) {
    auto request = About<v1::RedriveRequest>();
    request.mutable_message_ids()->Add(messages.begin(), messages.end());
    request.set_max_messages(max);
    v1::RedriveResponse response;
    const absl::Status redriven = Call(&Stub::Redrive, request, &response);
    if (!redriven.ok()) return redriven;
    return response.redriven();
  }

  // Batch 7, which is complete: of its two items, item 1 was given up.
  void CompleteBatch();
  // The body of its item `index`.
  std::string ItemBody(uint32_t index);

  // The fields of a refusal.
  static std::vector<std::string> Fields(const absl::Status& status) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    std::vector<std::string> fields;
    for (const rpc::FieldViolation& violation : rpc::Violations(status)) {
      fields.push_back(violation.field);
    }
    return fields;
  }

  using Stub = v1::QueueService::Stub;

  const queue::QueueId id_ = {"acme", "work"};
  base::FakeClock clock_;
  const base::TempDir dir_;
  std::unique_ptr<queue::QueueStore> queues_;
  std::unique_ptr<ledger::BatchLedger> ledger_;
  std::unique_ptr<report::ReportStore> report_;
  std::unique_ptr<report::StoreDesk> desk_;
  std::unique_ptr<redrive::BatchReopener> reopener_;
  std::unique_ptr<QueueService> service_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<Stub> stub_;
};

void QueueServiceTest::CompleteBatch() {
  ledger::Batch batch;
  batch.number = kBatch;
  batch.request_id = "request";
  batch.job = "shop";
  batch.job_revision = "r1";
  batch.created = clock_.Now();
  ASSERT_TRUE(ledger_->Create(batch).ok());
  std::vector<ledger::ItemBoundary> items(2);
  items[0].transactions = items[1].transactions = 10;
  ASSERT_TRUE(ledger_->Append(kBatch, 0, items).ok());
  ASSERT_TRUE(ledger_->Seal(kBatch, 200).ok());
  ASSERT_TRUE(ledger_->MarkComplete(kBatch, clock_.Now()).ok());
  ASSERT_TRUE(
      report_->RegisterBatch({kBatch, "shop", "r1", {{"by_day", {"day"}, {{"units", true, 0}}}}})
          .ok());
  report::CountedItem counted;
  counted.batch = kBatch;
  counted.transactions = counted.aggregated = 10;
  counted.groups = {{"by_day", {{{"monday"}, {base::Decimal::FromInt(10)}}}}};
  report::CountedItem dead;
  dead.batch = kBatch;
  dead.index = 1;
  dead.outcome = report::ItemOutcome::kDeadLettered;
  dead.transactions = 10;
  dead.cause = "it hung";
  ASSERT_TRUE(report_->Commit({"shop-out-0", 1, {counted, dead}}).ok());
}

std::string QueueServiceTest::ItemBody(uint32_t index) {
  wire::BatchIdentity identity;
  identity.batch = kBatch;
  identity.job = "shop";
  identity.job_revision = "r1";
  const auto blobs = OrDie(blob_file::FileBlobStore::Open(dir_ / "blobs"));
  ledger::ItemBoundary item;
  item.transactions = 10;
  item.content = base::Fingerprint("slice");
  return OrDie(wire::WorkItemEncoder(identity, 1 << 20, blobs.get()).Encode(index, item, "slice"));
}

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
  EXPECT_THAT(*desk_->UncountedItems(kBatch, 2, 0, 10), ElementsAre(1));
  EXPECT_EQ(desk_->GetProgress(kBatch)->aggregated, 10);
}

TEST_F(QueueServiceTest, LeavesPoisonWhereItIsWhenItsBatchCannotBeOpened) {
  GiveUp(ItemBody(1));  // of a batch that nobody knows
  EXPECT_TRUE(absl::IsNotFound(Redrive({}, 1).status()));
  EXPECT_EQ(queues_->Stats(id_)->poison, 1);
}

TEST_F(QueueServiceTest, PurgesPoisonOnlyOrAllButPoison) {
  Put("a");
  GiveUp("b");  // leases "a", the first, and gives that up
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
}  // namespace muster::initiator
