// SPDX-License-Identifier: Apache-2.0

// A flow of batches that are kept for an hour, on real stores, over hours of the test's clock: what
// it takes of the disk does not grow with the time. It fills the stores' logs several times over.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/item/work_item_codec.h"
#include "muster/os/temp_dir.h"
#include "muster/report/report_client.h"
#include "muster/report/report_store.h"
#include "services/initiator/retention/remover.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::initiator::batch {
namespace {

constexpr absl::Duration kKept = absl::Hours(1);
constexpr absl::Duration kEach = absl::Minutes(5);
constexpr ledger::Retention kRetention = {.content = kKept, .items = kKept, .batch = kKept};
// As much as many batches of the usual size have, so that a few fill the logs.
constexpr size_t kContentBytes = size_t{256} << 10;
constexpr int kRejections = 100;

class SteadyFlowTest : public ::testing::Test {
 protected:
  // One batch from its beginning to its end, with one item in its message and one in a blob.
  void WorkOnOne() {
    const uint64_t number = ++last_;
    ledger::Batch batch;
    batch.number = number;
    batch.request_id = absl::StrCat("request ", number);
    batch.job = "shop";
    batch.content = Noise(kContentBytes);
    batch.created = clock_.Now();
    batch.retention = kRetention;
    const uint64_t large = item::kInlinePayloadBytes + 1;
    ASSERT_TRUE(ledger_
                    ->Create(batch, {{0, 10, 1, 1, base::Fingerprint("a")},
                                     {10, large, 2, 1, base::Fingerprint("b")}})
                    .ok());
    ASSERT_TRUE(blobs_->Put(item::BlobName(number, 1), batch.content).ok());
    CountItems(number);
    ASSERT_TRUE(ledger_->Seal(number, 10).ok());
    ASSERT_TRUE(ledger_->MarkComplete(number, clock_.Now()).ok());
    ASSERT_TRUE(ledger_->NoteBlobsDeleted(number, clock_.Now()).ok());
  }

  void CountItems(uint64_t number) {
    report::BatchShape shape;
    shape.batch = number;
    shape.job = "shop";
    shape.job_revision = "1";
    ASSERT_TRUE(report_->RegisterBatch(shape).ok());
    report::CommitRequest commit;
    commit.partition = "acme/out";
    for (const uint64_t index : {0, 1}) {
      report::CountedItem& item = commit.items.emplace_back();
      item.batch = number;
      item.index = index;
      item.attempts = 1;
      item.handler_version = "1";
      item.outcome = report::ItemOutcome::kAggregated;
      for (int i = 0; i < kRejections; ++i) {
        item.rejections.push_back({static_cast<int64_t>(i), Noise(100)});
      }
      item.rejected = kRejections;
      item.transactions = kRejections;
    }
    const auto committed = report_->Commit(commit);
    ASSERT_TRUE(committed.ok()) << committed.status();
  }

  std::string Noise(size_t bytes) {
    std::string noise(bytes, '\0');
    std::generate(noise.begin(), noise.end(),
                  [this] { return static_cast<char>('0' + random_() % 64); });
    return noise;
  }

  // Lets batches come for so long; returns the most bytes that the data directory had meanwhile.
  int64_t Flow(absl::Duration time) {
    int64_t most = 0;
    for (absl::Duration passed; passed < time; passed += kEach) {
      WorkOnOne();
      if (HasFatalFailure()) return 0;
      clock_.Advance(kEach);
      for (;;) {
        const absl::StatusOr<size_t> removed = remover_.RemoveDue(10);
        EXPECT_TRUE(removed.ok()) << removed.status();
        if (removed.value_or(0) == 0) break;
      }
      if (last_ % 4 == 0) most = std::max(most, BytesOnDisk());
    }
    return most;
  }

  int64_t BytesOnDisk() const {
    int64_t bytes = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_.path())) {
      std::error_code gone;  // RocksDB removes files on a thread of its own
      const uintmax_t size = entry.is_regular_file(gone) ? entry.file_size(gone) : 0;
      if (!gone) bytes += static_cast<int64_t>(size);
    }
    return bytes;
  }

  const os::TempDir dir_;
  const backend::DataDirUrls urls_{dir_.path()};
  base::FakeClock clock_;
  std::mt19937_64 random_{7};
  uint64_t last_ = 0;
  const std::unique_ptr<ledger::BatchLedger> ledger_ =
      backend::OpenBatchLedger(urls_.ledger, backend::Mode::kReadWrite).value();
  const std::unique_ptr<blob::BlobStore> blobs_ = backend::OpenBlobStore(urls_.blobs).value();
  const std::unique_ptr<report::ReportStore> report_ =
      backend::OpenReportStore(urls_.report, backend::Mode::kReadWrite, &clock_).value();
  report::LocalReportClient report_client_{report_.get()};
  retention::BatchRemover remover_{
      {ledger_.get(), &report_client_, blobs_.get(), nullptr, &clock_}};
};

TEST_F(SteadyFlowTest, TakesOfTheDiskWhatAnHourOfItAndTheLogsTake) {
  const int64_t most = Flow(absl::Hours(15));
  // All batches have that much content in the ledger and, about, in the blob store. Logs and tables
  // that are not cleaned yet take most of what there is: an hour of batches is a fifteenth.
  EXPECT_LT(most, static_cast<int64_t>(last_ * kContentBytes));
}

}  // namespace
}  // namespace muster::initiator::batch
