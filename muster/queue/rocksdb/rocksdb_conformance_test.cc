// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "tests/conformance/queue/queue_conformance.h"

namespace muster::queue::conformance {
namespace {

class RocksDbHarness final : public EngineHarness {
 public:
  QueueStore* Start(base::Clock* clock) override {
    options_.clock = clock;
    return Restart();
  }

  QueueStore* Restart() override {
    store_.reset();
    auto store = queue::rocksdb::RocksDbQueueStore::Open(dir_.path(), options_);
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    return store_.get();
  }

 private:
  const os::TempDir dir_;
  queue::rocksdb::Options options_;
  std::unique_ptr<QueueStore> store_;
};

INSTANTIATE_TEST_SUITE_P(RocksDb, QueueConformanceTest,
                         ::testing::Values([]() -> std::unique_ptr<EngineHarness> {
                           return std::make_unique<RocksDbHarness>();
                         }));

}  // namespace
}  // namespace muster::queue::conformance
