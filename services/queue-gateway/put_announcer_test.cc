// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/put_announcer.h"

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::queue_gateway {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A bus that notes what is published, or refuses it.
class NotingBus final : public bus::TriggerBus {
 public:
  absl::Status Publish(const bus::InterRoleCommunicationEvent& event) override {
    const auto& work = std::get<bus::CloudQueueWorkDetectedTriggerEvent>(event.payload);
    base::MutexLock lock(&mu_);
    events_.push_back(absl::StrCat(event.from, " ", work.storage_account, "/", work.queue_name, " ",
                                   work.messages));
    changed_.NotifyAll();
    return answer_;
  }
  absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(Subscriber) override {
    return absl::UnimplementedError("nothing here subscribes");
  }

  std::vector<std::string> Await(size_t count) {
    base::MutexLock lock(&mu_);
    while (events_.size() < count) changed_.Wait(&mu_);
    return events_;
  }
  void Refuse(const absl::Status& answer) {
    base::MutexLock lock(&mu_);
    answer_ = answer;
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  std::vector<std::string> events_ ABSL_GUARDED_BY(mu_);
  absl::Status answer_ ABSL_GUARDED_BY(mu_);
};

class PutAnnouncerTest : public ::testing::Test {
 protected:
  const queue::QueueId orders_ = {"acme", "orders"};
  base::FakeClock clock_;
  NotingBus bus_;
  std::unique_ptr<PutAnnouncer> announcer_ =
      std::make_unique<PutAnnouncer>(&bus_, "gateway-1", &clock_);
};

TEST_F(PutAnnouncerTest, TellsOfTheFirstPutAtOnceAndOfTheRestOfItsBurstTogether) {
  announcer_->OnPut(orders_, 1);
  EXPECT_THAT(bus_.Await(1), ElementsAre("gateway-1 acme/orders 1"));
  clock_.AwaitSleepers(1);
  for (int i = 0; i < 50; ++i) announcer_->OnPut(orders_, 1);
  announcer_->OnPut({"acme", "other"}, 3);
  EXPECT_THAT(bus_.Await(2), ElementsAre("gateway-1 acme/orders 1", "gateway-1 acme/other 3"));
  clock_.AwaitSleepers(1);
  clock_.Advance(kAnnounceInterval);
  EXPECT_EQ(bus_.Await(3)[2], "gateway-1 acme/orders 50");
}

TEST_F(PutAnnouncerTest, SleepsWhileNoOnePuts) {
  announcer_->OnPut(orders_, 1);
  bus_.Await(1);
  clock_.AwaitSleepers(1);
  clock_.Advance(kAnnounceInterval);
  clock_.AwaitSleepers(0);
  EXPECT_EQ(clock_.NextDeadline(), absl::InfiniteDuration());
  announcer_->OnPut(orders_, 2);
  EXPECT_EQ(bus_.Await(2)[1], "gateway-1 acme/orders 2");
}

TEST_F(PutAnnouncerTest, TellsOfTheLastPutsBeforeItEnds) {
  announcer_->OnPut(orders_, 1);
  bus_.Await(1);
  announcer_->OnPut(orders_, 4);
  announcer_.reset();
  EXPECT_EQ(bus_.Await(2)[1], "gateway-1 acme/orders 4");
}

TEST_F(PutAnnouncerTest, GoesOnAfterAnEventThatCouldNotBeSent) {
  bus_.Refuse(absl::UnavailableError("the server is away"));
  announcer_->OnPut(orders_, 1);
  bus_.Await(1);
  bus_.Refuse(absl::OkStatus());
  announcer_->OnPut({"acme", "other"}, 1);
  EXPECT_EQ(bus_.Await(2)[1], "gateway-1 acme/other 1");
}

TEST_F(PutAnnouncerTest, HearsOfPutsThatWereStoredAndOfNoOthers) {
  const os::TempDir dir;
  const auto queues = queue::rocksdb::RocksDbQueueStore::Open(dir.path(), {});
  ASSERT_TRUE(queues.ok()) << queues.status();
  AnnouncingStore store(queues->get(), announcer_.get());
  EXPECT_FALSE(store.Put(orders_, std::vector<queue::NewMessage>(1)).ok());
  ASSERT_TRUE(store.CreateQueue(orders_, {}).ok());
  ASSERT_TRUE(store.Put(orders_, std::vector<queue::NewMessage>(2)).ok());
  announcer_.reset();
  EXPECT_THAT(bus_.Await(1), ElementsAre("gateway-1 acme/orders 2"));
}

}  // namespace
}  // namespace muster::queue_gateway
