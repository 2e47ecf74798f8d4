// SPDX-License-Identifier: Apache-2.0

// A partition's hand-over between two processors of a group, with the settings that they have by
// default: from when the owner consents, and closes the partition, until the next owner handles the
// partition's next event.
//
//   hand_over [--rounds N] [--url nats://HOST:PORT]
//
// In each round a second processor joins the one that owns 16 partitions, gets 8 of them, and
// leaves. A producer feeds all partitions meanwhile, an event a millisecond. Without a URL, streams
// and records are embedded. Prints one line of JSON:
// {"hand_overs":40,"p50_ms":…,"p90_ms":…,"max_ms":…}.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "muster/backend/backend.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/os/temp_dir.h"
#include "muster/stream/event_producer.h"
#include "muster/stream/processor/event_processor.h"

namespace muster {
namespace {

using Instant = std::chrono::steady_clock::time_point;
using stream::processor::CloseReason;
using stream::processor::EventProcessor;
using stream::processor::PartitionContext;

constexpr int kPartitions = 16;
constexpr char kStream[] = "hand-over";

[[noreturn]] void Die(absl::string_view why) {
  std::fprintf(stderr, "hand_over: %.*s\n", static_cast<int>(why.size()), why.data());
  std::_Exit(1);
}

template <typename T>
T Need(absl::StatusOr<T> value) {
  if (!value.ok()) Die(value.status().ToString());
  return *std::move(value);
}

// When each partition was closed by the first processor, and what that took until the second one's
// first event. Thread-safe.
class Board {
 public:
  void Closed(int partition) {
    base::MutexLock lock(&mu_);
    closed_[partition] = std::chrono::steady_clock::now();
  }
  void Handled(int partition) {
    const Instant now = std::chrono::steady_clock::now();
    base::MutexLock lock(&mu_);
    const auto closed = closed_.find(partition);
    if (closed == closed_.end()) return;
    took_.push_back(std::chrono::duration<double, std::milli>(now - closed->second).count());
    closed_.erase(closed);
    changed_.NotifyAll();
  }
  void AwaitCount(size_t n) {
    base::MutexLock lock(&mu_);
    while (took_.size() < n) changed_.Wait(&mu_);
  }
  std::vector<double> took() {
    base::MutexLock lock(&mu_);
    return took_;
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  std::map<int, Instant> closed_ ABSL_GUARDED_BY(mu_);
  std::vector<double> took_ ABSL_GUARDED_BY(mu_);
};

class Handler final : public stream::processor::EventHandler {
 public:
  Handler(Board* board, bool gives) : board_(board), gives_(gives) {}

  absl::Status OnEvent(PartitionContext& partition, const stream::Event* event) override {
    if (!gives_) board_->Handled(partition.partition());
    return event->offset % 100 == 0 ? partition.UpdateCheckpoint(*event) : absl::OkStatus();
  }
  void OnError(const stream::processor::ProcessorError&) override {}
  void OnPartitionClosing(PartitionContext& partition, CloseReason reason) override {
    if (gives_ && reason == CloseReason::kHandedOver) board_->Closed(partition.partition());
  }

 private:
  Board* const board_;  // not owned
  const bool gives_;
};

void Measure(int rounds, const std::string& url) {
  const auto dir = os::TempDir();
  const backend::DataDirUrls urls(dir.path());
  backend::Backends backends;
  base::Clock* const clock = base::RealClock();
  const auto events = Need(backends.OpenEventStreamStore(url.empty() ? urls.stream : url,
                                                         backend::Mode::kReadWrite, clock));
  const auto sync = Need(backends.OpenSyncStore(url.empty() ? urls.sync : url));
  if (const absl::Status made = events->Create(kStream, {.partitions = kPartitions}); !made.ok()) {
    Die(made.ToString());
  }
  std::atomic<bool> done = false;
  std::thread feeding([&] {
    const auto producer = Need(stream::EventProducer::Open(events.get(), kStream, {}, clock));
    for (int i = 0; !done; ++i) {
      Need(producer->Send({.body = "x"}, i % kPartitions));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  Board board;
  const stream::processor::ProcessorStores stores{.events = events.get(), .sync = sync.get()};
  Handler gives(&board, true);
  const auto first = Need(EventProcessor::Start(
      {.stream = kStream, .group = "bench", .member = "first"}, stores, &gives, clock));
  while (first->counts().owned < kPartitions) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (int round = 1; round <= rounds; ++round) {
    Handler takes(&board, false);
    const auto second = Need(
        EventProcessor::Start({.stream = kStream, .group = "bench", .member = absl::StrCat(round)},
                              stores, &takes, clock));
    board.AwaitCount(static_cast<size_t>(round * kPartitions / 2));
    second->Stop();
    while (first->counts().owned < kPartitions) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  done = true;
  feeding.join();
  std::vector<double> took = board.took();
  std::sort(took.begin(), took.end());
  std::printf("{\"hand_overs\":%zu,\"p50_ms\":%.1f,\"p90_ms\":%.1f,\"max_ms\":%.1f}\n", took.size(),
              took[took.size() / 2], took[took.size() * 9 / 10], took.back());
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  int rounds = 5;
  std::string url;
  for (int i = 1; i + 1 < argc; i += 2) {
    const absl::string_view name = argv[i];
    if (name == "--url") {
      url = argv[i + 1];
    } else if (name != "--rounds" || !absl::SimpleAtoi(argv[i + 1], &rounds) || rounds < 1) {
      muster::Die("usage: hand_over [--rounds N] [--url nats://HOST:PORT]");
    }
  }
  muster::Measure(rounds, url);
}
