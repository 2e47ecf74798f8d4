// SPDX-License-Identifier: Apache-2.0

// On a real ledger; the content is in memory.
#include "services/initiator/batch/record_reader.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/status.h"
#include "muster/job/job_file.h"
#include "muster/ledger/rocksdb/rocksdb_batch_ledger.h"
#include "muster/os/temp_dir.h"
#include "muster/rpc/paging.h"
#include "services/initiator/batch/read_records.h"

namespace muster::initiator::batch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kBatch = 7;
constexpr char kJob[] = R"(name: shop
input: {format: csv, columns: {customer: customer}}
item: {transactions: 2}
handler: {linked: shop}
groups:
  - {name: by_customer, keys: [customer], measures: {lines: int}}
)";
constexpr char kContent[] = "customer,note\nann,1\nbob,2\n\nann,\"two\nlines\"\nbob,4\nann,5";

class RecordReaderTest : public ::testing::Test {
 protected:
  // Records batch 7 with the items that an initiator makes of the content.
  void Begin(const std::string& job_text, const std::string& content) {
    content_ = content;
    const job::JobDefinition job = job::ParseJob(job_text, "shop").value();
    const auto source = BatchSource::Over(SourceOf(content), "in.csv", job.input).value();
    std::vector<ledger::ItemBoundary> items;
    if (job.order_by.has_value()) {
      OrderedItems ordered(source.get(), &job);
      while (const auto item = ordered.Next().value()) items.push_back(item->boundary);
    } else {
      input::SliceReader slices = source->Slices(source->FirstRecord(), SliceLimitsOf(job));
      while (const auto slice = slices.Next().value()) {
        items.push_back(source->BoundaryOf(*slice).value());
      }
    }
    ledger::Batch batch;
    batch.number = kBatch;
    batch.request_id = "march";
    batch.job = "shop";
    batch.job_definition = job_text;
    if (content.size() <= kMaxInlineContentBytes) batch.content = content;
    ASSERT_TRUE(ledger_->Create(batch, items).ok());
  }

  RecordReader::OpenContent Content() {
    return [this](const ledger::Batch&) { return SourceOf(content_); };
  }

  // "LINE RECORD" of each record of the item.
  std::vector<std::string> Records(uint64_t item) {
    const auto reader = RecordReader::Open(kBatch, ledger_.get(), Content());
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::vector<std::string> records;
    read_ = (*reader)->ForEach(item, [&records](const SubmittedRecord& record) {
      records.push_back(
          absl::StrCat(record.line, record.oversized ? " oversized" : " ", record.bytes));
      return absl::OkStatus();
    });
    return records;
  }

  absl::StatusOr<v1::ReadRecordsResponse> Read(const v1::ReadRecordsRequest& request) {
    v1::ReadRecordsResponse response;
    MUSTER_RETURN_IF_ERROR(ReadRecords(request, ledger_.get(), Content(), &response));
    return response;
  }

  const os::TempDir dir_;
  const std::unique_ptr<ledger::rocksdb::RocksDbBatchLedger> ledger_ =
      ledger::rocksdb::RocksDbBatchLedger::Open(dir_ / "ledger", {}).value();
  std::string content_;
  absl::Status read_;
};

TEST_F(RecordReaderTest, ReadsRecordsWithTheLinesAtWhichTheyBegin) {
  Begin(kJob, kContent);
  EXPECT_THAT(Records(0), ElementsAre("2 ann,1", "3 bob,2"));
  EXPECT_THAT(Records(1), ElementsAre("5 ann,\"two\nlines\"", "7 bob,4"));
  EXPECT_THAT(Records(2), ElementsAre("8 ann,5"));
  EXPECT_THAT(Records(3), IsEmpty());
  EXPECT_EQ(read_, absl::NotFoundError("batch 7 has no item 3"));
}

// The records of one key lie apart in the content.
TEST_F(RecordReaderTest, ReadsTheRecordsOfAnOrderedJobWithTheirOwnLines) {
  Begin(absl::StrCat(kJob, "order_by: customer\n"), kContent);
  std::vector<std::string> all;
  for (uint64_t item = 0; item < 3; ++item) {
    for (std::string& record : Records(item)) all.push_back(std::move(record));
  }
  EXPECT_THAT(all, testing::UnorderedElementsAre("2 ann,1", "3 bob,2", "5 ann,\"two\nlines\"",
                                                 "7 bob,4", "8 ann,5"));
}

TEST_F(RecordReaderTest, LeavesARecordOutThatIsLongerThanARecordMayBe) {
  Begin(kJob, absl::StrCat("customer\n", std::string(input::kMaxRecordBytes + 1, 'x'), "\nann\n"));
  EXPECT_THAT(Records(0), ElementsAre("2 oversized"));
  EXPECT_THAT(Records(1), ElementsAre("3 ann"));
}

