// SPDX-License-Identifier: Apache-2.0

// SlowItems: warns of items that have been with their handler for long, while there is time to act.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/handler/health_troubles.h"
#include "muster/job/job.h"

namespace muster::processor {

// After this time the first warning comes where the job names neither a deadline nor a promise.
inline constexpr absl::Duration kWarnUnlessPromised = absl::Seconds(30);

// How long one call of a job's handler may take.
struct ItemTime {
  absl::Duration warn_after = kWarnUnlessPromised;
  // The handler's deadline. Infinite: the handler has none.
  absl::Duration deadline = absl::InfiniteDuration();
  // Whether the deadline ends the handler's work. False: the handler is code of this process, which
  // nothing can end.
  bool is_ended = false;
};

// The warning comes at half of the deadline, or at half of the promised latency if that is sooner.
// The deadline itself is the job's alone: an item must not live or die by what one processor
// happened to measure or by what a batch as a whole was promised.
ItemTime ItemTimeOf(const job::JobDefinition& job);

// What a person calls the handler of a job: the program and its arguments, the server, the name.
std::string HandlerInWords(const job::HandlerSpec& handler);

// One call of a handler.
struct SlowItem {
  std::string job;
  std::string item;  // WorkItem::id: batch and index
  std::string handler;
  ItemTime time;
  std::shared_ptr<handler::HealthTroubles> health;  // outlives its job's workers; null: none
};

// Thread-safe. One thread serves all workers of a process. It keeps one entry for each running
// call, so at most one for each worker.
class SlowItems {
 public:
  // `clock` is not owned.
  explicit SlowItems(base::Clock* clock);
  // No call runs any more.
  ~SlowItems();
  SlowItems(const SlowItems&) = delete;
  SlowItems& operator=(const SlowItems&) = delete;

  // A call that begins now and ends with this object. After time.warn_after, and again after each
  // doubling of that time, the log names it; until it ends, it is a trouble of `health`.
  class Call {
   public:
    // `items` is not owned; null: the call is not watched.
    Call(SlowItems* items, SlowItem item);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    SlowItems* const items_;
    uint64_t id_ = 0;
  };

 private:
  struct Entry {
    SlowItem item;
    absl::Duration begun;
    absl::Duration due;  // of the next warning
  };

  struct Warning {
    std::string job;
    std::string item;
    std::string why;
  };

  uint64_t Begin(SlowItem item) ABSL_LOCKS_EXCLUDED(mu_);
  void End(uint64_t id) ABSL_LOCKS_EXCLUDED(mu_);
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // Blocks until a warning is due, and notes the troubles. Empty: the object is being destroyed.
  std::vector<Warning> AwaitDue() ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<Warning> TakeDueLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Clock* const clock_;  // not owned
  base::Mutex mu_;
  base::CondVar changed_;
  std::map<uint64_t, Entry> entries_ ABSL_GUARDED_BY(mu_);
  uint64_t last_id_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Duration wakes_ ABSL_GUARDED_BY(mu_) = absl::InfiniteDuration();
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace muster::processor
