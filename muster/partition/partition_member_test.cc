// SPDX-License-Identifier: Apache-2.0
#include "muster/partition/partition_member.h"

#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "muster/nats/connection.h"
#include "muster/os/temp_dir.h"
#include "muster/partition/checkpoint_store.h"
#include "muster/partition/group_registry.h"
#include "muster/sync/jetstream/jetstream_sync_store.h"
#include "muster/sync/rocksdb/rocksdb_sync_store.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/nats/nats_server.h"
#include "tests/fakes/sync/memory_sync_store.h"
#include "tests/fakes/telemetry/shown.h"

namespace muster::partition {
namespace {

// Who works on which partition, over all members, and under which epochs. Thread-safe.
class WorkBoard {
 public:
  void Assign(const std::string& member, int partition, int64_t epoch) {
    base::MutexLock lock(&mu_);
    EXPECT_GT(epoch, epochs_[partition]) << member << ", partition " << partition;
    epochs_[partition] = epoch;
    held_[member].insert(partition);
    changed_.NotifyAll();
  }
  void Revoke(const std::string& member, int partition) {
    base::MutexLock lock(&mu_);
    EXPECT_EQ(held_[member].erase(partition), 1u) << member << ", partition " << partition;
    changed_.NotifyAll();
  }
  // Waits until the members, and no others, hold so many partitions.
  void AwaitCounts(const std::map<std::string, size_t>& counts) {
    base::MutexLock lock(&mu_);
    while (CountsLocked() != counts) changed_.Wait(&mu_);
  }
  // Waits until each of `members` holds `least` or one more, `sum` in all.
  void AwaitEven(size_t members, size_t least, size_t sum) {
    base::MutexLock lock(&mu_);
    while (!IsEvenLocked(members, least, sum)) changed_.Wait(&mu_);
  }

 private:
  std::map<std::string, size_t> CountsLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::map<std::string, size_t> counts;
    for (const auto& [member, held] : held_) {
      if (!held.empty()) counts[member] = held.size();
    }
    return counts;
  }
  bool IsEvenLocked(size_t members, size_t least, size_t sum) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    size_t total = 0;
    const std::map<std::string, size_t> counts = CountsLocked();
    for (const auto& [_, count] : counts) {
      if (count < least || count > least + 1) return false;
      total += count;
    }
    return counts.size() == members && total == sum;
  }

  base::Mutex mu_;
  base::CondVar changed_;
  std::map<std::string, std::set<int>> held_ ABSL_GUARDED_BY(mu_);
  std::map<int, int64_t> epochs_ ABSL_GUARDED_BY(mu_);
};

// A member whose work drains at once, or only when it is revoked. Raises the fence of a checkpoint
// as it begins, if it is given a store of them, and counts up in it as it ends.
class TestMember final : public PartitionWork {
 public:
  struct Setup {
    MemberOptions options;
    sync::OptimisticSyncStore* store;
    base::Clock* clock;
    WorkBoard* board;
    CheckpointStore* checkpoints = nullptr;
    bool drains = true;
    telemetry::Registry* metrics = nullptr;
  };

  explicit TestMember(const Setup& setup) : setup_(setup) {
    auto member =
        PartitionMember::Start(setup.options, setup.store, this, setup.clock, setup.metrics, 7);
    EXPECT_TRUE(member.ok()) << member.status();
    base::MutexLock lock(&mu_);
    member_ = *std::move(member);
    started_.NotifyAll();
  }
  ~TestMember() override { Member()->Stop(); }

  PartitionMember* operator->() { return Member(); }

