// SPDX-License-Identifier: Apache-2.0

// muster batch delete and muster gc, over a data directory.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/os/temp_dir.h"
#include "tests/fakes/cli/client_fixture.h"

namespace muster::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RemovalCommandTest : public ClientTest {
 protected:
  RemovalCommandTest() {
    const backend::DataDirUrls urls(local_.path());
    EXPECT_TRUE(backend::OpenReportStore(urls.report, backend::Mode::kReadWrite, &clock_).ok());
    const auto ledger = backend::OpenBatchLedger(urls.ledger, backend::Mode::kReadWrite).value();
    for (const uint64_t number : {1, 2, 3}) {
      ledger::Batch batch;
      batch.number = number;
      batch.request_id = absl::StrCat(number);
      batch.job = "shop";
      batch.created = clock_.Now();
      EXPECT_TRUE(ledger->Create(batch, {{0, 10, 1, 1, base::Fingerprint("a"), false}}).ok());
      EXPECT_TRUE(ledger->Seal(number, 10).ok());
    }
    EXPECT_TRUE(ledger->MarkComplete(1, clock_.Now()).ok());
    EXPECT_TRUE(ledger->Cancel(2, clock_.Now() + absl::Hours(24 * 40), "unwanted").ok());
  }

  // Exit code and output of a command on a data directory that no process works with.
  std::string RunHere(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--data-dir", local_.path()});
    const Done done = Run(std::move(arguments));
    return absl::StrCat(done.code, " ", done.out, done.err);
  }

  const os::TempDir local_;
};

TEST_F(RemovalCommandTest, SaysWhatIsDueAndDeletesItOnlyWhenItShall) {
  clock_.Advance(absl::Hours(24 * 41));
  const std::string would =
      "0 would delete the content of 2 batches, the items of 1, and all of 0\n";
  EXPECT_EQ(RunHere({"gc", "--dry-run"}), would);
  EXPECT_EQ(RunHere({"gc", "--dry-run"}), would);
  EXPECT_EQ(RunHere({"gc"}), "0 deleted the content of 2 batches, the items of 1, and all of 0\n");
  EXPECT_EQ(RunHere({"gc", "-o", "json"}),
            "0 {\"contents\":0,\"items\":0,\"batches\":0,\"orphan_blobs\":0,\"dry_run\":false}\n");
}

TEST_F(RemovalCommandTest, DeletesBlobsWithoutAnOwner) {
  auto blobs = backend::OpenBlobStore(backend::DataDirUrls(local_.path()).blobs).value();
  ASSERT_TRUE(blobs->Put("batch-2-item-7", "of a batch that is cancelled").ok());
  ASSERT_TRUE(blobs->Put("batch-3-item-0", "of a batch that is not over").ok());
  blobs.reset();  // one process at a time
  // Files have the time of the machine.
  clock_.StepWallClock(absl::Now() - clock_.Now() + absl::Hours(25));
  EXPECT_THAT(RunHere({"gc"}), HasSubstr("deleted 1 blobs without an owner"));
  blobs = backend::OpenBlobStore(backend::DataDirUrls(local_.path()).blobs).value();
  EXPECT_TRUE(absl::IsNotFound(blobs->Get("batch-2-item-7").status()));
  EXPECT_TRUE(blobs->Get("batch-3-item-0").ok());
}

TEST_F(RemovalCommandTest, DeletesABatchThatHasEnded) {
  EXPECT_EQ(RunHere({"batch", "delete", "1"}), "0 batch 1 is deleted\n");
  EXPECT_THAT(RunHere({"batch", "delete", "1"}), HasSubstr("there is no batch 1"));
  EXPECT_THAT(RunHere({"batch", "list", "--limit", "1"}),
              HasSubstr("there are older batches: the same command with --after 3"));
}

// It was to be cancelled first, which a data directory without a process does not do.
TEST_F(RemovalCommandTest, SaysHowABatchEndsThatNoProcessWorksOn) {
  const std::string give_up =
      absl::StrCat("goes on with it; to give it up, start `muster up --data-dir '", local_.path(),
                   "'`, and cancel it there: muster batch cancel 3 --server 127.0.0.1:7700\n");
  EXPECT_EQ(RunHere({"batch", "delete", "3"}),
            absl::StrCat("1 muster: batch 3 is sealed: the `muster run` that began it, once more, ",
                         give_up));
  EXPECT_THAT(RunHere({"batch", "receipt", "3"}),
              AllOf(HasSubstr("no receipt before it is complete. If no process works on it, the "),
                    HasSubstr(give_up)));
  {
    const auto ledger = backend::OpenBatchLedger(backend::DataDirUrls(local_.path()).ledger,
                                                 backend::Mode::kReadWrite)
                            .value();
    ledger::Batch upload;
    upload.number = 4;
    upload.job = "shop";
    upload.content = "a short source";
    ASSERT_TRUE(ledger->Create(upload).ok());
  }
  EXPECT_THAT(RunHere({"batch", "delete", "4"}), HasSubstr("is open: `muster up` goes on with it"));
}

}  // namespace
}  // namespace muster::cli
