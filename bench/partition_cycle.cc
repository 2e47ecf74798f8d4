// SPDX-License-Identifier: Apache-2.0

// What a large group of members asks of the store of its ownership records: requests, bytes and
// time of a cycle, races that were lost, and the time until the partitions are even again after a
// member has joined and after one has left.
//
//   partition_cycle [--partitions N] [--members N] [--cycles N] [--url nats://HOST:PORT]
//
// All members are in this process and share one store: embedded, or the key-value bucket of a NATS
// server. They have the settings that they have by default, and no work but to count what they own.
// Prints one line of JSON.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "muster/backend/backend.h"
#include "muster/base/clock.h"
#include "muster/os/temp_dir.h"
#include "muster/partition/partition_member.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster {
namespace {

using std::chrono::steady_clock;

[[noreturn]] void Die(absl::string_view why) {
  std::fprintf(stderr, "partition_cycle: %.*s\n", static_cast<int>(why.size()), why.data());
  std::_Exit(1);
}

template <typename T>
T Need(absl::StatusOr<T> value) {
  if (!value.ok()) Die(value.status().ToString());
  return *std::move(value);
}

struct Totals {
  int64_t reads = 0;
  int64_t writes = 0;
  int64_t bytes = 0;
  int64_t micros = 0;
  int64_t cycles = 0;
  int64_t races = 0;

  Totals operator-(const Totals& other) const {
    return {reads - other.reads,   writes - other.writes, bytes - other.bytes,
            micros - other.micros, cycles - other.cycles, races - other.races};
  }
};

// Counts what passes. Thread-safe.
class MeteredStore final : public sync::OptimisticSyncStore {
 public:
  explicit MeteredStore(sync::OptimisticSyncStore* store) : store_(store) {}

  absl::StatusOr<sync::VersionedData> Get(absl::string_view key) override {
    const auto began = steady_clock::now();
    absl::StatusOr<sync::VersionedData> read = store_->Get(key);
    ++reads_;
    if (read.ok()) bytes_ += static_cast<int64_t>(read->data.size());
    Took(began);
    return read;
  }
  absl::StatusOr<bool> TryWrite(absl::string_view key, absl::string_view data,
                                uint64_t version) override {
    const auto began = steady_clock::now();
    absl::StatusOr<bool> written = store_->TryWrite(key, data, version);
    ++writes_;
    bytes_ += static_cast<int64_t>(data.size());
    Took(began);
    return written;
  }
  absl::StatusOr<bool> TryDelete(absl::string_view key, uint64_t version) override {
    ++writes_;
    return store_->TryDelete(key, version);
  }

  Totals totals() const {
    return {.reads = reads_, .writes = writes_, .bytes = bytes_, .micros = micros_};
  }

 private:
  void Took(steady_clock::time_point began) {
    micros_ +=
        std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - began).count();
  }

  sync::OptimisticSyncStore* const store_;  // not owned
  std::atomic<int64_t> reads_ = 0;
  std::atomic<int64_t> writes_ = 0;
  std::atomic<int64_t> bytes_ = 0;
  std::atomic<int64_t> micros_ = 0;
};

// A member that counts what it owns, and hands it over at once.
class BenchMember final : public partition::PartitionWork {
 public:
  BenchMember(const partition::MemberOptions& options, sync::OptimisticSyncStore* store) {
    member_ =
        Need(partition::PartitionMember::Start(options, store, this, base::RealClock(), nullptr));
    started_ = true;
    started_.notify_all();
  }
  ~BenchMember() override { member_->Stop(); }

  void OnAssigned(int, int64_t) override { ++owned_; }
  void OnDraining(int partition, int64_t epoch, absl::Duration) override {
    started_.wait(false);
    member_->Drained(partition, epoch);
  }
  void OnRevoked(int, int64_t) override { --owned_; }

  int owned() const { return owned_; }
  partition::MemberCounts counts() const { return member_->counts(); }

 private:
  std::atomic<int> owned_ = 0;
  std::atomic<bool> started_ = false;
  std::unique_ptr<partition::PartitionMember> member_;
};

