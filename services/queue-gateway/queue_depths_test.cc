// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/queue_depths.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/queue-gateway/auth/signed_requests.h"

namespace muster::queue_gateway {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class QueueDepthsTest : public ::testing::Test {
 protected:
  QueueDepthsTest() {
    queue::rocksdb::Options options;
    options.clock = &clock_;
    queues_ = *queue::rocksdb::RocksDbQueueStore::Open(folder_ / "queue", options);
  }

  void Fill(const queue::QueueId& queue, int messages) {
    ASSERT_TRUE(queues_->CreateQueue(queue, {}).ok());
    const std::vector<queue::NewMessage> put(static_cast<size_t>(messages));
    ASSERT_TRUE(queues_->Put(queue, put).ok());
  }

  os::TempDir folder_;
  base::FakeClock clock_;
  std::unique_ptr<queue::rocksdb::RocksDbQueueStore> queues_;
  auth::FixedAccounts accounts_{{{"sally", auth::testing::Sally()}}};
  ServingState state_{[] {}};
  telemetry::Registry registry_;
};

TEST_F(QueueDepthsTest, ShowsWhatLiesInTheQueuesOfItsAccounts) {
  state_.Open();
  Fill({"sally", "orders"}, 3);
  Fill({"stranger", "orders"}, 5);
  ASSERT_TRUE(queues_->Receive({"sally", "orders"}, {}).ok());
  const QueueDepths depths(&accounts_, queues_.get(), &state_, &clock_, &registry_);
  const std::string page = registry_.Scrape();
  EXPECT_THAT(page, HasSubstr("muster_queue_backlog{queue=\"sally/orders\"} 2"));
  EXPECT_THAT(page, HasSubstr("muster_queue_in_flight{queue=\"sally/orders\"} 1"));
  EXPECT_THAT(page, HasSubstr("muster_queue_poison{queue=\"sally/orders\"} 0"));
  EXPECT_THAT(page, Not(HasSubstr("stranger")));
}

TEST_F(QueueDepthsTest, AsksNothingBeforeTheGatewayIsReady) {
  Fill({"sally", "orders"}, 1);
  const QueueDepths depths(&accounts_, queues_.get(), &state_, &clock_, &registry_);
  const std::string page = registry_.Scrape();
  EXPECT_THAT(page, Not(HasSubstr("sally")));
  EXPECT_THAT(page, HasSubstr("muster_metrics_read_failures_total{source=\"queues\"} 1"));
}

// More than a page of a list has.
TEST_F(QueueDepthsTest, ShowsTheQueuesBeyondTheBoundOfAMetricTogether) {
  state_.Open();
  constexpr size_t kQueues = kQueuesAtATime + 100;
  for (size_t i = 0; i < kQueues; ++i) {
    ASSERT_TRUE(queues_->CreateQueue({"sally", absl::StrCat("q-", i)}, {}).ok());
  }
  Fill({"sally", "zz-last"}, 3);
  const QueueDepths depths(&accounts_, queues_.get(), &state_, &clock_, &registry_);
  const std::string page = registry_.Scrape();
  EXPECT_THAT(page, HasSubstr("muster_queue_backlog{queue=\"sally/q-0\"} 0"));
  EXPECT_THAT(page, HasSubstr("muster_queue_backlog{queue=\"other\"} 3"));
  // They are counted while that page is made.
  EXPECT_THAT(
      registry_.Scrape(),
      HasSubstr(absl::StrCat("muster_metrics_over_limit_total{metric=\"muster_queue_backlog\"} ",
                             kQueues + 1 - telemetry::kMaxValues)));
}

}  // namespace
}  // namespace muster::queue_gateway
