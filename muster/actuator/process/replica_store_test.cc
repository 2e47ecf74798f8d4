// SPDX-License-Identifier: Apache-2.0
#include "muster/actuator/process/replica_store.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/os/watched_disk.h"

namespace muster::actuator::process {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ReplicaStoreTest : public ::testing::Test {
 protected:
  ReplicaStoreTest() { EXPECT_TRUE(store_.Create().ok()); }

  // Makes the folder as an agent does before it starts the keeper.
  ReplicaFolder Make(const std::string& instance) {
    const std::string path = absl::StrCat(folder_ / "replicas/", instance);
    EXPECT_TRUE(std::filesystem::create_directory(path));
    return ReplicaFolder(path);
  }
  // Writes the record as the keeper does before it starts the program.
  static absl::Status WriteRecord(const ReplicaFolder& folder) {
    return folder.WriteRecord({folder.instance(), "work", *os::IdentityOf(getpid()), absl::Now()});
  }
  bool IsEmptyFolder(const std::string& name) const {
    return std::filesystem::is_empty(folder_ / name);
  }

  const os::TempDir folder_;
  ReplicaStore store_{folder_.path()};
  int discarded_ = 0;
};

TEST_F(ReplicaStoreTest, AKeeperThatComesAfterItsFolderWasDiscardedHasNoRecord) {
  const ReplicaFolder folder = Make("one");
  ASSERT_THAT(store_.TakeInventory().without_record, SizeIs(1));
  EXPECT_TRUE(store_.Discard(folder));
  EXPECT_TRUE(absl::IsNotFound(WriteRecord(folder)));
  EXPECT_TRUE(IsEmptyFolder("replicas"));
  EXPECT_TRUE(IsEmptyFolder("failed"));
}

// The replica's program runs, or is about to start.
TEST_F(ReplicaStoreTest, KeepsAReplicaWhoseKeeperWroteItsRecordJustNow) {
  const ReplicaFolder folder = Make("one");
  ASSERT_THAT(store_.TakeInventory().without_record, SizeIs(1));
  ASSERT_TRUE(WriteRecord(folder).ok());
  EXPECT_FALSE(store_.Discard(folder));
  EXPECT_TRUE(folder.ReadRecord().ok());
  EXPECT_THAT(store_.TakeInventory().without_record, IsEmpty());
  EXPECT_TRUE(IsEmptyFolder("failed"));
}

// All that is left in replicas/ after a power cut counts as unattended, and is removed.
TEST_F(ReplicaStoreTest, KeepsAFailedReplicaForPeopleEvenAfterAPowerCut) {
  const ReplicaFolder folder = Make("one");
  ASSERT_TRUE(WriteRecord(folder).ok());
  os::WatchedDisk disk;
  store_.Discharge({folder, *folder.ReadRecord(), Departure::kFailed, {}});
  EXPECT_THAT(disk.TakeCalls(), ElementsAre("rename one to one", "sync failed", "sync replicas"));
  EXPECT_TRUE(ReplicaFolder(folder_ / "failed/one").ReadRecord().ok());
}

TEST_F(ReplicaStoreTest, AKeeperThatHasItsRecordIsNeverDiscarded) {
  for (int round = 0; round < 150; ++round) {
    const ReplicaFolder folder = Make(absl::StrCat("r", round));
    std::atomic<int> ready = 0;
    const auto together = [&ready] {
      for (++ready; ready < 2;) base::LetOthersRun();
    };
    absl::Status written;
    std::thread keeper([&] {
      together();
      written = WriteRecord(folder);
    });
    together();
    // Varies the moment of the Discard within the time of the write.
    for (int look = 0; look < round % 100; ++look) folder.Has(Mark::kReady);
    const bool discarded = store_.Discard(folder);
    keeper.join();
    ASSERT_FALSE(written.ok() && discarded) << round;
    ASSERT_EQ(std::filesystem::exists(folder.path()), !discarded) << round;
    if (written.ok()) {
      ASSERT_TRUE(folder.ReadRecord().ok()) << round;
    }
    discarded_ += discarded ? 1 : 0;
  }
  RecordProperty("discarded", discarded_);
}

}  // namespace
}  // namespace muster::actuator::process
