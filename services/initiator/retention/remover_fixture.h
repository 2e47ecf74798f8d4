// SPDX-License-Identifier: Apache-2.0

// BatchRemoverTest: the fixture for tests of what ends what a batch leaves.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/item/work_item_codec.h"
#include "muster/os/temp_dir.h"
#include "muster/report/report_client.h"
#include "muster/report/report_store.h"
#include "services/initiator/retention/remover.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/job/job_text.h"

namespace muster::initiator::retention {

inline constexpr ledger::Retention kRetention = {
    .content = absl::Hours(1), .items = absl::Hours(24), .batch = absl::Hours(240)};

class BatchRemoverTest : public ::testing::Test {
 protected:
  // A batch of two items: the first in its message, the second in a blob.
  void Create(uint64_t number, std::optional<ledger::Retention> retention = kRetention,
              bool claimed = false) {
    ledger::Batch batch;
    batch.number = number;
    batch.request_id = absl::StrCat("request ", number);
    batch.job = "shop";
    batch.job_definition = job_definition_;
    batch.content = "the content";
    batch.created = clock_.Now();
    batch.retention = retention;
    batch.request_claimed = claimed;
    const uint64_t large = item::kInlinePayloadBytes + 1;
    ASSERT_TRUE(ledger_
                    ->Create(batch, {{0, 10, 1, 1, base::Fingerprint("a")},
                                     {10, large, 2, 1, base::Fingerprint("b")}})
                    .ok());
    ASSERT_TRUE(blobs_->Put(item::BlobName(number, 1), "a large item").ok());
    report::BatchShape shape;
    shape.batch = number;
    shape.job = "shop";
    shape.job_revision = "1";
    ASSERT_TRUE(report_->RegisterBatch(shape).ok());
  }

  void Complete(uint64_t number) {
    ASSERT_TRUE(ledger_->Seal(number, 10).ok());
    ASSERT_TRUE(ledger_->MarkComplete(number, clock_.Now()).ok());
    // As its engine does.
    ASSERT_TRUE(ledger_->NoteBlobsDeleted(number, clock_.Now()).ok());
  }
  void Cancel(uint64_t number) {
    ASSERT_TRUE(ledger_->Cancel(number, clock_.Now(), "unwanted").ok());
  }

  // Completes at once, and claims its request id.
  void CompleteClaimed(uint64_t number) {
    Create(number, kRetention, /*claimed=*/true);
    Complete(number);
  }

  // Counts the first of the batch's items as a dead letter, and the second.
  void CountWithDeadLetter(uint64_t number, bool only_dead = false) {
    report::CommitRequest commit;
    commit.partition = "acme/out";
    for (const uint64_t index : {0, 1}) {
      if (only_dead && index == 1) continue;
      report::CountedItem& item = commit.items.emplace_back();
      item.batch = number;
      item.index = index;
      item.transactions = 1;
      item.attempts = 1;
      item.outcome =
          index == 0 ? report::ItemOutcome::kDeadLettered : report::ItemOutcome::kAggregated;
      if (index == 0) item.cause = "it is poison";
      if (index == 1) item.aggregated = 1;
    }
    ASSERT_TRUE(report_->Commit(commit).ok());
  }

  // Removes all that is due.
  void Sweep() {
    for (;;) {
      const absl::StatusOr<size_t> removed = remover_.RemoveDue(2);
      ASSERT_TRUE(removed.ok()) << removed.status();
      if (*removed == 0) return;
    }
  }

  // What is left of a batch: "content items blob report ledger".
  std::string Left(uint64_t number) {
    const absl::StatusOr<ledger::Batch> batch = ledger_->Get(number);
    std::vector<std::string> left;
    if (batch.ok() && !batch->content.empty()) left.push_back("content");
    if (!ledger_->Items(number, 0, 10)->empty()) left.push_back("items");
    if (blobs_->Get(item::BlobName(number, 1)).ok()) left.push_back("blob");
    if ((*report_->Read())->GetProgress(number).ok()) left.push_back("report");
    if (batch.ok()) left.push_back("ledger");
    return absl::StrJoin(left, " ");
  }

  // Files of the blob store; one more than before the first blob is one that is left.
  int Files() const {
    int files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_ / "blobs")) {
      if (entry.is_regular_file()) ++files;
    }
    return files;
  }

  std::string job_definition_ = job::JobText("shop", "price");
  const os::TempDir dir_;
  const backend::DataDirUrls urls_{dir_.path()};
  base::FakeClock clock_;
  const std::unique_ptr<ledger::BatchLedger> ledger_ =
      backend::OpenBatchLedger(urls_.ledger, backend::Mode::kReadWrite).value();
  const std::unique_ptr<blob::BlobStore> blobs_ = backend::OpenBlobStore(urls_.blobs).value();
  const int files_without_blobs_ = Files();
  const std::unique_ptr<report::ReportStore> report_ =
      backend::OpenReportStore(urls_.report, backend::Mode::kReadWrite, &clock_).value();
  report::LocalReportClient report_client_{report_.get()};
  absl::Status release_answer_;
  std::vector<uint64_t> released_;
  BatchRemover remover_{{ledger_.get(), &report_client_, blobs_.get(), nullptr, &clock_,
                         [this](const ledger::Batch& batch) {
                           released_.push_back(batch.number);
                           return release_answer_;
                         }}};
};

}  // namespace muster::initiator::retention
