// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/processor/event_processor.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/stream/memory_event_stream_store.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::stream::processor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Offsets = std::vector<int64_t>;
using Handle = std::function<absl::Status(PartitionContext&, const Event*)>;

// Remembers what it was called for. Thread-safe.
class Recorder final : public EventHandler {
 public:
  explicit Recorder(Handle on_event = nullptr) : on_event_(std::move(on_event)) {}

  absl::Status OnEvent(PartitionContext& partition, const Event* event) override {
    const Inside inside(this, partition.partition());
    const absl::Status status =
        on_event_ == nullptr ? partition.UpdateCheckpoint(*event) : on_event_(partition, event);
    base::MutexLock lock(&mu_);
    if (event != nullptr && status.ok()) handled_[partition.partition()].push_back(event->offset);
    changed_.NotifyAll();
    return status;
  }
  void OnError(const ProcessorError& error) override {
    base::MutexLock lock(&mu_);
    errors_.push_back(error);
    errors_.back().event = nullptr;
    changed_.NotifyAll();
  }
  void OnPartitionInitializing(PartitionContext& partition) override {
    Note(absl::StrCat(partition.partition(), " from ", partition.begins_at()));
  }
  void OnPartitionClosing(PartitionContext& partition, CloseReason reason) override {
    Note(absl::StrCat(partition.partition(), " ", CloseReasonName(reason)));
    if (on_closing) on_closing(partition, reason);
  }

  // Waits until `done` of what it remembers.
  void Await(const std::function<bool()>& done) {
    base::MutexLock lock(&mu_);
    while (!done()) changed_.Wait(&mu_);
  }
  void AwaitHandled(int partition, size_t n) {
    Await([&] { return handled_[partition].size() >= n; });
  }
  void AwaitInside(int partition) {
    Await([&] { return inside_.contains(partition); });
  }
  void AwaitErrors(size_t n) {
    Await([&] { return errors_.size() >= n; });
  }
  void AwaitNote(const std::string& note) {
    Await([&] { return std::count(notes_.begin(), notes_.end(), note) > 0; });
  }
  Offsets Handled(int partition) {
    base::MutexLock lock(&mu_);
    return handled_[partition];
  }
  std::vector<ProcessorError> Errors() {
    base::MutexLock lock(&mu_);
    return errors_;
  }
  std::vector<std::string> Notes() {
    base::MutexLock lock(&mu_);
    return notes_;
  }

  std::function<void(PartitionContext&, CloseReason)> on_closing;  // set before it is used

 private:
  // While a call runs, also if it throws.
  class Inside {
   public:
    Inside(Recorder* recorder, int partition) : recorder_(recorder), partition_(partition) {
      base::MutexLock lock(&recorder_->mu_);
      EXPECT_TRUE(recorder_->inside_.insert(partition).second) << "calls of a partition overlap";
      recorder_->changed_.NotifyAll();
    }
    ~Inside() {
      base::MutexLock lock(&recorder_->mu_);
      recorder_->inside_.erase(partition_);
    }

   private:
    Recorder* const recorder_;  // not owned
    const int partition_;
  };

  void Note(std::string note) {
    base::MutexLock lock(&mu_);
    notes_.push_back(std::move(note));
    changed_.NotifyAll();
  }

  const Handle on_event_;
  base::Mutex mu_;
  base::CondVar changed_;
  std::set<int> inside_;
  std::map<int, Offsets> handled_;
  std::vector<ProcessorError> errors_;
  std::vector<std::string> notes_;
};

// A door that a handler waits at. Thread-safe.
class Door {
 public:
  void Pass() {
    base::MutexLock lock(&mu_);
    while (!open_) changed_.Wait(&mu_);
  }
  void Open() {
    base::MutexLock lock(&mu_);
    open_ = true;
    changed_.NotifyAll();
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
};

class EventProcessorTest : public ::testing::Test {
 protected:
  EventProcessorTest() { EXPECT_TRUE(events_.Create("homes", {.partitions = 4}).ok()); }

