// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/processor/partition_source.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/stream/processor/replay.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/stream/memory_event_stream_store.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::stream::processor {
namespace {

class PartitionSourceTest : public ::testing::Test {
 protected:
  PartitionSourceTest() {
    EXPECT_TRUE(events_.Create("homes", {.partitions = 1}).ok());
    Append(10);
  }

  void Append(int n) {
    for (int i = 0; i < n; ++i) EXPECT_TRUE(events_.Append("homes", 0, {{.body = "x"}}).ok());
  }
  void MakeAnew(int n) {
    events_.Delete("homes").IgnoreError();
    EXPECT_TRUE(events_.Create("homes", {.partitions = 1}).ok());
    Append(n);
  }
  void Checkpoint(int64_t offset) {
    EXPECT_TRUE(checkpoints_.Rewind(0, epoch_, {.offset = offset, .sequence = offset - 1}).ok());
  }
  std::unique_ptr<PartitionSource> Make(BeginAt begin = {}) {
    return std::make_unique<PartitionSource>(PartitionSource::Setup{
        .store = &events_,
        .checkpoints = &checkpoints_,
        .stream = "homes",
        .partition = 0,
        .epoch = epoch_,
        .begin = begin,
        .on_gap = [this](const ProcessorError& error) { gaps_.push_back(error); }});
  }
  // The offsets of the next read.
  static std::vector<int64_t> Read(PartitionSource* source, int max = 100) {
    std::vector<int64_t> offsets;
    const std::vector<Event> events = source->Read(max, absl::ZeroDuration()).value();
    for (const Event& event : events) {
      offsets.push_back(event.offset);
    }
    return offsets;
  }

