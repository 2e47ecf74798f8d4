// SPDX-License-Identifier: Apache-2.0

// Two groups on one stream, with a real server and real processes that join, leave and
// are killed; and what handles the events remembers (partition, offset), so that nothing counts
// twice.
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/partition/checkpoint_store.h"
#include "muster/stream/event_producer.h"
#include "muster/stream/processor/event_processor.h"
#include "muster/stream/processor/replay.h"
#include "tests/fakes/base/killable_process.h"
#include "tests/fakes/nats/nats_server.h"

namespace muster::stream::processor {
namespace {

using base::testing::KillableProcess;
using base::testing::RegisteredProcess;

constexpr int kPartitions = 8;
constexpr char kStream[] = "homes";

ProcessorOptions OptionsOf(const std::string& group, const std::string& member) {
  return {.stream = kStream,
          .group = group,
          .member = member,
          .interval = absl::Milliseconds(300),
          .lease = absl::Seconds(2),
          .grace = absl::Seconds(1),
          .replay_check = absl::Milliseconds(200)};
}

// Tells the test of each event, and saves a checkpoint of every tenth and of the last.
class Reporter final : public EventHandler {
 public:
  Reporter(std::string group, int leave_after)
      : group_(std::move(group)), leave_after_(leave_after) {}

  absl::Status OnEvent(PartitionContext& partition, const Event* event) override {
    base::testing::Send(
        absl::StrCat(group_, " ", partition.partition(), " ", event->offset, " ", event->body));
    {
      base::MutexLock lock(&mu_);
      last_[partition.partition()] = *event;
      if (++handled_ == leave_after_) left_.NotifyAll();
    }
    return event->offset % 10 == 0 ? partition.UpdateCheckpoint(*event) : absl::OkStatus();
  }
  void OnError(const ProcessorError&) override {}
  void OnPartitionClosing(PartitionContext& partition, CloseReason reason) override {
    std::optional<Event> last;
    {
      base::MutexLock lock(&mu_);
      const auto found = last_.find(partition.partition());
      if (found != last_.end()) last = found->second;
      last_.erase(partition.partition());
    }
    if (reason == CloseReason::kLost || reason == CloseReason::kReplayed || !last.has_value()) {
      return;
    }
    partition.UpdateCheckpoint(*last).IgnoreError();
  }
  void AwaitLeaving() {
    base::MutexLock lock(&mu_);
    while (leave_after_ == 0 || handled_ < leave_after_) left_.Wait(&mu_);
  }

 private:
  const std::string group_;
  const int leave_after_;  // 0: never
  base::Mutex mu_;
  base::CondVar left_;
  std::map<int, Event> last_ ABSL_GUARDED_BY(mu_);
  int handled_ ABSL_GUARDED_BY(mu_) = 0;
};

// "URL NAME N": a process with a processor of each group, which leaves after N events of `store`.
const RegisteredProcess member("stream-member", [](const std::string& argument) {
  const std::vector<std::string> words = absl::StrSplit(argument, ' ');
  int leave_after = 0;
  if (!absl::SimpleAtoi(words[2], &leave_after)) return;
  backend::Backends backends;
  const auto events =
      backends.OpenEventStreamStore(words[0], backend::Mode::kReadWrite, base::RealClock()).value();
  const auto sync = backends.OpenSyncStore(words[0]).value();
  const ProcessorStores stores{.events = events.get(), .sync = sync.get()};
  Reporter storing("store", leave_after);
  Reporter routing("route", 0);
  const auto store =
      EventProcessor::Start(OptionsOf("store", words[1]), stores, &storing, base::RealClock())
          .value();
  const auto route =
      EventProcessor::Start(OptionsOf("route", words[1]), stores, &routing, base::RealClock())
          .value();
  storing.AwaitLeaving();
  store->Stop();
  route->Stop();
});

// What the groups have done: counts each event once, also if several members handled it or one did
// repeatedly. Thread-safe.
class Downstream {
 public:
  void Take(const std::string& line) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    int64_t amount = 0;
    ASSERT_TRUE(words.size() == 4 && absl::SimpleAtoi(words[3], &amount)) << line;
    base::MutexLock lock(&mu_);
    Group& group = groups_[words[0]];
    ++group.lines;
    if (group.seen.insert({words[1], words[2]}).second) group.total += amount;
    changed_.NotifyAll();
  }
  void AwaitSeen(const std::string& group, size_t n) {
    base::MutexLock lock(&mu_);
    while (groups_[group].seen.size() < n) changed_.Wait(&mu_);
  }
  void AwaitLines(const std::string& group, int64_t n) {
    base::MutexLock lock(&mu_);
    while (groups_[group].lines < n) changed_.Wait(&mu_);
  }
  int64_t Total(const std::string& group) {
    base::MutexLock lock(&mu_);
    return groups_[group].total;
  }
  int64_t Lines(const std::string& group) {
    base::MutexLock lock(&mu_);
    return groups_[group].lines;
  }

