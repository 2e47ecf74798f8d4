// SPDX-License-Identifier: Apache-2.0
#include "muster/partition/checkpoint_store.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::partition {
namespace {

using ::testing::HasSubstr;

class CheckpointStoreTest : public ::testing::Test {
 protected:
  sync::testing::MemorySyncStore store_;
  CheckpointStore checkpoints_{&store_, "orders/main"};
};

TEST_F(CheckpointStoreTest, BeginsAtTheStart) {
  EXPECT_EQ(checkpoints_.Begin(3, 1).value(), Checkpoint());
}

TEST_F(CheckpointStoreTest, TheNextOwnerGoesOnWhereTheLastOneStopped) {
  ASSERT_TRUE(checkpoints_.Save(3, 1, {.offset = 4096, .sequence = 17}).ok());
  EXPECT_EQ(checkpoints_.Begin(3, 2).value(), (Checkpoint{.offset = 4096, .sequence = 17}));
  EXPECT_EQ(checkpoints_.Begin(4, 2).value(), Checkpoint()) << "another partition";
  EXPECT_EQ(CheckpointStore(&store_, "orders/audit").Begin(3, 1).value(), Checkpoint())
      << "another group";
}

TEST_F(CheckpointStoreTest, AnEarlierOwnerIsRefusedOnceTheNextHasBegun) {
  ASSERT_TRUE(checkpoints_.Save(3, 1, {.offset = 10, .sequence = 1}).ok());
  ASSERT_TRUE(checkpoints_.Begin(3, 2).ok());
  const absl::Status late = checkpoints_.Save(3, 1, {.offset = 20, .sequence = 2});
  EXPECT_EQ(late.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(late.message()), HasSubstr("epoch 1 lost the partition to epoch 2"));
  EXPECT_EQ(checkpoints_.Rewind(3, 1, {}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(checkpoints_.Begin(3, 1).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(checkpoints_.Begin(3, 2).value(), (Checkpoint{.offset = 10, .sequence = 1}));
}

TEST_F(CheckpointStoreTest, MovesBackOnlyWhereThatIsAskedFor) {
  ASSERT_TRUE(checkpoints_.Save(3, 1, {.offset = 10, .sequence = 5}).ok());
  EXPECT_EQ(checkpoints_.Save(3, 1, {.offset = 9, .sequence = 5}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(checkpoints_.Rewind(3, 1, {.offset = 2, .sequence = 1}).ok());
  EXPECT_EQ(checkpoints_.Begin(3, 1).value(), (Checkpoint{.offset = 2, .sequence = 1}));
}

TEST_F(CheckpointStoreTest, AReplayIsNotOverwrittenByAnOwnerThatDoesNotKnowOfIt) {
  ASSERT_TRUE(checkpoints_.Save(3, 1, {.offset = 10, .sequence = 9}).ok());
  ASSERT_TRUE(checkpoints_.Replay(3, 4, 3).ok());
  EXPECT_EQ(checkpoints_.Save(3, 1, {.offset = 11, .sequence = 10}).code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(checkpoints_.Rewind(3, 1, {.offset = 11, .sequence = 10}).code(),
            absl::StatusCode::kAborted);
  const Checkpoint moved{.offset = 4, .sequence = 3, .replays = 1};
  EXPECT_EQ(checkpoints_.Read(3).value(), moved);
  EXPECT_TRUE(checkpoints_.Save(3, 1, {.offset = 5, .sequence = 4, .replays = 1}).ok());
  EXPECT_EQ(checkpoints_.Begin(3, 2).value().replays, 1) << "the next owner knows of it";
}

TEST_F(CheckpointStoreTest, AReplayLeavesTheFenceAsItIs) {
  ASSERT_TRUE(checkpoints_.Begin(3, 2).ok());
  ASSERT_TRUE(checkpoints_.Replay(3, 4, 3).ok());
  EXPECT_EQ(checkpoints_.Begin(3, 1).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(checkpoints_.Begin(3, 2).ok());
}

TEST_F(CheckpointStoreTest, TriesAgainWhereAnotherWriterWasFirst) {
  store_.LoseNextWrites(2);
  EXPECT_TRUE(checkpoints_.Save(3, 1, {.offset = 10, .sequence = 1}).ok());
  store_.LoseNextWrites(CheckpointStore::kMaxAttempts);
  EXPECT_EQ(checkpoints_.Save(3, 1, {.offset = 11, .sequence = 2}).code(),
            absl::StatusCode::kAborted);
}

TEST_F(CheckpointStoreTest, ReadsBackAWriteWhoseOutcomeIsUnknown) {
  store_.FailNextWrite(absl::UnavailableError("no reply"));
  EXPECT_TRUE(checkpoints_.Save(3, 1, {.offset = 10, .sequence = 1}).ok());
  EXPECT_EQ(checkpoints_.Begin(3, 1).value(), (Checkpoint{.offset = 10, .sequence = 1}));
}

TEST_F(CheckpointStoreTest, PassesOnThatTheStoreIsOutOfReach) {
  for (int i = 0; i < CheckpointStore::kMaxAttempts; ++i) {
    store_.FailNextGet(absl::UnavailableError("down"));
  }
  EXPECT_EQ(checkpoints_.Begin(3, 1).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(CheckpointStoreTest, NamesTheCheckpointThatIsDamaged) {
  store_.Overwrite("partition/orders/main/checkpoint/3", "\xff");
  const absl::Status damaged = checkpoints_.Begin(3, 1).status();
  EXPECT_EQ(damaged.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(damaged.message()), HasSubstr("partition/orders/main/checkpoint/3"));
}

}  // namespace
}  // namespace muster::partition
