// SPDX-License-Identifier: Apache-2.0

// BatchEnqueuer with a job that has order_by: items of one key each, put in order.
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/base/failpoint.h"
#include "muster/base/status.h"
#include "muster/item/queue_names.h"
#include "muster/item/work_item_codec.h"
#include "muster/os/temp_dir.h"
#include "services/initiator/batch/enqueuer.h"
#include "services/initiator/batch/job_queues.h"
#include "services/initiator/batch/ordered_items.h"
#include "services/initiator/batch/source.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/base/test_seed.h"

namespace muster::initiator::batch {
namespace {

constexpr int kPartitions = 3;

class EnqueuerOrderTest : public ::testing::Test {
 protected:
  EnqueuerOrderTest() {
    job_.name = "pay";
    job_.revision = "r1";
    job_.input.columns = {{"account", std::string("account")}, {"n", std::string("n")}};
    job_.order_by = 0;
    job_.item.transactions = 10;
    job_.queue.partitions = kPartitions;
    const backend::DataDirUrls urls(dir_.path());
    queues_ = *backend::OpenQueueStore(urls.queue, backend::Mode::kReadWrite,
                                       backend::Holders::kInProcess, base::RealClock());
    ledger_ = *backend::OpenBatchLedger(urls.ledger, backend::Mode::kReadWrite);
    blobs_ = *backend::OpenBlobStore(urls.blobs);
    bus_ = *backend::OpenTriggerBus("local:");
    EXPECT_TRUE(CreateQueues(queues_.get(), "acme", job_).ok());
  }

  // Lines of random accounts, each with its number.
  std::string Content(int rows, int accounts) {
    std::string text = "account,n\n";
    for (int i = 0; i < rows; ++i) {
      const uint64_t account = random_() % static_cast<uint64_t>(accounts);
      absl::StrAppend(&text, "acc", account, ",", i, "\n");
    }
    return text;
  }

  // A new process reads the content anew.
  BatchEnqueuer& Open(const std::string& content) {
    return Over(*BatchSource::Over(SourceOf(content), "content", job_.input));
  }
  BatchEnqueuer& OpenFile(const std::string& path) {
    return Over(*BatchSource::Open(path, job_.input));
  }
  BatchEnqueuer& Over(std::unique_ptr<BatchSource> source) {
    source_ = std::move(source);
    enqueuer_ = std::make_unique<BatchEnqueuer>(
        &job_, source_.get(),
        Dependencies{queues_.get(), bus_.get(), ledger_.get(), blobs_.get(), base::RealClock()},
        Options{.account = "acme", .run_items = 4});
    return *enqueuer_;
  }
  void Create(uint64_t number = 1) {
    ledger::Batch batch;
    batch.number = number;
    batch.job = job_.name;
    ASSERT_TRUE(ledger_->Create(batch).ok());
  }

  // All that waits, in the order of its puts. What is received stays out of the queues.
  std::vector<item::WorkItem> Waiting() {
    std::vector<item::WorkItem> items;
    for (int partition = 0; partition < kPartitions; ++partition) {
      const queue::QueueId queue = item::InputQueue("acme", job_.name, partition);
      for (;;) {
        const auto messages = *queues_->Receive(queue, {32, absl::Hours(1)});
        if (messages.empty()) break;
        for (const queue::Message& message : messages) {
          items.push_back(*item::DecodeWorkItem(message.body, blobs_.get()));
          const std::optional<item::OrderedRecords>& ordered = items.back().ordered;
          EXPECT_TRUE(ordered.has_value());
          if (ordered->key.has_value()) {
            EXPECT_EQ(item::PartitionOf(*ordered->key, kPartitions), partition);
          }
        }
      }
    }
    return items;
  }

  // Each key's lines, one item after the other.
  static std::map<std::string, std::vector<int64_t>> LinesOf(
      const std::vector<item::WorkItem>& items) {
    std::map<std::string, std::vector<int64_t>> lines;
    for (const item::WorkItem& item : items) {
      std::vector<int64_t>& of_key = lines[item.ordered->key.value_or("(none)")];
      of_key.insert(of_key.end(), item.ordered->lines.begin(), item.ordered->lines.end());
    }
    return lines;
  }
  // The same, read line by line.
  static std::map<std::string, std::vector<int64_t>> LinesIn(const std::string& content) {
    std::map<std::string, std::vector<int64_t>> lines;
    int64_t line = 2;
    for (size_t begin = content.find('\n') + 1; begin < content.size(); ++line) {
      const size_t end = content.find('\n', begin);
      lines[content.substr(begin, content.find(',', begin) - begin)].push_back(line);
      begin = end + 1;
    }
    return lines;
  }