  void Append(int partition, int n) {
    for (int i = 0; i < n; ++i) {
      EXPECT_TRUE(events_.Append("homes", partition, {{.body = "x"}}).ok());
    }
  }
  static ProcessorOptions Options(const std::string& member = "a") {
    return {.stream = "homes", .group = "store", .member = member};
  }
  std::unique_ptr<EventProcessor> Start(EventHandler* handler, const ProcessorOptions& options) {
    auto processor = EventProcessor::Start(options, {&events_, &sync_}, handler, &clock_);
    EXPECT_TRUE(processor.ok()) << processor.status();
    return *std::move(processor);
  }
  // The only member of its group claims everything in its second cycle.
  std::unique_ptr<EventProcessor> StartAlone(EventHandler* handler,
                                             const ProcessorOptions& options = Options()) {
    std::unique_ptr<EventProcessor> processor = Start(handler, options);
    clock_.AwaitSleepers(1);
    clock_.Advance(absl::Seconds(2.5));
    return processor;
  }
  int64_t Saved(int partition, const std::string& group = "homes/store") {
    return partition::CheckpointStore(&sync_, group).Read(partition).value().offset;
  }

  base::FakeClock clock_;
  testing::MemoryEventStreamStore events_{&clock_};
  sync::testing::MemorySyncStore sync_;
};

TEST_F(EventProcessorTest, HandlesTheEventsOfEachPartitionInOrder) {
  for (int p = 0; p < 4; ++p) Append(p, 100);
  Recorder recorder;
  const auto processor = StartAlone(&recorder);
  Offsets all;
  for (int64_t offset = 1; offset <= 100; ++offset) all.push_back(offset);
  for (int p = 0; p < 4; ++p) {
    recorder.AwaitHandled(p, 100);
    EXPECT_EQ(recorder.Handled(p), all);
    EXPECT_EQ(Saved(p), 101);
  }
  EXPECT_EQ(processor->OwnedPartitions(), (std::vector<int>{0, 1, 2, 3}));
  Append(2, 1);
  recorder.AwaitHandled(2, 101);
  EXPECT_TRUE(recorder.Errors().empty());
}

TEST_F(EventProcessorTest, HandlesPartitionsAtOnce) {
  Append(0, 1);
  Append(1, 1);
  Door door;
  Recorder recorder([&](PartitionContext&, const Event*) {
    door.Pass();
    return absl::OkStatus();
  });
  const auto processor = StartAlone(&recorder);
  recorder.AwaitInside(0);
  recorder.AwaitInside(1);
  door.Open();
  processor->Stop();
}

TEST_F(EventProcessorTest, ASlowPartitionDoesNotHoldUpTheOthersOfItsThread) {
  Append(0, 2);
  Append(1, 1);
  Recorder recorder([&](PartitionContext& partition, const Event*) {
    return partition.partition() == 0 ? absl::InternalError("not yet") : absl::OkStatus();
  });
  ProcessorOptions options = Options();
  options.handler_threads = 1;
  const auto processor = StartAlone(&recorder, options);
  recorder.AwaitHandled(1, 1);
}

TEST_F(EventProcessorTest, GoesOnWhereTheGroupStopped) {
  Append(0, 5);
  {
    Recorder recorder;
    const auto processor = StartAlone(&recorder);
    recorder.AwaitHandled(0, 5);
  }
  Append(0, 2);
  Recorder recorder;
  const auto processor = StartAlone(&recorder, Options("b"));
  recorder.AwaitHandled(0, 2);
  EXPECT_THAT(recorder.Handled(0), ElementsAre(6, 7));
  EXPECT_THAT(recorder.Notes(), ::testing::Contains("0 from 6"));
}

TEST_F(EventProcessorTest, GroupsOfAStreamGoTheirOwnWays) {
  Append(0, 5);
  Recorder store;
  Recorder route([](PartitionContext&, const Event*) { return absl::OkStatus(); });
  const auto storing = StartAlone(&store);
  store.AwaitHandled(0, 5);
  ProcessorOptions options = Options();
  options.group = "route";
  const auto routing = Start(&route, options);
  clock_.AwaitSleepers(7);  // six of the other processor
  clock_.Advance(absl::Seconds(2.5));
  route.AwaitHandled(0, 5);
  EXPECT_EQ(Saved(0), 6);
  EXPECT_EQ(Saved(0, "homes/route"), 0) << "it saves none";
}

TEST_F(EventProcessorTest, AnEventThatFailsIsTriedAgainUntilItSucceeds) {
  Append(0, 2);
  int failures = 2;
  Recorder recorder([&](PartitionContext&, const Event* event) {
    if (event->offset == 1 && failures-- > 0) return absl::InternalError("busy");
    return absl::OkStatus();
  });
  ProcessorOptions options = Options();
  options.handler_threads = 1;
  const auto processor = StartAlone(&recorder, options);
  for (size_t n = 1; n <= 2; ++n) {
    recorder.AwaitErrors(n);
    clock_.AwaitSleepers(7);  // two of the member, four fetchers, the back-off
    clock_.Advance(absl::Milliseconds(200));
  }
  recorder.AwaitHandled(0, 2);
  EXPECT_THAT(recorder.Handled(0), ElementsAre(1, 2));
  EXPECT_EQ(processor->counts().failures, 2);
}

TEST_F(EventProcessorTest, AnEventThatFailsTooOftenIsSkippedWhereTheOptionsSaySo) {
  Append(0, 2);
  Recorder recorder([&](PartitionContext&, const Event* event) {
    if (event->offset == 1) throw std::runtime_error("cannot be read");
    return absl::OkStatus();
  });
  ProcessorOptions options = Options();
  options.failure = {.then = FailureOptions::Then::kSkip, .attempts = 1};
  const auto processor = StartAlone(&recorder, options);
  recorder.AwaitHandled(0, 1);
  EXPECT_THAT(recorder.Handled(0), ElementsAre(2));
  EXPECT_EQ(processor->counts().skipped, 1);
  EXPECT_THAT(std::string(recorder.Errors()[0].status.message()), HasSubstr("cannot be read"));
}

TEST_F(EventProcessorTest, StopsWithTheErrorOfAnEventWhereTheOptionsSaySo) {
  Append(0, 2);
  Recorder recorder(
      [](PartitionContext&, const Event*) { return absl::DataLossError("unreadable"); });
  ProcessorOptions options = Options();
  options.failure = {.then = FailureOptions::Then::kStop, .attempts = 1};
  const auto processor = StartAlone(&recorder, options);
  const absl::Status why = processor->Wait();
  EXPECT_EQ(why.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(why.message()), HasSubstr("partition 0, offset 1"));
}

TEST_F(EventProcessorTest, StopFinishesTheEventInHandAndLetsTheHandlerSaveACheckpoint) {
  Append(0, 50);
  Door door;
  std::optional<Event> last;
  Recorder recorder([&](PartitionContext&, const Event* event) {
    door.Pass();
    last = *event;
    return absl::OkStatus();
  });
  recorder.on_closing = [&](PartitionContext& partition, CloseReason reason) {
    if (partition.partition() != 0) return;
    EXPECT_EQ(reason, CloseReason::kShutdown);
    EXPECT_TRUE(partition.UpdateCheckpoint(*last).ok());
  };
  const auto processor = StartAlone(&recorder);
  recorder.AwaitInside(0);
  recorder.AwaitNote("1 from 1");  // a partition that has not begun is not closed either
  processor->RequestStop();
  recorder.AwaitNote("1 shutdown");
  door.Open();
  processor->Stop();
  EXPECT_THAT(recorder.Handled(0), ElementsAre(1)) << "nothing new is begun";
  EXPECT_EQ(Saved(0), 2);
}

TEST_F(EventProcessorTest, TheHandlerMayStopIt) {
  Append(0, 1);
  EventProcessor* self = nullptr;
  Door door;
  Recorder recorder([&](PartitionContext&, const Event*) {
    door.Pass();
    self->Stop();
    return absl::OkStatus();
  });
  const auto processor = StartAlone(&recorder);
  self = processor.get();
  door.Open();
  EXPECT_TRUE(processor->Wait().ok());
  EXPECT_TRUE(processor->OwnedPartitions().empty());
}

TEST_F(EventProcessorTest, AHandlerThatOutlastsTheGraceCanSaveNoCheckpoint) {
  Append(0, 1);
  Door door;
  absl::Status saved;
  Recorder recorder([&](PartitionContext& partition, const Event* event) {
    door.Pass();
    EXPECT_FALSE(partition.owned());
    saved = partition.UpdateCheckpoint(*event);
    return absl::OkStatus();
  });
  const auto processor = StartAlone(&recorder);
  recorder.AwaitInside(0);
  for (int p = 1; p < 4; ++p) recorder.AwaitNote(absl::StrCat(p, " from 1"));
  processor->RequestStop();
  for (int p = 1; p < 4; ++p) recorder.AwaitNote(absl::StrCat(p, " shutdown"));
  clock_.AwaitSleepers(1);
  clock_.Advance(absl::Seconds(9));
  door.Open();
  processor->Stop();
  EXPECT_EQ(saved.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Saved(0), 0);
}

TEST_F(EventProcessorTest, AReplayBeginsThePartitionAnewAndIsNotOverwritten) {
  Append(0, 10);
  Recorder recorder;
  const auto processor = StartAlone(&recorder);
  recorder.AwaitHandled(0, 10);
  partition::CheckpointStore checkpoints(&sync_, "homes/store");
  ASSERT_TRUE(checkpoints.Replay(0, 8, 7).ok());
  Append(0, 1);  // whose checkpoint is refused
  recorder.AwaitHandled(0, 14);
  const Offsets handled = recorder.Handled(0);
  EXPECT_EQ(Offsets(handled.end() - 4, handled.end()), (Offsets{8, 9, 10, 11}));
  EXPECT_THAT(recorder.Notes(), ::testing::IsSupersetOf({"0 replayed", "0 from 8"}));
  EXPECT_EQ(Saved(0), 12);
  EXPECT_EQ(processor->counts().replays, 1);
}

TEST_F(EventProcessorTest, AReplayIsNoticedThoughNothingHappens) {
  Append(0, 10);
  Recorder recorder;
  const auto processor = StartAlone(&recorder);
  recorder.AwaitHandled(0, 10);
  ASSERT_TRUE(partition::CheckpointStore(&sync_, "homes/store").Replay(0, 8, 7).ok());
  clock_.AwaitSleepers(6);
  clock_.Advance(absl::Seconds(2));
  recorder.AwaitNote("0 from 8");
  recorder.AwaitHandled(0, 13);
}

TEST_F(EventProcessorTest, ReadsAStreamThatIsMadeAnewWhileItRunsFromItsFirstEvent) {
  Append(0, 10);
  Recorder recorder;
  const auto processor = StartAlone(&recorder);
  recorder.AwaitHandled(0, 10);
  ASSERT_TRUE(events_.Delete("homes").ok());
  recorder.AwaitErrors(4);  // all partitions are not found
  ASSERT_TRUE(events_.Create("homes", {.partitions = 4}).ok());
  Append(0, 15);
  clock_.AwaitSleepers(6);
  clock_.Advance(absl::Seconds(2));
  recorder.AwaitHandled(0, 25);
  const Offsets handled = recorder.Handled(0);
  for (int i = 0; i < 15; ++i) EXPECT_EQ(handled[static_cast<size_t>(10 + i)], i + 1);
  EXPECT_THAT(recorder.Notes(), ::testing::IsSupersetOf({"0 replayed", "0 from 1"}));
  EXPECT_EQ(recorder.Errors().back().operation, ProcessorError::Operation::kBeyondEnd);
  EXPECT_EQ(Saved(0), 16);
}

TEST_F(EventProcessorTest, CountsWhatRetentionHasRemovedAndGoesOn) {
  Append(0, 10);
  events_.Trim("homes", 0, 5);
  ASSERT_TRUE(partition::CheckpointStore(&sync_, "homes/store").Replay(0, 2, 1).ok());
  Recorder recorder;
  const auto processor = StartAlone(&recorder);
  recorder.AwaitHandled(0, 6);
  EXPECT_EQ(recorder.Handled(0).front(), 5);
  EXPECT_EQ(processor->counts().events_lost, 3);
  EXPECT_EQ(recorder.Errors()[0].operation, ProcessorError::Operation::kRetention);
}

TEST_F(EventProcessorTest, GoesOnWhenTheStreamIsBack) {
  Append(0, 1);
  events_.AnswerReads(absl::UnavailableError("away"));
  Recorder recorder;
  const auto processor = StartAlone(&recorder);
  recorder.AwaitErrors(4);
  EXPECT_EQ(recorder.Errors()[0].operation, ProcessorError::Operation::kOpen);
  events_.AnswerReads(absl::OkStatus());
  clock_.AwaitSleepers(6);  // two of the member, and the fetchers'
  clock_.Advance(absl::Seconds(1));
  recorder.AwaitHandled(0, 1);
}

TEST_F(EventProcessorTest, CallsTheHandlerWithoutAnEventAfterTheLongestWait) {
  std::atomic<int> nulls = 0;
  Recorder recorder([&](PartitionContext& partition, const Event* event) {
    if (event == nullptr && partition.partition() == 0) ++nulls;
    return absl::OkStatus();
  });
  ProcessorOptions options = Options();
  options.max_wait = absl::Seconds(30);
  const auto processor = StartAlone(&recorder, options);
  recorder.AwaitNote("0 from 1");
  while (nulls == 0) {
    clock_.Advance(absl::Seconds(1));
    base::LetOthersRun();
  }
}

TEST_F(EventProcessorTest, ReadsAheadNoMoreThanItMay) {
  for (int i = 0; i < 40; ++i) {
    EXPECT_TRUE(events_.Append("homes", 0, {{.body = std::string(1000, 'x')}}).ok());
  }
  Append(1, 100);
  Door door;
  Recorder recorder([&](PartitionContext&, const Event*) {
    door.Pass();
    return absl::OkStatus();
  });
  ProcessorOptions options = Options();
  options.prefetch_events = 20;
  options.prefetch_bytes = 5000;
  const auto processor = StartAlone(&recorder, options);
  recorder.AwaitInside(0);
  recorder.AwaitInside(1);
  // A fetcher that is told to go on sleeps to the clock until it runs, so sleepers alone do not
  // tell that it has read.
  while (processor->counts().read_ahead < 10) base::LetOthersRun();
  clock_.AwaitSleepers(6);  // two of the member, four fetchers, of which two look for replays only
  EXPECT_LE(processor->counts().read_ahead, 25);
  EXPECT_GE(processor->counts().read_ahead, 10);
  door.Open();
  recorder.AwaitHandled(0, 40);
  recorder.AwaitHandled(1, 100);
}

TEST_F(EventProcessorTest, TheFirstOfTwoWithOneIdStops) {
  Recorder first_recorder;
  const auto first = StartAlone(&first_recorder);
  first_recorder.AwaitNote("3 from 1");
  Recorder second_recorder;
  const auto second = Start(&second_recorder, Options());
  while (first_recorder.Errors().empty()) {
    clock_.Advance(absl::Seconds(1));
    base::LetOthersRun();
  }
  const absl::Status why = first->Wait();
  EXPECT_EQ(why.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(why.message()), HasSubstr("member id a"));
  EXPECT_EQ(first_recorder.Errors().back().operation, ProcessorError::Operation::kMembership);
}

TEST_F(EventProcessorTest, RefusesOptionsAndStreamsThatCannotBe) {
  Recorder recorder;
  const auto start = [&](auto change) {
    ProcessorOptions options = Options();
    change(&options);
    return EventProcessor::Start(options, {&events_, &sync_}, &recorder, &clock_).status().code();
  };
  using Code = absl::StatusCode;
  EXPECT_EQ(start([](ProcessorOptions* o) { o->stream = "none"; }), Code::kNotFound);
  EXPECT_EQ(start([](ProcessorOptions* o) { o->group = "A/b"; }), Code::kInvalidArgument);
  EXPECT_EQ(start([](ProcessorOptions* o) { o->member = "a b"; }), Code::kInvalidArgument);
  EXPECT_EQ(start([](ProcessorOptions* o) { o->handler_threads = 0; }), Code::kInvalidArgument);
  EXPECT_EQ(start([](ProcessorOptions* o) { o->prefetch_events = 0; }), Code::kInvalidArgument);
  EXPECT_EQ(start([](ProcessorOptions* o) { o->interval = o->lease; }), Code::kInvalidArgument);
}

// ---------------------------------------------------------------------------- several members

// In real time: members run their cycles on threads, and no test waits for a lease.
class EventProcessorGroupTest : public ::testing::Test {
 protected:
  EventProcessorGroupTest() { EXPECT_TRUE(events_.Create("homes", {.partitions = 4}).ok()); }

