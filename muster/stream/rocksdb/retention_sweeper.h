// SPDX-License-Identifier: Apache-2.0

// RetentionSweeper: the thread that removes events whose retention is over.
//
// It sleeps until the first partition is due, or for ever while none is: an idle store costs
// nothing. A partition is due when its oldest event has been there for its retention and 1/64 of
// that more, or when it holds more bytes than it may; it then loses all that is over at once, with
// one write. So there are at most 64 such writes in a retention, and 16 while max_bytes are
// appended.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"

namespace muster::stream::rocksdb {

class PartitionLog;

// Thread-safe. Holds one entry for each partition that waits.
class RetentionSweeper {
 public:
  // `clock` is not owned.
  explicit RetentionSweeper(base::Clock* clock);
  // Ends the thread, after the sweep that it is in.
  ~RetentionSweeper();
  RetentionSweeper(const RetentionSweeper&) = delete;
  RetentionSweeper& operator=(const RetentionSweeper&) = delete;

  // Has `log` swept at `due`, once, or earlier if that was asked for before.
  void Schedule(const std::shared_ptr<PartitionLog>& log, absl::Time due) ABSL_LOCKS_EXCLUDED(mu_);
  void Forget(const std::shared_ptr<PartitionLog>& log) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // The next that is due, taken from the list; null: stop.
  std::shared_ptr<PartitionLog> Await() ABSL_LOCKS_EXCLUDED(mu_);

  base::Clock* const clock_;  // not owned
  base::Mutex mu_;
  base::CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  // Shared with the store and the readers: a sweep may outlast the stream.
  std::map<std::shared_ptr<PartitionLog>, absl::Time> due_ ABSL_GUARDED_BY(mu_);
  std::set<std::pair<absl::Time, std::shared_ptr<PartitionLog>>> order_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;  // last: runs Run
};

}  // namespace muster::stream::rocksdb
