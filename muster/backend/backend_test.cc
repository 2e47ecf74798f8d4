#include "muster/backend/backend.h"

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"

namespace muster::backend {
namespace {

using ::testing::HasSubstr;

class BackendTest : public ::testing::Test {
 protected:
  const os::TempDir root_;
  const std::string dir_ = root_ / "data";
  const DataDirUrls urls_{dir_};
};

TEST_F(BackendTest, OpensEverySeamOfADataDirectory) {
  EXPECT_TRUE(
      OpenQueueStore(urls_.queue, Mode::kReadWrite, Holders::kInProcess, base::RealClock()).ok());
  EXPECT_TRUE(OpenBatchLedger(urls_.ledger, Mode::kReadWrite).ok());
  EXPECT_TRUE(OpenSyncStore(urls_.sync).ok());
  EXPECT_TRUE(OpenBlobStore(urls_.blobs).ok());
  EXPECT_TRUE(OpenReportStore(urls_.report, Mode::kReadWrite, base::RealClock()).ok());
  EXPECT_TRUE(OpenTriggerBus("local:").ok());
}

TEST_F(BackendTest, ReadOnlyChangesNothingOnDisk) {
  EXPECT_TRUE(absl::IsNotFound(
      OpenQueueStore(urls_.queue, Mode::kReadOnly, Holders::kElsewhere, base::RealClock())
          .status()));
  EXPECT_TRUE(absl::IsNotFound(OpenBatchLedger(urls_.ledger, Mode::kReadOnly).status()));
  EXPECT_TRUE(
      absl::IsNotFound(OpenReportStore(urls_.report, Mode::kReadOnly, base::RealClock()).status()));
  EXPECT_FALSE(std::filesystem::exists(dir_));
}

TEST_F(BackendTest, SaysWhichUrlsItTakes) {
  const absl::Status status = OpenSyncStore("redis:localhost").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("rocksdb:"));
}

}  // namespace
}  // namespace muster::backend