  void OnAssigned(int partition, int64_t epoch) override {
    if (setup_.checkpoints != nullptr) {
      const auto checkpoint = setup_.checkpoints->Begin(partition, epoch);
      EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
      checkpoint_[partition] = *checkpoint;
    }
    setup_.board->Assign(setup_.options.member, partition, epoch);
  }
  void OnDraining(int partition, int64_t epoch, absl::Duration) override {
    if (!setup_.drains) {
      base::MutexLock lock(&mu_);
      is_draining_ = true;
      started_.NotifyAll();
      return;
    }
    if (setup_.checkpoints != nullptr) {
      Checkpoint next = checkpoint_[partition];
      ++next.offset;
      const absl::Status saved = setup_.checkpoints->Save(partition, epoch, next);
      EXPECT_TRUE(saved.ok()) << saved;
    }
    Member()->Drained(partition, epoch);
  }
  void OnRevoked(int partition, int64_t) override {
    setup_.board->Revoke(setup_.options.member, partition);
  }
  void OnDisplaced() override {
    base::MutexLock lock(&mu_);
    displaced_ = true;
    started_.NotifyAll();
  }
  void AwaitDisplaced() {
    base::MutexLock lock(&mu_);
    while (!displaced_) started_.Wait(&mu_);
  }
  bool is_displaced() {
    base::MutexLock lock(&mu_);
    return displaced_;
  }
  // Of a member that does not drain: until it was asked to.
  void AwaitDraining() {
    base::MutexLock lock(&mu_);
    while (!is_draining_) started_.Wait(&mu_);
  }

 private:
  // The first callback may come before Start has returned.
  PartitionMember* Member() {
    base::MutexLock lock(&mu_);
    while (member_ == nullptr) started_.Wait(&mu_);
    return member_.get();
  }

  const Setup setup_;
  std::map<int, Checkpoint> checkpoint_;  // of the thread that calls
  base::Mutex mu_;
  base::CondVar started_;
  std::unique_ptr<PartitionMember> member_ ABSL_GUARDED_BY(mu_);
  bool displaced_ ABSL_GUARDED_BY(mu_) = false;
  bool is_draining_ ABSL_GUARDED_BY(mu_) = false;
};

// Answers once a test lets it. Thread-safe.
class HangingStore final : public sync::OptimisticSyncStore {
 public:
  explicit HangingStore(sync::OptimisticSyncStore* store) : store_(store) {}

  void Hang() {
    base::MutexLock lock(&mu_);
    hangs_ = true;
  }
  void LetGo() {
    base::MutexLock lock(&mu_);
    hangs_ = false;
    changed_.NotifyAll();
  }
  void AwaitCall() {
    base::MutexLock lock(&mu_);
    while (waiting_ == 0) changed_.Wait(&mu_);
  }

  absl::StatusOr<sync::VersionedData> Get(absl::string_view key) override {
    WaitHere();
    return store_->Get(key);
  }
  absl::StatusOr<bool> TryWrite(absl::string_view key, absl::string_view data,
                                uint64_t version) override {
    WaitHere();
    return store_->TryWrite(key, data, version);
  }
  absl::StatusOr<bool> TryDelete(absl::string_view key, uint64_t version) override {
    WaitHere();
    return store_->TryDelete(key, version);
  }

 private:
  void WaitHere() {
    base::MutexLock lock(&mu_);
    ++waiting_;
    changed_.NotifyAll();
    while (hangs_) changed_.Wait(&mu_);
    --waiting_;
  }

  sync::OptimisticSyncStore* const store_;  // not owned
  base::Mutex mu_;
  base::CondVar changed_;
  bool hangs_ ABSL_GUARDED_BY(mu_) = false;
  int waiting_ ABSL_GUARDED_BY(mu_) = 0;
};

class PartitionMemberTest : public ::testing::Test {
 protected:
  TestMember::Setup SetupOf(const std::string& member) {
    return {.options = {.group = "g", .member = member, .partitions = 4},
            .store = &hanging_,
            .clock = &clock_,
            .board = &board_};
  }

  // The first cycle only looks; the second one claims.
  void AwaitFour(const std::string& member) {
    clock_.AwaitSleepers(1);
    clock_.Advance(absl::Seconds(2.5));
    board_.AwaitCounts({{member, 4}});
    clock_.AwaitSleepers(2);
  }

  sync::testing::MemorySyncStore store_;
  HangingStore hanging_{&store_};
  base::FakeClock clock_;
  WorkBoard board_;
};

