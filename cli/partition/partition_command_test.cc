// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/partition/checkpoint_store.h"
#include "muster/partition/group_registry.h"
#include "muster/partition/records.h"
#include "tests/fakes/cli/client_fixture.h"

namespace muster::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class PartitionCommandTest : public ClientTest {
 protected:
  PartitionCommandTest() {
    AddGroup("orders/main", {"a", "b"}, 2);
    Own("orders/main", 0, {.owner = "a", .epoch = 3, .renewal = 7, .claimed_at_millis = Ago(90)});
    Own("orders/main", 1,
        {.owner = "a", .epoch = 1, .renewal = 2, .wanted_by = "b", .granted = true});
    AddGroup("clicks", {}, 1);
  }

  int64_t Ago(int seconds) const {
    return absl::ToUnixMillis(clock_.Now() - absl::Seconds(seconds));
  }

  void AddGroup(const std::string& group, const std::vector<std::string>& members, int partitions) {
    ASSERT_TRUE(partition::GroupRegistry(&sync_).Note(group).ok());
    Write(group, {.kind = partition::RecordName::Kind::kMembers},
          {.members = members, .partitions = partitions});
  }
  void Own(const std::string& group, int partition, const partition::Ownership& record) {
    const partition::RecordName page{.page = partition / partition::kPageRows};
    partition::RecordReply read = partition::SyncRecords(&sync_, group).CarryOut({.name = page});
    partition::SetRow(&read.value.owners, partition % partition::kPageRows, record);
    Write(group, page, read.value);
  }
  void Write(const std::string& group, const partition::RecordName& name,
             const partition::RecordValue& value) {
    sync_.Overwrite(KeyOf(group, name), EncodeRecord(name.kind, value));
  }
};

TEST_F(PartitionCommandTest, ListsTheOwnersOfAllGroups) {
  partition::CheckpointStore checkpoints(&sync_, "orders/main");
  ASSERT_TRUE(checkpoints.Save(0, 3, {.offset = 42, .sequence = 41}).ok());
  const Done done = RunOnServer({"partition", "list"});
  EXPECT_EQ(done.code, kOk) << done.err;
  EXPECT_EQ(
      done.out,
      "GROUP        PARTITION  OWNER  STATE         EPOCH  SINCE  CHECKPOINT  LAG  WANTED BY  "
      "PINNED TO\n"
      "clicks               0  -      free              0      -           -    -  -          "
      "-\n"
      "orders/main          0  a      owned             3  1m30s          42    -  -          "
      "-\n"
      "orders/main          1  a      handing over      1      -           -    -  b          "
      "-\n");
}

TEST_F(PartitionCommandTest, ListsOneGroupOrThoseOfOneQueue) {
  EXPECT_THAT(RunOnServer({"partition", "list", "clicks"}).out,
              AllOf(HasSubstr("clicks"), Not(HasSubstr("orders"))));
  EXPECT_THAT(RunOnServer({"partition", "list", "--queue", "orders"}).out,
              AllOf(HasSubstr("orders/main"), Not(HasSubstr("clicks"))));
  const Done none = RunOnServer({"partition", "list", "--queue", "order"});
  EXPECT_EQ(none.code, kError);
  EXPECT_THAT(none.err, HasSubstr("no group shares the partitions of 'order'"));
  const Done unknown = RunOnServer({"partition", "list", "order"});
  EXPECT_EQ(unknown.code, kError);
  EXPECT_THAT(unknown.err, HasSubstr("there is no group 'order' of partitions"));
  EXPECT_EQ(RunOnServer({"partition", "list", "g", "--queue", "q"}).code, kUsage);
}

TEST_F(PartitionCommandTest, ListsForPrograms) {
  EXPECT_EQ(RunOnServer({"partition", "list", "clicks", "-o", "json"}).out,
            "[{\"group\":\"clicks\",\"partition\":0,\"owner\":null,\"state\":\"free\",\"epoch\":0,"
            "\"renewal\":0,\"claimed\":null,\"checkpoint\":null,\"lag\":null,\"wanted_by\":null,"
            "\"pinned_to\":null}]\n");
}

