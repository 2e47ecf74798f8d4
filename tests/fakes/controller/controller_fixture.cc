// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/controller/controller_fixture.h"

#include "muster/queue/limits.h"

namespace muster::controller {
namespace {

base::Fingerprint128 ContentOf(uint32_t index) {
  return base::Fingerprint(absl::StrCat("slice ", index));
}

template <typename T>
T OrDie(absl::StatusOr<T> result) {
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

}  // namespace

ControllerTest::ControllerTest() {
  queue::rocksdb::Options queue_options;
  queue_options.clock = &clock_;
  queues_ = OrDie(queue::rocksdb::RocksDbQueueStore::Open(dir_ / "queue", queue_options));
  ledger_ = OrDie(ledger::rocksdb::RocksDbBatchLedger::Open(dir_ / "ledger", {}));
  records_ = std::make_unique<AbsentRecords>(ledger_.get());
  sqlite_ = OrDie(report::sqlite::OpenSqliteReport(dir_ / "report.db", {.clock = &clock_}));
  report_ = std::make_unique<UnreliableReport>(sqlite_.get());
  blobs_ = OrDie(blob::file::FileBlobStore::Open(dir_ / "blobs"));
  EXPECT_TRUE(queues_->CreateQueue(output_, {}).ok());
}

void ControllerTest::OpenBatch(int items, bool seal, uint64_t number) {
  ledger::Batch batch;
  batch.number = number;
  batch.request_id = absl::StrCat("request ", number);
  batch.job = "shop";
  batch.job_revision = "r1";
  batch.handler_version = "v1";
  batch.created = clock_.Now();
  ASSERT_TRUE(ledger_->Create(batch).ok());
  std::vector<ledger::ItemBoundary> boundaries;
  for (int i = 0; i < items; ++i) {
    ledger::ItemBoundary& item = boundaries.emplace_back();
    item.offset = uint64_t{100} * static_cast<uint64_t>(i);
    item.length = 100;
    item.transactions = 10;
    item.content = ContentOf(static_cast<uint32_t>(i));
  }
  if (items > 0) {
    ASSERT_TRUE(ledger_->Append(number, 0, boundaries).ok());
  }
  ASSERT_TRUE(
      report_
          ->RegisterBatch(
              {number, "shop", "r1", {{"by_customer", {"customer"}, {{"revenue", false, 2}}}}})
          .ok());
  if (seal) {
    EXPECT_TRUE(ledger_->Seal(number, 1000).ok());
  }
}

v1::ItemResult ControllerTest::Result(uint32_t index, const std::string& customer,
                                      const std::string& revenue) {
  v1::ItemResult result;
  result.set_batch(kBatch);
  result.set_index(index);
  result.set_job("shop");
  result.set_job_revision("r1");
  result.set_handler_version("v1");
  result.set_content_hash(ContentOf(index).ToBytes());
  result.set_transactions(10);
  result.set_attempt(1);
  result.set_worker("worker");
  v1::Aggregated* aggregated = result.mutable_aggregated();
  v1::GroupPartial* group = aggregated->add_groups();
  group->set_group("by_customer");
  v1::PartialRow* row = group->add_rows();
  row->add_keys(customer);
  row->add_measures(revenue);
  v1::Rejection* rejection = aggregated->add_rejections();
  rejection->set_line(index + 1);
  rejection->set_reason("no price");
  return result;
}

v1::ItemResult ControllerTest::DeadLetter(uint32_t index, const std::string& cause) {
  v1::ItemResult result = Result(index);
  result.mutable_dead_lettered()->set_cause(cause);
  return result;
}

std::string ControllerTest::Together(const std::vector<v1::ItemResult>& results) {
  v1::ItemResult whole;
  whole.set_batch(results.front().batch());
  for (const v1::ItemResult& result : results) whole.add_together(result.SerializeAsString());
  return whole.SerializeAsString();
}

void ControllerTest::PutBodies(absl::Span<const std::string> bodies) {
  for (size_t first = 0; first < bodies.size(); first += queue::kMaxPutMessages) {
    std::vector<queue::NewMessage> messages;
    for (const std::string& body : bodies.subspan(first, queue::kMaxPutMessages)) {
      messages.emplace_back().body = body;
    }
    EXPECT_TRUE(queues_->Put(output_, messages).ok());
  }
}

void ControllerTest::PutQuietly(const std::vector<v1::ItemResult>& results) {
  for (const v1::ItemResult& result : results) PutBody(result.SerializeAsString());
}

void ControllerTest::Trigger() {
  EXPECT_TRUE(bus_.Publish(bus::WorkDetected("test", output_.account, output_.name, 1)).ok());
}

Options ControllerTest::Instantly() {
  Options options;
  options.linger = absl::ZeroDuration();
  return options;
}

void ControllerTest::Start(Options options) {
  options.partitions = {output_};
  controller_ = OrDie(Controller::Create(options, host_->events(), dependencies()));
  ASSERT_TRUE(controller_->Start().ok());
}

void ControllerTest::PassUntil(absl::Duration until) {
  while (clock_.Monotonic() < until && Stats().stored() > 0) {
    clock_.AwaitSleepers(1);
    clock_.Advance(absl::Seconds(1));
  }
  clock_.AwaitSleepers(1);
}

report::Progress ControllerTest::GetProgress() {
  return OrDie(OrDie(sqlite_->Read())->GetProgress(kBatch));
}

std::vector<std::string> ControllerTest::Rows() {
  std::vector<std::string> rows;
  const absl::Status status =
      OrDie(sqlite_->Read())->ForEachRow(kBatch, "by_customer", [&](const auto& row) {
        rows.push_back(absl::StrCat(row.keys[0], " ", row.measures[0].ToString()));
      });
  EXPECT_TRUE(status.ok()) << status;
  return rows;
}

std::vector<std::string> ControllerTest::PoisonCauses() {
  std::vector<std::string> causes;
  for (const queue::PoisonMessage& message : OrDie(queues_->ListPoison(output_, "", 100))) {
    causes.push_back(message.cause.reason);
  }
  return causes;
}

}  // namespace muster::controller
