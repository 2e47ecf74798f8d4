// SPDX-License-Identifier: Apache-2.0

// From a trigger to the start of a handler, in one process, from idle: the listener has no task, so
// each round pays for hearing the trigger, starting a task, its first receive, and the charged
// attempt, which is written to disk.
//
//   wake_latency [--rounds N]
//
// Prints one line of JSON: {"rounds":2000,"p50_us":…,"p99_us":…,"max_us":…}. The message is put
// before the clock starts: what a put costs is queue_bench's.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/bus/local/local_buses.h"
#include "muster/bus/trigger_bus.h"
#include "muster/listener/listener.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"

namespace muster {
namespace {

using Instant = std::chrono::steady_clock::time_point;

[[noreturn]] void Die(absl::string_view why) {
  std::fprintf(stderr, "wake_latency: %.*s\n", static_cast<int>(why.size()), why.data());
  std::_Exit(1);
}

void Check(const absl::Status& status) {
  if (!status.ok()) Die(status.ToString());
}

// Records the time at which the round's handler began, and the number of tasks.
class Stage {
 public:
  void Began() {
    const Instant now = std::chrono::steady_clock::now();
    base::MutexLock lock(&mu_);
    began_ = now;
    has_begun_ = true;
    changed_.NotifyAll();
  }
  void CountTasks(int by) {
    base::MutexLock lock(&mu_);
    tasks_ += by;
    changed_.NotifyAll();
  }
  Instant AwaitBegan() {
    base::MutexLock lock(&mu_);
    while (!has_begun_) changed_.Wait(&mu_);
    has_begun_ = false;
    return began_;
  }
  void AwaitIdle() {
    base::MutexLock lock(&mu_);
    while (tasks_ > 0) changed_.Wait(&mu_);
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  int tasks_ ABSL_GUARDED_BY(mu_) = 0;
  bool has_begun_ ABSL_GUARDED_BY(mu_) = false;
  Instant began_ ABSL_GUARDED_BY(mu_);
};

class TimedSubscriber final : public listener::Subscriber {
 public:
  explicit TimedSubscriber(Stage* stage) : stage_(stage) { stage_->CountTasks(1); }
  ~TimedSubscriber() override { stage_->CountTasks(-1); }

  void OnMessages(absl::Span<listener::Delivery> deliveries,
                  listener::DeliveryContext& context) override {
    for (listener::Delivery& delivery : deliveries) {
      Check(context.Begin(delivery));
      stage_->Began();
      listener::Settlement settlement;
      settlement.kind = listener::Settlement::Kind::kOk;
      context.Settle(delivery, std::move(settlement));
    }
  }

 private:
  Stage* const stage_;
};

double Measure(const listener::QueueListener& listener, queue::QueueStore& store,
               bus::TriggerBus& bus, const queue::QueueId& queue, Stage& stage) {
  stage.AwaitIdle();
  // The previous round's writes to the disk must have ended, too.
  while (listener.QueryState().unsettled_messages > 0) std::this_thread::yield();
  queue::NewMessage message;
  message.body = "work";
  Check(store.Put(queue, {message}).status());
  const Instant sent = std::chrono::steady_clock::now();
  Check(bus.Publish(bus::WorkDetected("bench", queue.account, queue.name, 1)));
  return std::chrono::duration<double, std::micro>(stage.AwaitBegan() - sent).count();
}

void Run(int rounds) {
  const os::TempDir dir;
  auto store = queue::rocksdb::RocksDbQueueStore::Open(dir.path(), {.holders_in_process = true});
  Check(store.status());
  const queue::QueueId queue{"bench", "wake"};
  Check((*store)->CreateQueue(queue, {}));
  bus::local::LocalTriggerBus bus;
  Stage stage;
  listener::ListenerOptions options;
  options.partitions = {queue};
  listener::ListenerEvents events;
  events.queue_empty = [](const listener::QueueListener&, int) {
    return listener::IdleDecision{.stop = true};
  };
  auto listener = listener::QueueListener::Create(
      options, events,
      [&stage]() -> absl::StatusOr<std::unique_ptr<listener::Subscriber>> {
        return std::make_unique<TimedSubscriber>(&stage);
      },
      store->get(), &bus, base::RealClock());
  Check(listener.status());
  Check((*listener)->Start());
  std::vector<double> micros;
  for (int round = 0; round < rounds; ++round) {
    micros.push_back(Measure(**listener, **store, bus, queue, stage));
  }
  Check((*listener)->Stop(absl::InfiniteDuration()));
  std::sort(micros.begin(), micros.end());
  const auto at = [&](double share) {
    return micros[static_cast<size_t>(share * static_cast<double>(micros.size() - 1))];
  };
  std::printf("{\"rounds\":%d,\"p50_us\":%.0f,\"p99_us\":%.0f,\"max_us\":%.0f}\n", rounds, at(0.5),
              at(0.99), at(1));
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  int rounds = 2000;
  const bool is_usage = argc == 1 || (argc == 3 && absl::string_view(argv[1]) == "--rounds" &&
                                      absl::SimpleAtoi(argv[2], &rounds) && rounds > 0);
  if (!is_usage) muster::Die("usage: wake_latency [--rounds N]");
  muster::Run(rounds);
  return 0;
}