TEST_F(PartitionMemberTest, TheOnlyMemberWorksOnEverythingUntilItStops) {
  TestMember member(SetupOf("a"));
  AwaitFour("a");
  EXPECT_EQ(member->Held(3)->epoch, 1);
  member->Stop();
  board_.AwaitCounts({});
  EXPECT_FALSE(member->Held(3).has_value());
  const MemberCounts counts = member->counts();
  EXPECT_EQ(counts.cycles, 2);
  EXPECT_EQ(counts.failures, 0);
  member->Stop();
}

TEST_F(PartitionMemberTest, StopsWhenAnotherProcessHasItsName) {
  TestMember member(SetupOf("a"));
  AwaitFour("a");
  const RecordReply own =
      SyncRecords(&store_, "g")
          .CarryOut({.name = {.kind = RecordName::Kind::kPresence, .member = "a"}});
  EXPECT_NE(own.instance, 0u);
  SyncRecords other(&store_, "g", own.instance + 1);
  const RecordRequest beat{.verb = RecordRequest::Verb::kWrite,
                           .name = {.kind = RecordName::Kind::kPresence, .member = "a"},
                           .value = {.beat = own.value.beat + 1},
                           .version = own.version};
  ASSERT_TRUE(other.CarryOut(beat).done);
  clock_.Advance(absl::Seconds(12));
  member.AwaitDisplaced();
  board_.AwaitCounts({});
  member->Stop();
  EXPECT_NE(other.CarryOut({.name = beat.name}).version, sync::kAbsent)
      << "the other one stays present";
}

TEST_F(PartitionMemberTest, OfTwoProcessesWithOneNameTheSecondGoesOn) {
  TestMember first(SetupOf("a"));
  AwaitFour("a");
  WorkBoard board_of_second;
  TestMember::Setup setup = SetupOf("a");
  setup.board = &board_of_second;
  TestMember second(setup);
  clock_.AwaitSleepers(4);  // two threads of each; the second is present
  clock_.Advance(absl::Seconds(12));
  first.AwaitDisplaced();
  board_.AwaitCounts({});
  // What the first has released, and what is recorded as the name's.
  for (const double seconds : {2.5, 12.0, 12.0}) {
    clock_.AwaitSleepers(2);
    clock_.Advance(absl::Seconds(seconds));
  }
  board_of_second.AwaitCounts({{"a", 4}});
  EXPECT_FALSE(second.is_displaced());
}

TEST_F(PartitionMemberTest, NotesItsGroupAgainWhereTheStoreHasLostItsRecords) {
  TestMember member(SetupOf("a"));
  AwaitFour("a");
  GroupRegistry registry(&store_);
  EXPECT_EQ(registry.List().value(), std::vector<std::string>{"g"});
  store_.Clear();
  clock_.Advance(absl::Seconds(12));
  while (registry.List().value() != std::vector<std::string>{"g"}) base::LetOthersRun();
}

TEST_F(PartitionMemberTest, AWallClockThatStepsChangesNothing) {
  TestMember member(SetupOf("a"));
  AwaitFour("a");
  for (const absl::Duration step : {absl::Hours(24), -absl::Hours(48)}) {
    clock_.StepWallClock(step);
    clock_.Advance(absl::Seconds(12));
    clock_.AwaitSleepers(2);
    EXPECT_EQ(member->Held(0)->epoch, 1);
  }
}

TEST_F(PartitionMemberTest, TheWorkStopsAtTheEndOfTheLeaseThoughTheStoreHangs) {
  TestMember member(SetupOf("a"));
  AwaitFour("a");
  hanging_.Hang();
  clock_.Advance(absl::Seconds(12));
  hanging_.AwaitCall();
  EXPECT_TRUE(member->Held(0).has_value());
  clock_.Advance(absl::Seconds(24));
  board_.AwaitCounts({});
  EXPECT_FALSE(member->Held(0).has_value());
  hanging_.LetGo();
}