TEST_F(RecordReaderTest, ReadsNothingOfContentThatHasChanged) {
  Begin(kJob, kContent);
  content_[content_.find("bob,2")] = 'r';
  EXPECT_THAT(Records(0), IsEmpty());
  EXPECT_TRUE(absl::IsDataLoss(read_)) << read_;
  EXPECT_THAT(Records(1), ElementsAre("5 ann,\"two\nlines\"", "7 bob,4")) << "this is as it was";
}

TEST_F(RecordReaderTest, AnswersWhatFitsAndGoesOnBehindIt) {
  std::string content = "customer\n";
  for (char key = 'a'; key <= 'd'; ++key)
    absl::StrAppend(&content, std::string(1 << 20, key), "\n");
  Begin(kJob, content);
  v1::ReadRecordsRequest request;
  request.set_batch(kBatch);
  for (uint64_t item = 0; item < 4; ++item) request.add_items()->set_item(item);
  const auto first = Read(request);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(first->more());
  EXPECT_EQ(first->header(), "customer\n");
  ASSERT_EQ(first->records_size(), 2) << "three are just above 3 MiB";
  request.mutable_items()->DeleteSubrange(0, 2);
  const auto rest = Read(request);
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_FALSE(rest->more());
  ASSERT_EQ(rest->records_size(), 2);
  EXPECT_EQ(rest->records(0).line(), 4);
}

// A page of the most lines that a request may name is bounded by bytes, too.
TEST_F(RecordReaderTest, AnswersAThousandLargeRecordsInAnswersOf3MiB) {
  constexpr int kRecords = 1000;
  constexpr size_t kRecordBytes = 20'000;
  std::string content = "customer\n";
  for (int i = 0; i < kRecords; ++i)
    absl::StrAppend(&content, std::string(kRecordBytes, static_cast<char>('a' + i % 26)), "\n");
  Begin(kJob, content);
  v1::ReadRecordsRequest request;
  request.set_batch(kBatch);
  for (int i = 0; i < kRecords; ++i) {
    if (i % 2 == 0) request.add_items()->set_item(static_cast<uint64_t>(i / 2));
    request.mutable_items(i / 2)->add_lines(i + 2);
  }
  int answers = 0;
  int64_t line = 1;
  for (bool more = true; more; ++answers) {
    const auto response = Read(request);
    ASSERT_TRUE(response.ok()) << response.status();
    ASSERT_FALSE(response->records().empty());
    EXPECT_LE(response->ByteSizeLong(), rpc::kMaxAnswerBytes + (64 << 10)) << "and the frames";
    for (const v1::SubmittedRecord& record : response->records()) {
      EXPECT_EQ(record.line(), ++line);
    }
    more = response->more();
    while (!request.items().empty() && *request.items(0).lines().rbegin() <= line) {
      request.mutable_items()->DeleteSubrange(0, 1);
    }
    if (!request.items().empty()) request.mutable_items(0)->set_after_line(line);
  }
  EXPECT_EQ(line, kRecords + 1);
  EXPECT_EQ(answers, 7) << "20 MB, 3 MiB each";
}

TEST_F(RecordReaderTest, ReadsTheLinesThatAreAskedForBehindALine) {
  Begin(kJob, kContent);
  v1::ReadRecordsRequest request;
  request.set_batch(kBatch);
  v1::ItemLines* const item = request.add_items();
  item->set_item(1);
  item->add_lines(5);
  item->add_lines(7);
  EXPECT_EQ(Read(request)->records_size(), 2);
  item->set_after_line(5);
  EXPECT_EQ(Read(request)->records(0).record(), "bob,4");
  item->set_after_line(0);
  item->set_lines(0, 6);
  EXPECT_EQ(Read(request).status(), absl::NotFoundError("no record of item 1 begins at line 6"));
  item->set_lines(0, 8);
  EXPECT_THAT(std::string(Read(request).status().message()), HasSubstr("in rising order"));
  request.clear_items();
  EXPECT_TRUE(absl::IsInvalidArgument(Read(request).status()));
}

TEST_F(RecordReaderTest, SaysThatTheContentIsDeleted) {
  Begin(kJob, kContent);
  ASSERT_TRUE(ledger_->Seal(kBatch, sizeof(kContent) - 1).ok());
  ASSERT_TRUE(ledger_->MarkComplete(kBatch, absl::UnixEpoch()).ok());
  ASSERT_TRUE(ledger_->DropContent(kBatch).ok());
  EXPECT_EQ(
      RecordReader::Open(kBatch, ledger_.get(), Content()).status(),
      absl::FailedPreconditionError("the content of batch 7 is deleted, as its retention says"));
  EXPECT_TRUE(absl::IsNotFound(RecordReader::Open(8, ledger_.get(), Content()).status()));
}

}  // namespace
}  // namespace muster::initiator::batch
