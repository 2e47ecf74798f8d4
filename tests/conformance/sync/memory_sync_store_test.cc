// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/sync/memory_sync_store.h"

#include <memory>

#include "gtest/gtest.h"
#include "tests/conformance/sync/sync_store_conformance.h"

namespace muster::sync::conformance {
namespace {

class MemoryHome final : public StoreHome {
 public:
  std::unique_ptr<OptimisticSyncStore> Open() override {
    return std::make_unique<testing::MemorySyncStore>();
  }
  bool Keeps() const override { return false; }
};

}  // namespace

INSTANTIATE_TEST_SUITE_P(Memory, SyncStoreConformance,
                         ::testing::Values(Engine([] { return std::make_unique<MemoryHome>(); })));

}  // namespace muster::sync::conformance