TEST_F(PartitionMemberTest, WorkThatDoesNotDrainIsRevokedAtTheEndOfTheGrace) {
  TestMember::Setup setup = SetupOf("a");
  setup.drains = false;
  TestMember member(setup);
  AwaitFour("a");
  std::thread stop([&member] { member->Stop(); });
  member.AwaitDraining();  // the grace has begun
  clock_.Advance(absl::Seconds(9));
  stop.join();
  board_.AwaitCounts({});
}

TEST_F(PartitionMemberTest, AStoppedMembersWorkIsTakenUpWithinACycle) {
  TestMember a(SetupOf("a"));
  AwaitFour("a");
  a->Stop();
  TestMember b(SetupOf("b"));
  AwaitFour("b");
  EXPECT_EQ(b->Held(0)->epoch, 2);
}

TEST_F(PartitionMemberTest, RefusesOptionsThatThrash) {
  MemberOptions options{.group = "g", .member = "a", .lease = absl::Seconds(10)};
  EXPECT_EQ(PartitionMember::Start(options, &store_, nullptr, &clock_, nullptr).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// A member that dies is one that never writes again: its threads may live on.
TEST_F(PartitionMemberTest, ShowsWhatItOwnsAndHowItCameAndWent) {
  telemetry::Registry registry_a;
  telemetry::Registry registry_b;
  const auto changes = [](const std::string& change) {
    return absl::StrCat("muster_partition_changes_total{group=\"g\",change=\"", change, "\"}");
  };
  const std::string owned = R"(muster_partitions_owned{group="g"})";
  const std::string unowned = R"(muster_partitions_unowned{group="g"})";
  TestMember::Setup setup = SetupOf("a");
  setup.metrics = &registry_a;
  TestMember a(setup);
  clock_.AwaitSleepers(1);
  EXPECT_EQ(telemetry::Shown(registry_a, unowned), 4) << "it has only looked";
  clock_.Advance(absl::Seconds(2.5));
  board_.AwaitCounts({{"a", 4}});
  clock_.AwaitSleepers(2);
  EXPECT_EQ(telemetry::Shown(registry_a, owned), 4);
  EXPECT_EQ(telemetry::Shown(registry_a, unowned), 0);
  EXPECT_EQ(telemetry::Shown(registry_a, changes("claimed")), 4);
  EXPECT_EQ(telemetry::Shown(registry_a, changes("lost")), 0);

  hanging_.Hang();
  clock_.Advance(absl::Seconds(12));
  hanging_.AwaitCall();
  TestMember::Setup heir = SetupOf("b");
  heir.store = &store_;
  heir.metrics = &registry_b;
  TestMember b(heir);
  clock_.AwaitSleepers(2);  // of a, the thread that calls the work
  clock_.Advance(absl::Seconds(12));
  clock_.AwaitSleepers(2);
  clock_.Advance(absl::Seconds(12));
  board_.AwaitCounts({});
  clock_.AwaitSleepers(1);
  clock_.Advance(absl::Seconds(12));
  clock_.AwaitSleepers(1);
  clock_.Advance(absl::Seconds(12));
  board_.AwaitCounts({{"b", 4}});
  clock_.AwaitSleepers(2);
  EXPECT_EQ(telemetry::Shown(registry_a, owned), 0);
  EXPECT_EQ(telemetry::Shown(registry_a, unowned), 4) << "as far as it can see";
  EXPECT_EQ(telemetry::Shown(registry_a, changes("lost")), 4);
  EXPECT_EQ(telemetry::Shown(registry_a, changes("given")), 0);
  EXPECT_EQ(telemetry::Shown(registry_b, unowned), 0);
  EXPECT_EQ(telemetry::Shown(registry_b, changes("taken_over")), 4);
  EXPECT_EQ(telemetry::Shown(registry_b, changes("claimed")), 0);
  b->Stop();
  EXPECT_EQ(telemetry::Shown(registry_b, changes("given")), 4);
  EXPECT_EQ(telemetry::Shown(registry_b, owned), std::nullopt) << "it has left";
  hanging_.LetGo();
}

TEST_F(PartitionMemberTest, CountsItsRequestsAndTheCyclesInWhichOneFailed) {
  telemetry::Registry registry;
  TestMember::Setup setup = SetupOf("a");
  setup.metrics = &registry;
  TestMember member(setup);
  AwaitFour("a");
  const std::string cycles = R"(muster_partition_cycles_total{group="g",outcome=)";
  const std::string requests = R"(muster_partition_requests_total{group="g",outcome=)";
  EXPECT_EQ(telemetry::Shown(registry, cycles + R"("ok"})"), 1);
  EXPECT_EQ(telemetry::Shown(registry, cycles + R"("failed"})"), 0);
  EXPECT_EQ(telemetry::Shown(registry, requests + R"("failed"})"), 0);
  store_.FailNextGet(absl::UnavailableError("injected"));
  for (int i = 0; i < 2; ++i) {
    clock_.Advance(absl::Seconds(12));
    clock_.AwaitSleepers(2);
  }
  EXPECT_EQ(telemetry::Shown(registry, cycles + R"("failed"})"), 1);
  EXPECT_EQ(telemetry::Shown(registry, requests + R"("failed"})"), 1);
  EXPECT_EQ(telemetry::Shown(registry, requests + R"("ok"})"),
            static_cast<double>(member->counts().requests - 1));
}

// Two members and then three on a real store: they share, one of them stops, the others take over,
// and each change of hands goes on from the checkpoint of the one before.
void ShareAndHandOver(const std::vector<sync::OptimisticSyncStore*>& stores) {
  WorkBoard board;
  CheckpointStore checkpoints(stores[0], "orders/main");
  const auto setup = [&](const std::string& member, sync::OptimisticSyncStore* store) {
    return TestMember::Setup{.options = {.group = "orders/main",
                                         .member = member,
                                         .partitions = 8,
                                         .interval = absl::Milliseconds(100),
                                         .lease = absl::Seconds(10),
                                         .grace = absl::Seconds(2)},
                             .store = store,
                             .clock = base::RealClock(),
                             .board = &board,
                             .checkpoints = &checkpoints};
  };
  int64_t changes = 0;
  {
    TestMember a(setup("a", stores[0]));
    TestMember b(setup("b", stores[1]));
    board.AwaitEven(2, 4, 8);
    {
      TestMember c(setup("c", stores[2]));
      board.AwaitEven(3, 2, 8);
      a->Stop();
      board.AwaitEven(2, 4, 8);
    }
    board.AwaitCounts({{"b", 8}});
  }
  board.AwaitCounts({});
  for (int p = 0; p < 8; ++p) changes += checkpoints.Begin(p, 1000)->offset;
  EXPECT_GE(changes, 8 + 2 + 2 + 4) << "a drain for each change of hands";
}

TEST(PartitionMemberConformanceTest, SharesPartitionsOnRocksDb) {
  const os::TempDir dir;
  const auto store = sync::rocksdb::RocksDbSyncStore::Open(dir / "sync").value();
  ShareAndHandOver({store.get(), store.get(), store.get()});
}

class PartitionMembersOnNats : public ::testing::TestWithParam<std::string> {};

TEST_P(PartitionMembersOnNats, SharePartitionsOverTheirOwnConnections) {
  const nats::testing::NatsServer server(GetParam());
  std::vector<std::unique_ptr<nats::Connection>> connections;
  std::vector<std::unique_ptr<sync::jetstream::JetStreamSyncStore>> stores;
  std::vector<sync::OptimisticSyncStore*> pointers;
  for (int i = 0; i < 3; ++i) {
    connections.push_back(nats::Connection::Open(server.url(), {}).value());
    stores.push_back(sync::jetstream::JetStreamSyncStore::Open(connections.back().get()).value());
    pointers.push_back(stores.back().get());
  }
  ShareAndHandOver(pointers);
}

INSTANTIATE_TEST_SUITE_P(Servers, PartitionMembersOnNats,
                         ::testing::ValuesIn(nats::testing::NatsServer::Programs()));

}  // namespace
}  // namespace muster::partition