TEST_F(PartitionCommandTest, MovesAPartitionToAMember) {
  const Done done = RunOnServer({"partition", "move", "orders/main/0", "--to", "b"});
  EXPECT_EQ(done.code, kOk) << done.err;
  EXPECT_EQ(done.out, "partition 0 of orders/main goes to b, when a has finished with it\n");
  EXPECT_THAT(RunOnServer({"partition", "list", "orders/main"}).out,
              ContainsRegex("0 +a +owned +3 .* b\n"));
  EXPECT_EQ(RunOnServer({"partition", "move", "orders/main/0", "--to", "a"}).out,
            "partition 0 of orders/main stays with a\n");
}

TEST_F(PartitionCommandTest, RefusesToMoveWhatThereIsNot) {
  for (const char* partition : {"orders", "orders/main", "/3", "orders/-1"}) {
    EXPECT_EQ(RunOnServer({"partition", "move", partition, "--to", "a"}).code, kUsage);
  }
  EXPECT_EQ(RunOnServer({"partition", "move", "orders/main/0"}).code, kUsage);
  const Done member = RunOnServer({"partition", "move", "orders/main/0", "--to", "c"});
  EXPECT_EQ(member.code, kError);
  EXPECT_THAT(member.err, HasSubstr("group orders/main has no member 'c'"));
  const Done partition = RunOnServer({"partition", "move", "orders/main/2", "--to", "a"});
  EXPECT_EQ(partition.code, kError);
  EXPECT_THAT(partition.err, HasSubstr("partitions 0 to 1, not 2"));
}

TEST_F(PartitionCommandTest, RebalancesAndForgets) {
  EXPECT_EQ(RunOnServer({"partition", "move", "orders/main/1", "--to", "b"}).code, kOk);
  EXPECT_EQ(RunOnServer({"partition", "rebalance", "orders/main", "-o", "json"}).out,
            "{\"group\":\"orders/main\",\"unpinned\":1}\n");
  const Done used = RunOnServer({"partition", "forget", "orders/main"});
  EXPECT_EQ(used.code, kError);
  EXPECT_THAT(used.err, HasSubstr("has members: a and 1 more"));
  EXPECT_EQ(RunOnServer({"partition", "forget", "clicks"}).out, "clicks is forgotten\n");
  EXPECT_THAT(RunOnServer({"partition", "list"}).out, Not(HasSubstr("clicks")));
}

// The server ends, and with it the watch.
TEST_F(PartitionCommandTest, AWatchShowsWhatChanges) {
  Done done;
  std::thread watcher([&] {
    done = RunOnServer({"partition", "list", "orders/main", "--watch", "-o", "json"});
  });
  clock_.AwaitSleepers(1);
  Own("orders/main", 0,
      {.owner = "a", .epoch = 3, .renewal = 8, .claimed_at_millis = Ago(90)});  // a sign of life
  Own("orders/main", 1, {.owner = "b", .epoch = 2, .renewal = 1});
  clock_.Advance(absl::Seconds(1));
  clock_.AwaitSleepers(1);
  initiator_.reset();
  clock_.Advance(absl::Seconds(1));
  watcher.join();
  EXPECT_EQ(done.code, kUnreachable);
  const std::vector<std::string> lines = absl::StrSplit(done.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 3u) << done.out;
  EXPECT_THAT(lines.back(),
              AllOf(HasSubstr("\"partition\":1,\"owner\":\"b\""), HasSubstr("\"epoch\":2")));
}

TEST_F(PartitionCommandTest, NeedsAServer) {
  EXPECT_EQ(Run({"partition", "list"}).code, kError);
  EXPECT_EQ(RunOnServer({"partition", "list", "--watch", "-o", "csv"}).code, kError);
}

}  // namespace
}  // namespace muster::cli