class Group {
 public:
  Group(int partitions, sync::OptimisticSyncStore* store)
      : partitions_(partitions), store_(store) {}

  void Join() {
    const partition::MemberOptions options{.group = "bench",
                                           .member = absl::StrCat("processor-", 1000 + next_++),
                                           .partitions = partitions_};
    members_.push_back(std::make_unique<BenchMember>(options, &store_));
  }
  void LeaveOne() { members_.pop_back(); }
  // Returns how many seconds it took.
  double AwaitEven() {
    const auto began = steady_clock::now();
    while (!IsEven()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return std::chrono::duration<double>(steady_clock::now() - began).count();
  }
  Totals totals() const {
    Totals totals = store_.totals();
    for (const auto& member : members_) {
      totals.cycles += member->counts().cycles;
      totals.races += member->counts().races;
    }
    return totals;
  }
  // What the group does while `cycles` pass, for each member on average.
  Totals Rest(int cycles) {
    const Totals before = totals();
    const auto enough = static_cast<int64_t>(members_.size()) * cycles;
    while ((totals() - before).cycles < enough) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return totals() - before;
  }

 private:
  bool IsEven() const {
    const int quota = partitions_ / static_cast<int>(members_.size());
    int sum = 0;
    for (const auto& member : members_) {
      const int owned = member->owned();
      if (owned < quota || owned > quota + 1) return false;
      sum += owned;
    }
    return sum == partitions_;
  }

  const int partitions_;
  MeteredStore store_;
  int next_ = 0;
  std::vector<std::unique_ptr<BenchMember>> members_;
};

struct Setup {
  int partitions = 10'000;
  int members = 10;
  int cycles = 3;
  std::string url;
};

void Print(absl::string_view name, const Totals& totals) {
  const auto cycles = static_cast<double>(std::max<int64_t>(totals.cycles, 1));
  std::printf(
      ",\"%.*s\":{\"reads\":%.1f,\"writes\":%.1f,\"kib\":%.0f,\"store_ms\":%.0f,"
      "\"races\":%.2f}",
      static_cast<int>(name.size()), name.data(), static_cast<double>(totals.reads) / cycles,
      static_cast<double>(totals.writes) / cycles,
      static_cast<double>(totals.bytes) / cycles / 1024,
      static_cast<double>(totals.micros) / cycles / 1000,
      static_cast<double>(totals.races) / cycles);
}

void Measure(const Setup& setup) {
  const auto dir = os::TempDir();
  const backend::DataDirUrls urls(dir.path());
  backend::Backends backends;
  const auto store = Need(backends.OpenSyncStore(setup.url.empty() ? urls.sync : setup.url));
  Group group(setup.partitions, store.get());
  for (int m = 0; m < setup.members; ++m) group.Join();
  const double started = group.AwaitEven();
  const Totals fresh = group.Rest(setup.cycles);
  group.Join();
  const double joined = group.AwaitEven();
  const Totals after_join = group.Rest(setup.cycles);
  group.LeaveOne();
  const double left = group.AwaitEven();
  std::printf(
      "{\"partitions\":%d,\"members\":%d,\"even_after_start_s\":%.1f,"
      "\"even_after_join_s\":%.1f,\"even_after_leave_s\":%.1f",
      setup.partitions, setup.members, started, joined, left);
  Print("cycle", fresh);
  Print("cycle_after_join", after_join);
  std::printf("}\n");
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  muster::Setup setup;
  for (int i = 1; i < argc; i += 2) {
    const absl::string_view name = argv[i];
    const bool has_value = i + 1 < argc;
    int* const number = name == "--partitions" ? &setup.partitions
                        : name == "--members"  ? &setup.members
                        : name == "--cycles"   ? &setup.cycles
                                               : nullptr;
    if (name == "--url" && has_value) {
      setup.url = argv[i + 1];
    } else if (number == nullptr || !has_value || !absl::SimpleAtoi(argv[i + 1], number) ||
               *number < 1) {
      muster::Die("usage: partition_cycle [--partitions N] [--members N] [--cycles N] [--url URL]");
    }
  }
  muster::Measure(setup);
}