  std::unique_ptr<EventProcessor> Start(EventHandler* handler, const std::string& member) {
    const ProcessorOptions options{.stream = "homes",
                                   .group = "store",
                                   .member = member,
                                   .interval = absl::Milliseconds(50),
                                   .lease = absl::Seconds(60),
                                   .grace = absl::Seconds(30)};
    return EventProcessor::Start(options, {&events_, &sync_}, handler, base::RealClock()).value();
  }

  testing::MemoryEventStreamStore events_{base::RealClock()};
  sync::testing::MemorySyncStore sync_;
};

// What all members of a group have handled. Thread-safe.
class Ledger {
 public:
  absl::Status Handle(PartitionContext& partition, const Event& event) {
    base::MutexLock lock(&mu_);
    const auto [at, first] = owner_.try_emplace(partition.partition(), partition.epoch());
    EXPECT_LE(at->second, partition.epoch()) << "an earlier owner still handles";
    at->second = partition.epoch();
    last_[partition.partition()] = event;
    if (seen_.insert({partition.partition(), event.offset}).second) {
      changed_.NotifyAll();
    } else {
      ++again_;
    }
    return absl::OkStatus();
  }
  void Close(PartitionContext& partition, CloseReason reason) {
    if (reason == CloseReason::kLost) return;
    std::optional<Event> last;
    {
      base::MutexLock lock(&mu_);
      if (last_.contains(partition.partition())) last = last_[partition.partition()];
    }
    // It may be an earlier owner's.
    if (last.has_value() && last->offset >= partition.begins_at()) {
      EXPECT_TRUE(partition.UpdateCheckpoint(*last).ok());
    }
  }
  void AwaitSeen(size_t n) {
    base::MutexLock lock(&mu_);
    while (seen_.size() < n) changed_.Wait(&mu_);
  }
  int again() {
    base::MutexLock lock(&mu_);
    return again_;
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  std::map<int, int64_t> owner_;
  std::map<int, Event> last_;
  std::set<std::pair<int, int64_t>> seen_;
  int again_ = 0;
};

TEST_F(EventProcessorGroupTest, AHandOverLosesNothingAndRepeatsNothing) {
  Ledger ledger;
  const auto handle = [&](PartitionContext& partition, const Event* event) {
    return ledger.Handle(partition, *event);
  };
  Recorder a(handle);
  Recorder b(handle);
  Recorder c(handle);
  for (Recorder* each : {&a, &b, &c}) {
    each->on_closing = [&](PartitionContext& partition, CloseReason reason) {
      ledger.Close(partition, reason);
    };
  }
  std::atomic<bool> done = false;
  std::thread producer([&] {
    for (int i = 0; !done || i < 1000; ++i) {
      EXPECT_TRUE(events_.Append("homes", i % 4, {{.body = "x"}}).ok());
      base::LetOthersRun();
    }
  });
  const auto first = Start(&a, "a");
  a.AwaitHandled(0, 1);
  auto second = Start(&b, "b");
  while (second->counts().owned < 2) base::LetOthersRun();
  const auto third = Start(&c, "c");
  while (third->counts().owned < 1) base::LetOthersRun();
  second->Stop();
  while (first->counts().owned + third->counts().owned < 4) base::LetOthersRun();
  done = true;
  producer.join();
  size_t appended = 0;
  for (int p = 0; p < 4; ++p) {
    appended += static_cast<size_t>(events_.Extent("homes", p).value().count());
  }
  ledger.AwaitSeen(appended);
  EXPECT_EQ(ledger.again(), 0) << "each owner saved where it stopped";
}

TEST_F(EventProcessorGroupTest, MoreMembersThanPartitionsWait) {
  std::vector<std::unique_ptr<Recorder>> recorders;
  std::vector<std::unique_ptr<EventProcessor>> members;
  for (int i = 0; i < 6; ++i) {
    recorders.push_back(std::make_unique<Recorder>());
    members.push_back(Start(recorders.back().get(), absl::StrCat("m", i)));
  }
  const auto owned = [&] {
    std::vector<int64_t> counts;
    for (const auto& member : members) counts.push_back(member->counts().owned);
    std::sort(counts.begin(), counts.end());
    return counts;
  };
  while (owned() != std::vector<int64_t>{0, 0, 1, 1, 1, 1}) base::LetOthersRun();
  // One that waits takes over what another leaves.
  for (auto& member : members) {
    if (member->counts().owned == 0) continue;
    member->Stop();
    break;
  }
  while (owned() != std::vector<int64_t>{0, 0, 1, 1, 1, 1}) base::LetOthersRun();
}

}  // namespace
}  // namespace muster::stream::processor