  base::LogCapture log_;
  const os::TempDir dir_;
  std::mt19937_64 random_{base::testing::TestSeed()};
  job::JobDefinition job_;
  std::unique_ptr<queue::QueueStore> queues_;
  std::unique_ptr<ledger::BatchLedger> ledger_;
  std::unique_ptr<blob::BlobStore> blobs_;
  std::unique_ptr<bus::TriggerBus> bus_;
  std::unique_ptr<BatchSource> source_;
  std::unique_ptr<BatchEnqueuer> enqueuer_;
};

TEST_F(EnqueuerOrderTest, PutsTheItemsOfAKeyIntoOnePartitionInTheirOrder) {
  Create();
  const std::string content = Content(1000, 7);
  ASSERT_TRUE(Open(content).Enqueue(1, {}).ok());
  const std::vector<item::WorkItem> items = Waiting();
  EXPECT_EQ(LinesOf(items), LinesIn(content));
  std::set<uint32_t> indexes;
  for (const item::WorkItem& item : items) {
    EXPECT_TRUE(indexes.insert(item.index).second);
    EXPECT_LE(item.transactions, 10u);
    EXPECT_EQ(item.first_line, item.ordered->lines.front());
  }
  const ledger::Batch batch = *ledger_->Get(1);
  EXPECT_EQ(batch.transactions, 1000u);
  EXPECT_EQ(batch.items, items.size());
  EXPECT_EQ(batch.enqueued_items, items.size());
  EXPECT_EQ(batch.state, ledger::BatchState::kSealed);
}

TEST_F(EnqueuerOrderTest, CarriesTheContentWhateverTheJobSaysOfIt) {
  job_.item.transactions = 5000;
  job_.item.max_bytes = size_t{1} << 20;
  Create();
  const std::string content = Content(5000, 1);
  ASSERT_TRUE(Open(content).Enqueue(1, {}).ok());
  const std::vector<item::WorkItem> items = Waiting();
  ASSERT_EQ(items.size(), 1u);
  EXPECT_FALSE(items[0].by_reference);
  EXPECT_EQ(items[0].slice, content.substr(content.find('\n') + 1));
}

// Cut off at any item, a new process puts the rest, and nothing comes before what was put.
TEST_F(EnqueuerOrderTest, GoesOnWhereAnEarlierProcessWasCutOff) {
  const std::string content = Content(300, 5);
  for (uint64_t cut = 1; cut < 12; ++cut) {
    SCOPED_TRACE(absl::StrCat("seed ", base::testing::TestSeed(), ", cut ", cut));
    Create(cut);
    std::stop_source stop;
    BatchEnqueuer& first = Open(content);
    {
      const base::ArmedFailpoint armed(
          cut % 2 == 0 ? "initiator.after_items_recorded" : "initiator.after_put_noted", 1,
          [&] { stop.request_stop(); });
      const absl::Status ended = first.Enqueue(cut, stop.get_token());
      EXPECT_TRUE(absl::IsCancelled(ended)) << ended;
    }
    EXPECT_LT(ledger_->Get(cut)->transactions, 300u);
    ASSERT_TRUE(Open(content).Enqueue(cut, {}).ok());
    std::vector<item::WorkItem> items = Waiting();
    EXPECT_EQ(LinesOf(items), LinesIn(content));
  }
}

TEST_F(EnqueuerOrderTest, PutsLostItemsAgainInTheirOrder) {
  Create();
  const std::string content = Content(500, 4);
  ASSERT_TRUE(Open(content).Enqueue(1, {}).ok());
  const std::vector<item::WorkItem> items = Waiting();  // and lost
  std::vector<uint64_t> all;
  for (uint64_t index = 0; index < items.size(); ++index) all.push_back(index);
  ASSERT_TRUE(Open(content).Refill(1, all).ok());
  EXPECT_EQ(LinesOf(Waiting()), LinesIn(content));
}

TEST_F(EnqueuerOrderTest, PutsARecordApartThatHasNoKey) {
  Create();
  const std::string content = "account,n\na,1\nb,\"x\na,2\nno second field\na,3\n";
  ASSERT_TRUE(Open(content).Enqueue(1, {}).ok());
  const auto lines = LinesOf(Waiting());
  EXPECT_THAT(lines.at("a"), ::testing::ElementsAre(2, 4, 6));
  EXPECT_THAT(lines.at("(none)"), ::testing::UnorderedElementsAre(3, 5));
  EXPECT_EQ(ledger_->Get(1)->transactions, 5u);
}

TEST_F(EnqueuerOrderTest, SaysWhenTheContentHasChanged) {
  Create();
  const std::string content = Content(100, 3);
  ASSERT_TRUE(Open(content).Enqueue(1, {}).ok());
  std::string changed = content;
  changed[changed.size() - 2] = changed[changed.size() - 2] == '7' ? '8' : '7';
  std::vector<uint64_t> all;
  for (uint64_t index = 0; index < ledger_->Get(1)->items; ++index) all.push_back(index);
  const absl::Status refilled = Open(changed).Refill(1, all);
  EXPECT_TRUE(absl::IsDataLoss(refilled)) << refilled;
}

TEST_F(EnqueuerOrderTest, PutsLostItemsAgainOnceTheirContentIsPutBack) {
  Create();
  const std::string content = Content(100, 3);
  const std::string path = absl::StrCat(dir_.path(), "/content");
  const auto write = [&path](const std::string& text) { std::ofstream(path) << text; };
  write(content);
  BatchEnqueuer& enqueuer = OpenFile(path);
  ASSERT_TRUE(enqueuer.Enqueue(1, {}).ok());
  const size_t items = Waiting().size();  // and lost
  std::vector<uint64_t> all;
  for (uint64_t index = 0; index < items; ++index) all.push_back(index);
  write(std::string(content.size(), 'x'));
  const absl::Status damaged = enqueuer.Refill(1, all);
  EXPECT_TRUE(absl::IsDataLoss(damaged)) << damaged;
  write(content);
  const absl::Status mended = enqueuer.Refill(1, all);
  EXPECT_TRUE(mended.ok()) << mended;
  EXPECT_EQ(LinesOf(Waiting()), LinesIn(content));
}

}  // namespace
}  // namespace muster::initiator::batch
