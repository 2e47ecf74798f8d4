// SPDX-License-Identifier: Apache-2.0

// Workers, releases and a multicast that loses, repeats, reorders and delays, as a seed says.
#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <random>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/bus/local/local_buses.h"
#include "muster/release/combined_release.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/base/test_seed.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::release {
namespace {

// Keeps what is published until Deliver, which picks an event by chance, and may keep it for
// another time. Clear loses the rest.
class UnreliableBus final : public bus::TriggerBus {
 public:
  explicit UnreliableBus(std::mt19937* random) : random_(random) {}

  absl::Status Publish(const bus::InterRoleCommunicationEvent& event) override {
    if (!Chance(30)) kept_.push_back(event);  // lost for all
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(Subscriber subscriber) override {
    return local_.Subscribe([this, subscriber = std::move(subscriber)](const auto& event) {
      if (!Chance(20)) subscriber(event);  // lost for this one
    });
  }
  void Deliver() {
    if (kept_.empty()) return;
    const size_t place = std::uniform_int_distribution<size_t>(0, kept_.size() - 1)(*random_);
    const bus::InterRoleCommunicationEvent event = kept_[place];
    if (!Chance(40)) kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(place));
    ASSERT_TRUE(local_.Publish(event).ok());
  }

 private:
  bool Chance(int percent) { return std::uniform_int_distribution<int>(0, 99)(*random_) < percent; }

  std::mt19937* const random_;  // not owned; of the test's thread
  bus::local::LocalTriggerBus local_;
  std::deque<bus::InterRoleCommunicationEvent> kept_;
};

// The store as the workers have it, whose next reads may fail.
class FlakyStore final : public sync::OptimisticSyncStore {
 public:
  explicit FlakyStore(sync::OptimisticSyncStore* store) : store_(store) {}

  absl::StatusOr<sync::VersionedData> Get(absl::string_view key) override {
    if (failures_ > 0 && failures_-- > 0) return absl::UnavailableError("no route");
    return store_->Get(key);
  }
  absl::StatusOr<bool> TryWrite(absl::string_view, absl::string_view, uint64_t) override {
    return absl::PermissionDeniedError("workers only read");
  }
  absl::StatusOr<bool> TryDelete(absl::string_view, uint64_t) override {
    return absl::PermissionDeniedError("workers only read");
  }
  void FailNextGets(int n) { failures_ = n; }

 private:
  sync::OptimisticSyncStore* const store_;  // not owned
  std::atomic<int> failures_ = 0;
};

// A process with some threads that wait.
struct Node {
  Node(sync::OptimisticSyncStore* store, bus::TriggerBus* bus, base::FakeClock* clock, int threads,
       const std::stop_token& stop)
      : release(CombinedRelease::Open("go", store, bus, clock).value()) {
    for (int i = 0; i < threads; ++i) {
      workers.emplace_back([this, stop] {
        const auto went = release->Wait(stop);
        if (!went.ok()) return;
        if (!went->LetsGo(release->epoch())) ++too_early;
        ++gone;
      });
    }
  }

  const std::unique_ptr<CombinedRelease> release;
  std::atomic<int> gone = 0;
  std::atomic<int> too_early = 0;
  std::vector<std::jthread> workers;
};

// Runs one story; answers what is wrong with its end.
std::string RunStory(uint32_t seed) {
  std::mt19937 random(seed);
  base::FakeClock clock;
  sync::testing::MemorySyncStore store;
  FlakyStore workers_store(&store);
  UnreliableBus bus(&random);
  Releases releases(&store, &bus, "initiator", &clock);
  std::stop_source stop;
  std::vector<std::unique_ptr<Node>> nodes;
  for (int step = 0; step < 30; ++step) {
    switch (std::uniform_int_distribution<int>(0, 6)(random)) {
      case 0:
      case 1:
        nodes.push_back(
            std::make_unique<Node>(&workers_store, &bus, &clock, 1 + step % 3, stop.get_token()));
        break;
      case 2:
        EXPECT_TRUE(releases.Release("go").ok());
        break;
      case 3:
        EXPECT_TRUE(releases.Arm("go").ok());
        break;
      case 4:
        workers_store.FailNextGets(2);
        clock.Advance(absl::Milliseconds(step * 100));
        break;
      default:
        bus.Deliver();
    }
  }
  if (seed % 2 == 0) store.Clear();  // a store may lose the record
  EXPECT_TRUE(releases.Release("go").ok());
  const absl::Time give_up = absl::Now() + absl::Seconds(30);
  const auto all_gone = [&nodes] {
    return std::all_of(nodes.begin(), nodes.end(), [](const auto& node) {
      return node->gone == static_cast<int>(node->workers.size());
    });
  };
  while (!all_gone() && absl::Now() < give_up) {
    clock.Advance(kSafetyInterval);
    base::LetOthersRun();
  }
  const bool are_gone = all_gone();
  stop.request_stop();
  int too_early = 0;
  for (const auto& node : nodes) {
    node->workers.clear();
    too_early += node->too_early;
  }
  return absl::StrCat(are_gone ? "" : "some still wait; ",
                      too_early > 0 ? "some went before their release" : "");
}

TEST(ReleasePropertyTest, NobodyIsStrandedAndNobodyGoesTooEarlyWhateverTheMulticastDoes) {
  const uint32_t seed = base::testing::TestSeed();
  base::LogCapture log;  // of reads that fail
  for (int i = 0; i < base::testing::CaseCount(300); ++i) {
    const uint32_t story = seed + static_cast<uint32_t>(i);
    ASSERT_EQ(RunStory(story), "") << "seed " << seed << ", story " << story;
  }
}

}  // namespace
}  // namespace muster::release