  base::FakeClock clock_;
  testing::MemoryEventStreamStore events_{&clock_};
  sync::testing::MemorySyncStore sync_;
  partition::CheckpointStore checkpoints_{&sync_, "homes/store"};
  int64_t epoch_ = 1;
  std::vector<ProcessorError> gaps_;
};

TEST_F(PartitionSourceTest, BeginsWithoutACheckpointWhereTheOptionsSay) {
  const std::pair<BeginAt, int64_t> cases[] = {
      {{BeginAt::Kind::kEarliest}, 4},  {{BeginAt::Kind::kOffset, 7}, 7},
      {{BeginAt::Kind::kOffset, 1}, 4}, {{BeginAt::Kind::kOffset, 99}, 11},
      {{BeginAt::Kind::kLatest}, 11},
  };
  events_.Trim("homes", 0, 4);
  for (const auto& [begin, next] : cases) {
    const auto source = Make(begin);
    ASSERT_TRUE(source->Open().ok());
    EXPECT_EQ(source->next(), next);
  }
  EXPECT_TRUE(gaps_.empty());
}

TEST_F(PartitionSourceTest, TheLatestPlaceIsTheSameForTheNextOwner) {
  ASSERT_TRUE(Make({BeginAt::Kind::kLatest})->Open().ok());
  Append(2);
  ++epoch_;
  const auto next_owner = Make({BeginAt::Kind::kLatest});
  ASSERT_TRUE(next_owner->Open().ok());
  EXPECT_EQ(Read(next_owner.get()), (std::vector<int64_t>{11, 12}));
}

TEST_F(PartitionSourceTest, GoesOnAtTheCheckpoint) {
  Checkpoint(9);
  const auto source = Make();
  ASSERT_TRUE(source->Open().ok());
  EXPECT_EQ(Read(source.get()), (std::vector<int64_t>{9, 10}));
}

TEST_F(PartitionSourceTest, ALaterOwnersFenceRefusesIt) {
  ASSERT_TRUE(checkpoints_.Begin(0, 2).ok());
  EXPECT_EQ(Make()->Open().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(PartitionSourceTest, TellsWhatRetentionHasRemovedAndGoesOnAtTheFirst) {
  Checkpoint(3);
  events_.Trim("homes", 0, 8);
  const auto source = Make();
  ASSERT_TRUE(source->Open().ok());
  EXPECT_EQ(Read(source.get()), (std::vector<int64_t>{8, 9, 10}));
  ASSERT_EQ(gaps_.size(), 1u);
  EXPECT_EQ(gaps_[0].operation, ProcessorError::Operation::kRetention);
  EXPECT_EQ(gaps_[0].events_lost, 5);
}

TEST_F(PartitionSourceTest, TellsOfEventsThatARepairHasFoundLost) {
  for (const int64_t offset : {1, 4, 5, 9}) events_.Lose("homes", 0, offset);
  const auto source = Make();
  ASSERT_TRUE(source->Open().ok());
  EXPECT_EQ(Read(source.get(), 5), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(Read(source.get(), 5), (std::vector<int64_t>{6, 7, 8, 10}));
  std::vector<int64_t> lost;
  for (const ProcessorError& gap : gaps_) {
    EXPECT_EQ(gap.operation, ProcessorError::Operation::kLost);
    lost.push_back(gap.events_lost);
  }
  EXPECT_EQ(lost, (std::vector<int64_t>{1, 2, 1}));
}

TEST_F(PartitionSourceTest, RetentionMayPassItWhileItReads) {
  const auto source = Make();
  ASSERT_TRUE(source->Open().ok());
  EXPECT_EQ(Read(source.get(), 2), (std::vector<int64_t>{1, 2}));
  events_.Trim("homes", 0, 6);
  EXPECT_TRUE(Read(source.get()).empty());
  EXPECT_TRUE(Read(source.get()).empty()) << "opens another reader";
  EXPECT_EQ(Read(source.get()).front(), 6);
  ASSERT_EQ(gaps_.size(), 1u);
  EXPECT_EQ(gaps_[0].events_lost, 3);
}

TEST_F(PartitionSourceTest, ACheckpointBeyondTheEndBeginsAgain) {
  Checkpoint(500);
  const auto source = Make();
  ASSERT_TRUE(source->Open().ok());
  EXPECT_EQ(Read(source.get()).size(), 10u);
  ASSERT_EQ(gaps_.size(), 1u);
  EXPECT_EQ(gaps_[0].operation, ProcessorError::Operation::kBeyondEnd);
  EXPECT_EQ(checkpoints_.Read(0).value().offset, 1) << "later checkpoints must not lie before it";
}

// It may be longer by now than the one before ever was.
TEST_F(PartitionSourceTest, ACheckpointOfAStreamThatWasMadeAnewBeginsAgain) {
  ASSERT_TRUE(Make({BeginAt::Kind::kLatest})->Open().ok());
  MakeAnew(15);
  const auto source = Make();
  ASSERT_TRUE(source->Open().ok());
  EXPECT_EQ(Read(source.get()).size(), 15u);
  ASSERT_EQ(gaps_.size(), 1u);
  EXPECT_EQ(gaps_[0].operation, ProcessorError::Operation::kBeyondEnd);
  EXPECT_FALSE(source->moved());
  const auto next = Make();
  ASSERT_TRUE(next->Open().ok());
  EXPECT_EQ(gaps_.size(), 1u) << "it knows the stream";
}

TEST_F(PartitionSourceTest, OfACheckpointOfAnEarlierMusterNobodyKnowsTheStream) {
  Checkpoint(9);
  MakeAnew(15);
  const auto source = Make();
  ASSERT_TRUE(source->Open().ok());
  EXPECT_EQ(Read(source.get()).front(), 9);
}

TEST_F(PartitionSourceTest, ReadsAStreamThatIsMadeAnewWhileItReads) {
  const auto source = Make();
  ASSERT_TRUE(source->Open().ok());
  EXPECT_EQ(Read(source.get()).size(), 10u);
  ASSERT_TRUE(events_.Delete("homes").ok());
  const auto read = [&] { return source->Read(10, absl::ZeroDuration()).status().code(); };
  EXPECT_EQ(read(), absl::StatusCode::kNotFound);
  EXPECT_EQ(read(), absl::StatusCode::kNotFound) << "as long as there is none";
  MakeAnew(15);
  EXPECT_TRUE(Read(source.get()).empty());
  EXPECT_TRUE(source->moved());
  EXPECT_TRUE(Read(source.get()).empty()) << "what it gives belongs to what it gave before";
  ASSERT_EQ(gaps_.size(), 1u);
  EXPECT_EQ(gaps_[0].operation, ProcessorError::Operation::kBeyondEnd);
  // An event of the earlier stream has just been handled.
  EXPECT_EQ(
      checkpoints_.Save(0, epoch_, {.offset = 11, .sequence = 10, .replays = source->replays()})
          .code(),
      absl::StatusCode::kAborted);
  const auto next = Make();
  ASSERT_TRUE(next->Open().ok());
  EXPECT_EQ(Read(next.get()).size(), 15u);
  EXPECT_EQ(gaps_.size(), 1u);
}

// A NATS server that has just started may say so of streams that it has.
TEST_F(PartitionSourceTest, GoesOnWhereAStreamIsBackThatWasNotFound) {
  const auto source = Make();
  ASSERT_TRUE(source->Open().ok());
  EXPECT_EQ(Read(source.get(), 4).size(), 4u);
  events_.AnswerReads(absl::NotFoundError("not yet"));
  EXPECT_TRUE(absl::IsNotFound(source->Read(4, absl::ZeroDuration()).status()));
  EXPECT_TRUE(absl::IsNotFound(source->Read(4, absl::ZeroDuration()).status()));
  events_.AnswerReads(absl::OkStatus());
  EXPECT_TRUE(Read(source.get()).empty()) << "opens another reader";
  EXPECT_EQ(Read(source.get()).front(), 5);
  EXPECT_TRUE(gaps_.empty());
}

TEST_F(PartitionSourceTest, AReplayIntoAStreamThatWasMadeAnewHolds) {
  ASSERT_TRUE(Make({BeginAt::Kind::kLatest})->Open().ok());
  MakeAnew(15);
  ASSERT_TRUE(Replay({&events_, &sync_}, "homes", "store", 0, 12).ok());
  const auto source = Make();
  ASSERT_TRUE(source->Open().ok());
  EXPECT_EQ(Read(source.get()).front(), 12);
  EXPECT_TRUE(gaps_.empty());
}

TEST_F(PartitionSourceTest, AReaderThatCannotBeOpenedLosesNoPlace) {
  Checkpoint(3);
  events_.Trim("homes", 0, 8);
  const auto source = Make();
  events_.AnswerReads(absl::UnavailableError("away"));
  EXPECT_EQ(source->Open().code(), absl::StatusCode::kUnavailable);
  events_.AnswerReads(absl::OkStatus());
  ASSERT_TRUE(source->Open().ok());
  EXPECT_EQ(gaps_.size(), 1u);
  EXPECT_EQ(source->next(), 8);
}

// As a text that someone has published to the subject of a stream. The processor took the partition
// for one that a later owner has, told nobody, and stood still.
TEST_F(PartitionSourceTest, AnEventOfAnUnknownFormatIsNoLaterOwner) {
  const auto source = Make();
  ASSERT_TRUE(source->Open().ok());
  events_.AnswerReads(absl::FailedPreconditionError("event 1 has format 104"));
  const absl::Status status = source->Read(10, absl::ZeroDuration()).status();
  EXPECT_EQ(status, absl::UnimplementedError("event 1 has format 104"));
  events_.AnswerReads(absl::OkStatus());
  EXPECT_EQ(Read(source.get()).size(), 10u);
}

TEST_F(PartitionSourceTest, NoticesAReplay) {
  Checkpoint(9);
  const auto source = Make();
  ASSERT_TRUE(source->Open().ok());
  EXPECT_FALSE(source->WasReplayed().value());
  ASSERT_TRUE(checkpoints_.Replay(0, 2, 1).ok());
  EXPECT_TRUE(source->WasReplayed().value());
}

TEST_F(PartitionSourceTest, ReadsNothingOnceCancelled) {
  const auto source = Make();
  ASSERT_TRUE(source->Open().ok());
  source->Cancel();
  EXPECT_TRUE(Read(source.get()).empty());
}

}  // namespace
}  // namespace muster::stream::processor
