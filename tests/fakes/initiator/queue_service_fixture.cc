// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/initiator/queue_service_fixture.h"

#include "muster/blob/file/file_blob_store.h"
#include "muster/item/work_item_codec.h"

namespace muster::initiator {

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
  item::BatchIdentity identity;
  identity.batch = kBatch;
  identity.job = "shop";
  identity.job_revision = "r1";
  const auto blobs = OrDie(blob::file::FileBlobStore::Open(dir_ / "blobs"));
  ledger::ItemBoundary item;
  item.transactions = 10;
  item.length = 5;
  item.content = base::Fingerprint("slice");
  return OrDie(item::WorkItemEncoder(identity, 1 << 20, blobs.get()).Encode(index, item, "slice"));
}

}  // namespace muster::initiator
