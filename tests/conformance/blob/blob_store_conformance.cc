// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/blob/blob_store_conformance.h"

#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "muster/blob/blob_store.h"
#include "tests/fakes/base/test_seed.h"

namespace muster::blob::conformance {

Engine::Engine(HomeMaker maker) : make_home(std::move(maker)) {}

void BlobStoreConformance::SetUp() {
  home_ = GetParam().make_home();
  store_ = home_->Open();
  ASSERT_NE(store_, nullptr);
}

void BlobStoreConformance::Restart() {
  store_.reset();
  store_ = home_->Open();
  ASSERT_NE(store_, nullptr);
}

void BlobStoreConformance::Put(absl::string_view name, absl::string_view data) {
  const absl::Status status = store_->Put(name, data);
  EXPECT_TRUE(status.ok()) << status;
}

std::string BlobStoreConformance::Get(absl::string_view name) {
  absl::StatusOr<std::string> data = store_->Get(name);
  return data.ok() ? *std::move(data) : absl::StatusCodeToString(data.status().code());
}

TEST_P(BlobStoreConformance, GivesBackWhatWasPut) {
  Put("b", "body");
  EXPECT_EQ(Get("b"), "body");
}

TEST_P(BlobStoreConformance, SaysNotFoundOfWhatNobodyPut) { EXPECT_EQ(Get("b"), "NOT_FOUND"); }

TEST_P(BlobStoreConformance, ReplacesWhatWasThere) {
  Put("b", "a long first body");
  Put("b", "second");
  EXPECT_EQ(Get("b"), "second");
}

TEST_P(BlobStoreConformance, DeletesTwiceWithoutAnError) {
  Put("b", "body");
  Put("other", "stays");
  EXPECT_TRUE(store_->Delete("b").ok());
  EXPECT_EQ(Get("b"), "NOT_FOUND");
  EXPECT_TRUE(store_->Delete("b").ok());
  EXPECT_EQ(Get("other"), "stays");
}

TEST_P(BlobStoreConformance, NamesEachBlobOnceWithTheTimeOfItsLastPut) {
  const absl::Time before = absl::Now();
  std::set<std::string> there;
  for (int i = 0; i < 25; ++i) {
    Put(absl::StrCat("blob-", i), std::string(200'000, 'x'));
    there.insert(absl::StrCat("blob-", i));
  }
  Put("blob-3", "anew");
  ASSERT_TRUE(store_->Delete("blob-7").ok());
  there.erase("blob-7");
  std::set<std::string> named;
  const std::unique_ptr<BlobScan> scan = store_->Scan().value();
  for (;;) {
    const absl::StatusOr<std::vector<BlobEntry>> page = scan->Next(10);
    ASSERT_TRUE(page.ok()) << page.status();
    if (page->empty()) break;
    EXPECT_LE(page->size(), 10u);
    for (const BlobEntry& blob : *page) {
      EXPECT_TRUE(named.insert(blob.name).second) << blob.name;
      // A file system counts in ticks.
      EXPECT_GE(blob.stored, before - absl::Seconds(1));
      EXPECT_LE(blob.stored, absl::Now() + absl::Seconds(1));
    }
  }
  EXPECT_EQ(named, there);
}

TEST_P(BlobStoreConformance, NamesNothingInAnEmptyStore) {
  const std::unique_ptr<BlobScan> scan = store_->Scan().value();
  const absl::StatusOr<std::vector<BlobEntry>> page = scan->Next(10);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_TRUE(page->empty());
}

TEST_P(BlobStoreConformance, KeepsAnyBytes) {
  const uint32_t seed = base::testing::TestSeed();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::string noise(3 << 20, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  Put("empty", "");
  Put("zeros", std::string(5 << 20, '\0'));
  Put("noise", noise);
  EXPECT_EQ(Get("empty"), "");
  EXPECT_TRUE(Get("zeros") == std::string(5 << 20, '\0'));
  EXPECT_TRUE(Get("noise") == noise);
}

TEST_P(BlobStoreConformance, TellsNamesApartThatLookAlike) {
  for (const char* name : {"a", "A", "a.", "a-", "a_", "a.b", "a.tmp", "a.blob"}) Put(name, name);
  for (const char* name : {"a", "A", "a.", "a-", "a_", "a.b", "a.tmp", "a.blob"}) {
    EXPECT_EQ(Get(name), name);
  }
}

TEST_P(BlobStoreConformance, RefusesNamesThatAreNone) {
  for (const char* name : {"", ".", "..", "../escape", "a/b", "/etc/passwd", ".hidden", "a b"}) {
    EXPECT_EQ(store_->Put(name, "x").code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(Get(name), "INVALID_ARGUMENT") << name;
    EXPECT_EQ(store_->Delete(name).code(), absl::StatusCode::kInvalidArgument) << name;
  }
  Put(std::string(kMaxNameBytes, 'n'), "longest");
  EXPECT_EQ(Get(std::string(kMaxNameBytes, 'n')), "longest");
}

TEST_P(BlobStoreConformance, KeepsWhatItAcknowledgedOverARestart) {
  Put("kept", "body");
  Put("replaced", "old");
  Put("replaced", "new");
  Put("deleted", "body");
  ASSERT_TRUE(store_->Delete("deleted").ok());
  Restart();
  EXPECT_EQ(Get("kept"), "body");
  EXPECT_EQ(Get("replaced"), "new");
  EXPECT_EQ(Get("deleted"), "NOT_FOUND");
}

TEST_P(BlobStoreConformance, ReadersSeeOneOfTheBodiesNeverAMixture) {
  const std::string a(200'000, 'a'), b(100'000, 'b');
  Put("b", a);
  std::thread writer([&] {
    for (int i = 0; i < 20; ++i) Put("b", i % 2 == 0 ? b : a);
  });
  for (int i = 0; i < 50; ++i) {
    const std::string seen = Get("b");
    EXPECT_TRUE(seen == a || seen == b) << seen.size() << " bytes";
  }
  writer.join();
}

TEST_P(BlobStoreConformance, ManyThreadsPutTheirOwnBlobs) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 10; ++i) {
        const std::string name = absl::StrCat("t", t, "-", i);
        Put(name, name);
        Put("shared", "same");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Get("t3-9"), "t3-9");
  EXPECT_EQ(Get("shared"), "same");
}

}  // namespace muster::blob::conformance
