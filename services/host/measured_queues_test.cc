#include "services/host/measured_queues.h"

#include <memory>

#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/telemetry/shown.h"

namespace muster::host {
namespace {

using telemetry::Shown;

class MeasuredQueuesTest : public ::testing::Test {
 protected:
  MeasuredQueuesTest() {
    queue::rocksdb::Options options;
    options.clock = &clock_;
    measured_ = std::make_unique<MeasuredQueues>(
        *queue::rocksdb::RocksDbQueueStore::Open(dir_ / "queues", options), &registry_);
    EXPECT_TRUE(measured_->CreateQueue(queue_, {}).ok());
  }

  void Put() {
    queue::NewMessage message;
    message.body = "x";
    EXPECT_TRUE(measured_->Put(queue_, {{message}}).ok());
  }
  std::vector<queue::Message> Receive() {
    return *measured_->Receive(queue_, {1, absl::Minutes(1)});
  }
  double Calls(const std::string& operation, bool useful) {
    return Shown(registry_,
                 absl::StrCat("muster_storage_transactions_total{queue=\"retail-in\",operation=\"",
                              operation, "\",useful=\"", useful ? "true" : "false", "\"}"))
        .value_or(0);
  }

  base::FakeClock clock_;
  telemetry::Registry registry_;
  const os::TempDir dir_;
  const queue::QueueId queue_{"acme", "retail-in-3"};
  std::unique_ptr<MeasuredQueues> measured_;
};

TEST_F(MeasuredQueuesTest, CountsTheCallsOfALogicalQueue) {
  Put();
  EXPECT_EQ(Receive().size(), 1U);
  EXPECT_TRUE(Receive().empty());
  EXPECT_EQ(Calls("put", true), 1);
  EXPECT_EQ(Calls("receive", true), 1);
  EXPECT_EQ(Calls("receive", false), 1) << "it looked at an empty queue";
}

TEST_F(MeasuredQueuesTest, CountsMessagesThatComeAgain) {
  Put();
  Receive();
  // Before the first event: increase() does not see a series begin.
  EXPECT_EQ(Shown(registry_, R"(muster_redeliveries_total{queue="retail-in"})"), 0);
  EXPECT_EQ(Shown(registry_, R"(muster_dead_letters_total{queue="retail-in"})"), 0);
  clock_.Advance(absl::Minutes(2));
  Receive();
  EXPECT_EQ(Shown(registry_, R"(muster_redeliveries_total{queue="retail-in"})"), 1);
}

TEST_F(MeasuredQueuesTest, CountsWhatGoesToTheDeadLetterStore) {
  Put();
  const std::vector<queue::Message> received = Receive();
  std::vector<queue::DeadLetterRequest> requests(2);
  requests[0].receipt = received[0].receipt;
  requests[1].receipt = received[0].receipt;  // stale by then
  EXPECT_TRUE(measured_->DeadLetter(queue_, requests).ok());
  EXPECT_EQ(Shown(registry_, R"(muster_dead_letters_total{queue="retail-in"})"), 1);
}

}  // namespace
}  // namespace muster::host
