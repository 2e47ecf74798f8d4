// SPDX-License-Identifier: Apache-2.0

// The conformance tests of every BlobStore. The test of an engine includes this file, and in
// namespace blob::conformance says
//
//   INSTANTIATE_TEST_SUITE_P(File, BlobStoreConformance, ::testing::Values(Engine(&MakeHome)));
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "muster/blob/blob_store.h"

namespace muster::blob::conformance {

// Where a store keeps its blobs; outlives the store.
class BlobHome {
 public:
  virtual ~BlobHome() = default;

  // Opens the store on its existing data. At most one store is open at a time. Returns nullptr on
  // failure.
  virtual std::unique_ptr<BlobStore> Open() = 0;
};

struct Engine {
  // Makes an empty home.
  using HomeMaker = std::function<std::unique_ptr<BlobHome>()>;

  // Defined in the .cc, so that every user of an Engine links the tests.
  explicit Engine(HomeMaker maker);

  HomeMaker make_home;
};

class BlobStoreConformance : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override;

  void Restart();
  void Put(absl::string_view name, absl::string_view data);
  // Returns the blob, or the name of the error's code.
  std::string Get(absl::string_view name);

  std::unique_ptr<BlobHome> home_;
  std::unique_ptr<BlobStore> store_;
};

}  // namespace muster::blob::conformance
