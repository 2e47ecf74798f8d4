// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/stream/rocksdb/rocksdb_event_stream_store.h"
#include "tests/conformance/stream/event_stream_conformance.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::stream::conformance {
namespace {

class RocksHome final : public StoreHome {
 public:
  std::unique_ptr<EventStreamStore> Open() override {
    auto store =
        stream::rocksdb::RocksDbEventStreamStore::Open(dir_ / "stream", {.clock = &clock_});
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }

  void Advance(absl::Duration by) override { clock_.Advance(by); }

 private:
  const os::TempDir dir_;
  base::FakeClock clock_;
};

INSTANTIATE_TEST_SUITE_P(RocksDb, EventStreamConformance,
                         ::testing::Values([]() -> std::unique_ptr<StoreHome> {
                           return std::make_unique<RocksHome>();
                         }));

}  // namespace
}  // namespace muster::stream::conformance
