// SPDX-License-Identifier: Apache-2.0
#include "services/processor/pool_metrics.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "muster/queue/store_decorators.h"
#include "tests/fakes/processor/processor_service_fixture.h"
#include "tests/fakes/telemetry/shown.h"

namespace muster::processor {
namespace {

using telemetry::Shown;

class PoolMetricsTest : public ProcessorServiceTest {
 protected:
  ~PoolMetricsTest() override { service_.reset(); }

  void StartMeasured() {
    Dependencies dependencies{processor_queues_, &bus_, blobs_.get(), base::RealClock()};
    dependencies.metrics = &registry_;
    service_ = std::make_unique<ProcessorService>(&handlers_, options_, base::RealClock());
    ASSERT_TRUE(service_->Start(dependencies, &jobs_).ok());
  }
  double Wakeups() {
    return Shown(registry_, R"(muster_wakeups_total{queue="words-in",kind="push"})").value_or(0);
  }

  telemetry::Registry registry_;
};

TEST_F(PoolMetricsTest, ShowsThePoolOfAJobWithoutWork) {
  Apply(Definition("words", 10));
  StartMeasured();
  Await(
      [&] { return Shown(registry_, R"(muster_dequeue_tasks{pool="words",state="idle"})") == 0; });
  EXPECT_EQ(Shown(registry_, R"(muster_dequeue_tasks{pool="words",state="busy"})"), 0);
  EXPECT_EQ(Shown(registry_, R"(muster_dequeue_tasks{pool="words",state="max"})"), 2);
  EXPECT_EQ(Shown(registry_, R"(muster_rejected_total{queue="words-in",reason="handler"})"), 0);
}

TEST_F(PoolMetricsTest, CountsTimeAndWakeups) {
  const job::JobEntry job = Apply(Definition("words", 10));
  StartMeasured();
  const std::string idle = R"(muster_dequeue_tasks{pool="words",state="idle"})";
  // A put wakes no task that is looking at that moment, as the first one may be.
  do {
    Await([&] { return Shown(registry_, idle) == 0; });
    Put(job, "hello");
    EXPECT_EQ(AwaitResult("words"), "hello");
  } while (Wakeups() == 0);
  const std::string time = R"(muster_worker_time_seconds_total{pool="words",state=)";
  Await([&] { return Shown(registry_, time + R"("busy"})").value_or(0) > 0; });
  EXPECT_GT(Shown(registry_, time + R"("starting"})"), 0);
}

class NoListeners final : public JobListeners {
 public:
  std::vector<JobListener> Listeners() override { return {}; }
  std::map<std::string, std::string> OpenTroubles() override { return {}; }
  void Retire(absl::string_view) override {}
};

// Counts what is allocated and not freed.
template <typename T>
struct CountingAllocator {
  using value_type = T;

  explicit CountingAllocator(int* count) : live(count) {}
  template <typename Other>
  CountingAllocator(const CountingAllocator<Other>& other) : live(other.live) {}

  T* allocate(size_t n) {
    ++*live;
    return std::allocator<T>().allocate(n);
  }
  void deallocate(T* place, size_t n) {
    --*live;
    std::allocator<T>().deallocate(place, n);
  }

  int* live;
};

// A processor without --metrics, whom nobody scrapes, kept a line for each job that it had ever
// worked for.
TEST_F(PoolMetricsTest, KeepsNothingOfAListenerThatHasEnded) {
  const auto make = [this](const std::string& job) -> std::shared_ptr<listener::QueueListener> {
    listener::ListenerOptions options;
    options.partitions = {item::InputQueue("local", job, 0)};
    const auto no_work = [] { return absl::UnavailableError("no work"); };
    return listener::QueueListener::Create(options, {}, no_work, queues_.get(), &bus_,
                                           base::RealClock())
        .value();
  };
  const auto words = make("words");
  NoListeners none;
  PoolMetrics metrics(&none, nullptr);
  int live = 0;
  auto owner = std::allocate_shared<int>(CountingAllocator<int>(&live));
  EXPECT_EQ(live, 1);
  metrics.NoteEnded({.job = "words", .listener = {owner, words.get()}});
  owner.reset();
  metrics.NoteEnded({.job = "others", .listener = make("others")});
  EXPECT_EQ(live, 0);
}

// A store whose messages come from a worker that has died, or go to another one too soon.
class LosingStore final : public queue::InterceptedStore {
 public:
  using InterceptedStore::InterceptedStore;