 private:
  struct Group {
    int64_t lines = 0;
    std::set<std::pair<std::string, std::string>> seen;
    int64_t total = 0;
  };

  base::Mutex mu_;
  base::CondVar changed_;
  std::map<std::string, Group> groups_ ABSL_GUARDED_BY(mu_);
};

class TwoGroupsTest : public ::testing::Test {
 protected:
  // A process, and the thread that hears it.
  class Member {
   public:
    Member(const std::string& argument, Downstream* downstream)
        : process_("stream-member", argument), hears_([this, downstream] {
            while (const auto line = process_.Receive()) downstream->Take(*line);
          }) {}
    ~Member() { Kill(); }
    void Kill() {
      process_.Kill();
      if (hears_.joinable()) hears_.join();
    }
    // Waits until the process has ended by itself.
    void AwaitEnd() { hears_.join(); }

   private:
    KillableProcess process_;
    std::thread hears_;
  };

  std::unique_ptr<Member> Join(const std::string& name, int leave_after = 0) {
    return std::make_unique<Member>(absl::StrCat(server_.url(), " ", name, " ", leave_after),
                                    &downstream_);
  }

  nats::testing::NatsServer server_;
  backend::Backends backends_;
  std::unique_ptr<EventStreamStore> events_ =
      backends_.OpenEventStreamStore(server_.url(), backend::Mode::kReadWrite, base::RealClock())
          .value();
  std::unique_ptr<sync::OptimisticSyncStore> sync_ = backends_.OpenSyncStore(server_.url()).value();
  Downstream downstream_;
};

TEST_F(TwoGroupsTest, CountExactlyWhileMembersComeGoAndDieAndAReplayMovesOneGroupOnly) {
  ASSERT_TRUE(events_->Create(kStream, {.partitions = kPartitions}).ok());
  std::atomic<bool> done = false;
  std::atomic<size_t> sent = 0;
  std::atomic<int64_t> total = 0;
  std::thread producing([&] {
    const auto producer =
        EventProducer::Open(events_.get(), kStream, {}, base::RealClock()).value();
    for (int i = 0; !done || i < 2000; ++i) {
      const int amount = i % 97;
      const auto place =
          producer->Send({.key = absl::StrCat("home-", i % 500), .body = absl::StrCat(amount)});
      ASSERT_TRUE(place.ok()) << place.status();
      ++sent;
      total += amount;
      absl::SleepFor(absl::Milliseconds(1));  // as sensors do
    }
  });

  auto a = Join("a");
  auto b = Join("b");
  downstream_.AwaitSeen("store", 300);
  auto c = Join("c", 200);
  downstream_.AwaitSeen("store", 900);
  a->Kill();
  auto d = Join("d");
  c->AwaitEnd();
  b->Kill();
  auto e = Join("e");
  downstream_.AwaitSeen("store", sent + 200);
  done = true;
  producing.join();
  for (const char* group : {"store", "route"}) {
    downstream_.AwaitSeen(group, sent);
    EXPECT_EQ(downstream_.Total(group), total) << group;
  }

  // Nothing is produced any more, and no process dies.
  const int64_t routed = downstream_.Lines("route");
  const int64_t stored = downstream_.Lines("store");
  partition::CheckpointStore route_checkpoints(sync_.get(), GroupName(kStream, "route"));
  const partition::Checkpoint before = route_checkpoints.Read(3).value();
  const ProcessorStores stores{.events = events_.get(), .sync = sync_.get()};
  ASSERT_TRUE(Replay(stores, kStream, "store", 3, 1).ok());
  const int64_t again = events_->Extent(kStream, 3).value().count();
  downstream_.AwaitLines("store", stored + again);
  EXPECT_EQ(downstream_.Total("store"), total) << "what came again counts once";
  EXPECT_EQ(downstream_.Lines("route"), routed) << "the other group noticed nothing";
  EXPECT_EQ(route_checkpoints.Read(3).value(), before);
}

}  // namespace
}  // namespace muster::stream::processor
