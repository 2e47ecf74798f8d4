// SPDX-License-Identifier: Apache-2.0

// The conformance tests of every OptimisticSyncStore. The test of an engine includes this file, and
// in namespace sync::conformance says
//
//   INSTANTIATE_TEST_SUITE_P(RocksDb, SyncStoreConformance, ::testing::Values(Engine(&MakeHome)));
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::sync::conformance {

// Where a store keeps its records; outlives the store.
class StoreHome {
 public:
  virtual ~StoreHome() = default;

  // Opens the store on its existing data. At most one store is open at a time. Returns nullptr on
  // failure.
  virtual std::unique_ptr<OptimisticSyncStore> Open() = 0;

  // False for a store that forgets everything when closed.
  virtual bool Keeps() const { return true; }
};

struct Engine {
  // Makes an empty home.
  using HomeMaker = std::function<std::unique_ptr<StoreHome>()>;

  // Defined in the .cc, so that every user of an Engine links the tests.
  explicit Engine(HomeMaker maker);

  HomeMaker make_home;
};

class SyncStoreConformance : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override;

  void Restart();
  VersionedData Get(absl::string_view key);
  bool TryWrite(absl::string_view key, absl::string_view data, uint64_t version);

  std::unique_ptr<StoreHome> home_;
  std::unique_ptr<OptimisticSyncStore> store_;
};

}  // namespace muster::sync::conformance
