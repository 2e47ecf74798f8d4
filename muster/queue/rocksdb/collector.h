// SPDX-License-Identifier: Apache-2.0

// Collector: a thread that gives the disk space of what is gone back, also where queues are idle.
//
// A put or a receive deletes a few expired messages of its own queue. The collector has all queues
// delete theirs, once each interval. What is deleted leaves its space behind until RocksDB merges
// the files that it is in, which an idle store never does. So when enough is gone, the collector
// has them merged (CompactionCare).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <thread>

#include "absl/time/time.h"
#include "muster/base/clock.h"

namespace muster::queue::rocksdb {

// Decides when to merge all files: when the messages that are gone since the last time are a
// quarter of those that are there, so that a merge rewrites four messages at most for each that it
// removes; and at least this many, which leaves 16 MiB behind where each has the 64 KiB of the
// queue gateway. Not thread-safe.
inline constexpr int64_t kMinGone = 256;

class CompactionCare {
 public:
  // `gone`: messages that were put and are not there any more; `stored`: those that are there. Both
  // as of the open.
  CompactionCare(int64_t gone, int64_t stored) : gone_(gone), most_stored_(stored) {}

  // What was in a queue that is deleted is in neither number: it shows in fewer that are stored,
  // and in fewer that are gone.
  bool IsDue(int64_t gone, int64_t stored) {
    most_stored_ = std::max(most_stored_, stored);
    return std::max(std::abs(gone - gone_), most_stored_ - stored) >=
           std::max(kMinGone, stored / 4);
  }
  void Done(int64_t gone, int64_t stored) { *this = CompactionCare(gone, stored); }

 private:
  int64_t gone_;
  int64_t most_stored_;
};

class Collector {
 public:
  // `collect` is called by the thread, once each interval; it returns soon once `cancelled` is set.
  using Collect = std::function<void(std::atomic<bool>* cancelled)>;

  // `clock` is not owned.
  Collector(base::Clock* clock, absl::Duration interval, Collect collect);
  // Cancels a call, and waits for its end.
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

 private:
  std::atomic<bool> cancelled_ = false;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace muster::queue::rocksdb