  absl::StatusOr<std::vector<queue::Message>> Receive(
      const queue::QueueId& queue, const queue::ReceiveOptions& options) override {
    auto messages = InterceptedStore::Receive(queue, options);
    if (!messages.ok()) return messages;
    for (queue::Message& message : *messages) message.interrupted = interrupts;
    return messages;
  }
  absl::StatusOr<std::vector<absl::Status>> Delete(
      const queue::QueueId&, absl::Span<const queue::Receipt> receipts) override {
    return std::vector<absl::Status>(receipts.size(), absl::FailedPreconditionError("it is gone"));
  }

  bool interrupts = false;
};

TEST_F(PoolMetricsTest, CountsLostLeases) {
  LosingStore losing(queues_.get());
  processor_queues_ = &losing;
  const job::JobEntry job = Apply(Definition("words", 10));
  StartMeasured();
  const std::string lost = R"(muster_leases_lost_total{queue="words-in"})";
  Await([&] { return Shown(registry_, lost) == 0; });
  Put(job, "hello");
  Await([&] { return Shown(registry_, lost) == 1; });
  service_.reset();
}

TEST_F(PoolMetricsTest, CountsSuspectsAndTheRestartsOfTheHandlersProgramsByReason) {
  LosingStore losing(queues_.get());
  losing.interrupts = true;
  processor_queues_ = &losing;
  options_.handlers.programs = HandlerPrograms::Of({"any"});
  const job::JobEntry job = Apply(
      "name: words\ninput: {format: lines}\nhandler: {command: [sh, -c, 'read line; exit 1']}\n"
      "groups:\n  - {name: by_line, keys: [line], measures: {n: int}}\n");
  StartMeasured();
  Put(job, "hello");
  const std::string restarts = "muster_handler_restarts_total";
  Await([&] {
    return Shown(registry_, restarts + R"({queue="words-in",reason="ended"})").value_or(0) > 1;
  });
  EXPECT_GT(Shown(registry_,
                  "muster_handler_call_duration_seconds_count"
                  R"({queue="words-in",outcome="retry"})"),
            0);
  EXPECT_GT(Shown(registry_, R"(muster_suspects_total{queue="words-in"})"), 0);
  service_.reset();
}

// The listener of the old definition counts from its beginning, and so does the new one.
TEST_F(PoolMetricsTest, LosesNothingAndCountsNothingTwiceWhenTheJobChanges) {
  const job::JobEntry job = Apply(Definition("words", 10));
  StartMeasured();
  Put(job, "hello");
  EXPECT_EQ(AwaitResult("words"), "hello");
  Await([&] { return Wakeups() >= 0; });
  const std::shared_ptr<listener::QueueListener> old = ListenerOf("words");
  Apply(Definition("words", 20));
  Tell();
  AwaitStopped(old);
  const auto of_old = static_cast<double>(old->counters().wakeups_push);
  const std::shared_ptr<listener::QueueListener> other = ListenerOf("words");
  ASSERT_NE(other, old);
  service_->Stop(absl::Seconds(10));  // waits until the old one is drained, and has been read
  const auto of_other = static_cast<double>(other->counters().wakeups_push);
  EXPECT_EQ(Wakeups(), of_old + of_other);
  EXPECT_EQ(Wakeups(), of_old + of_other) << "at each scrape";
}

}  // namespace
}  // namespace muster::processor
