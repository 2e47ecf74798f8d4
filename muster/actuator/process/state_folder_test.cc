// SPDX-License-Identifier: Apache-2.0
#include "muster/actuator/process/state_folder.h"

#include <string>

#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"

namespace muster::actuator::process {
namespace {

const ReplicaRecord kRecord{"processor-1",
                            "work",
                            {4711, 123456789, "boot"},
                            absl::FromUnixMicros(1'700'000'000'000'001),
                            {"/bin/p", "--job", "retail"}};
const ReplicaEnd kEnd{"exited with status 3", "some | lines", absl::Milliseconds(1500)};

TEST(ReplicaFolderTest, StoresWhatItHasStoredBefore) {
  EXPECT_EQ(EncodeRecord(kRecord),
            R"({"boot":"boot","instance":"processor-1","muster_replica":1,"pid":4711,)"
            R"("program":["/bin/p","--job","retail"],)"
            R"("start_ticks":123456789,"started_us":1700000000000001,"target":"work"})"
            "\n");
  EXPECT_EQ(EncodeEnd(kEnd), R"({"how":"exited with status 3","last_lines":"some | lines",)"
                             R"("muster_replica_end":1,"ran_us":1500000})"
                             "\n");
  EXPECT_EQ(EncodeDesiredState({7, {{"mail", 0}, {"work", 3}}}),
            R"({"highest_token":7,"muster_orders":1,"wanted":{"mail":0,"work":3}})"
            "\n");
}

TEST(ReplicaFolderTest, ReadsWhatItStores) {
  EXPECT_EQ(*DecodeRecord(EncodeRecord(kRecord)), kRecord);
  EXPECT_EQ(*DecodeEnd(EncodeEnd(kEnd)), kEnd);
  const DesiredState orders{7, {{"mail", 0}, {"work", 3}}};
  EXPECT_EQ(*DecodeDesiredState(EncodeDesiredState(orders)), orders);
}

TEST(ReplicaFolderTest, ReadsTheRecordThatAnEarlierMusterHasWritten) {
  ReplicaRecord earlier = kRecord;
  earlier.program = {};
  EXPECT_EQ(
      *DecodeRecord(R"({"boot":"boot","instance":"processor-1","muster_replica":1,"pid":4711,)"
                    R"("start_ticks":123456789,"started_us":1700000000000001,"target":"work"})"
                    "\n"),
      earlier);
}

TEST(ReplicaFolderTest, TakesNoGarbage) {
  const std::string whole = EncodeRecord(kRecord);
  for (size_t size = 0; size + 1 < whole.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeRecord(whole.substr(0, size)).status())) << size;
  }
  for (const char* text : {"null", "[1]", "{\"muster_replica\":2}", "{\"muster_replica\":1}",
                           "{\"muster_replica\":1,\"instance\":3}", "\xff"}) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeRecord(text).status())) << text;
    EXPECT_TRUE(absl::IsDataLoss(DecodeEnd(text).status())) << text;
    EXPECT_TRUE(absl::IsDataLoss(DecodeDesiredState(text).status())) << text;
  }
}

// A program may print anything.
TEST(ReplicaFolderTest, StoresLastLinesThatAreNoText) {
  EXPECT_TRUE(DecodeEnd(EncodeEnd({"ended", "\xff\xfe", {}})).ok());
}

TEST(ReplicaFolderTest, MarksAreThereUntilTheyAreCleared) {
  const os::TempDir folder;
  const ReplicaFolder replica(folder.path());
  EXPECT_FALSE(replica.Has(Mark::kReady));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(replica.Set(Mark::kReady).ok());
  EXPECT_TRUE(replica.Has(Mark::kReady));
  EXPECT_FALSE(replica.Has(Mark::kLeaving));
  for (int i = 0; i < 2; ++i) replica.Clear(Mark::kReady);
  EXPECT_FALSE(replica.Has(Mark::kReady));
}

TEST(ReplicaFolderTest, SaysThatItsFolderIsGone) {
  const ReplicaFolder gone("/no/such/folder");
  EXPECT_TRUE(absl::IsNotFound(gone.Set(Mark::kReady)));
  EXPECT_TRUE(absl::IsNotFound(gone.WriteRecord(kRecord)));
  EXPECT_TRUE(absl::IsNotFound(gone.ReadRecord().status()));
  EXPECT_EQ(gone.instance(), "folder");
}

}  // namespace
}  // namespace muster::actuator::process
