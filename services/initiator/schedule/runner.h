// SPDX-License-Identifier: Apache-2.0

// ScheduleRunner: submits the occurrences of a mesh's schedules, when they are due.
//
//   sleep until the next occurrence, or kLookInterval, or Wake
//     └─► directory ─► for each schedule that is due:
//           record ─► MakePlan ─► write ─► submit ─► write     each write by compare-and-set
//
// Each initiator has a runner, and all look after all schedules: the first to write the attempt
// submits, and the request id keeps any two from making two batches (muster/schedule/plan.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/schedule/calendar.h"
#include "muster/schedule/plan.h"
#include "muster/schedule/schedule_store.h"
#include "muster/v1/batch_service.pb.h"

namespace muster::initiator::schedule {

// Schedules that were made at another initiator are seen within this time, and so is a clock that
// was set. A look reads one record.
inline constexpr absl::Duration kLookInterval = absl::Seconds(10);
// A schedule whose next occurrence is far is read again after this time: an update whose initiator
// died before it could announce it is seen then.
inline constexpr absl::Duration kRecordInterval = absl::Minutes(10);
// A difference of the wall clock and the monotonic one that grows by more means that one was set.
inline constexpr absl::Duration kClockStep = absl::Seconds(1);

// Submits `content` under `header`, and answers the batch once it is durable as a whole. If a batch
// of the request id is there already, at any initiator, answers that one.
using Submit =
    std::function<absl::StatusOr<uint64_t>(const v1::SubmitHeader& header, std::string content)>;

// The header of a schedule's batches.
v1::SubmitHeader HeaderOf(const v1::ScheduleRecord& record, std::string request_id);

// What the runner has seen and done, for metrics.
struct ScheduleCounts {
  // Of the last look.
  int active = 0;
  int paused = 0;
  int with_problem = 0;
  // Occurrences that this runner has decided.
  int64_t submitted = 0;
  int64_t missed = 0;
  int64_t failed = 0;
};

// Thread-safe. One thread for all schedules: while the submission of one waits for a store, the
// others wait, too.
class ScheduleRunner {
 public:
  struct Dependencies {
    muster::schedule::ScheduleStore* store = nullptr;  // not owned
    base::Clock* clock = nullptr;                      // not owned
    // The id of the data directory; empty: this initiator is alone.
    std::string owner;
    Submit submit;
  };

  explicit ScheduleRunner(Dependencies dependencies) : deps_(std::move(dependencies)) {}
  ~ScheduleRunner() { Stop(); }
  ScheduleRunner(const ScheduleRunner&) = delete;
  ScheduleRunner& operator=(const ScheduleRunner&) = delete;

  // Begins; once.
  void Start();
  // Returns when nothing is being submitted any more. Stopping twice, or before starting, is fine.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);
  // The schedule was made or changed here.
  void Wake(absl::string_view name) ABSL_LOCKS_EXCLUDED(mu_);

  ScheduleCounts counts() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A schedule as the last look found it.
  struct Seen {
    std::string id;
    std::optional<muster::schedule::Calendar> calendar;  // nullopt: its record is not read yet
    uint64_t updates = 0;                                // that the record had then
    uint64_t announced = 0;                              // that the directory has said
    absl::Time look_again = absl::InfinitePast();
    absl::Duration no_record_since = absl::InfiniteDuration();  // monotonic
    bool paused = false;
    bool with_problem = false;
  };

  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // Does what is due; answers when the next is.
  absl::Time Look() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status FindSchedules() ABSL_LOCKS_EXCLUDED(mu_);
  void NoticeClockSteps();
  // Does what is due for one schedule, but submits one batch at most.
  absl::Status Advance(const v1::ScheduleEntry& entry, Seen* seen) ABSL_LOCKS_EXCLUDED(mu_);
  // One plan. True: look once more, at once.
  absl::StatusOr<bool> Step(const v1::ScheduleEntry& entry, Seen* seen);
  absl::Status Try(const v1::ScheduleEntry& entry, const v1::ScheduleRecord& record,
                   absl::Time occurrence);
  absl::Status LookAtLeftover(const v1::ScheduleEntry& entry, Seen* seen);
  void CountSchedules() ABSL_LOCKS_EXCLUDED(mu_);
  void CountOccurrences(int64_t submitted, int64_t missed, int64_t failed) ABSL_LOCKS_EXCLUDED(mu_);
  bool IsStopping() const ABSL_LOCKS_EXCLUDED(mu_);

  const Dependencies deps_;
  std::map<std::string, Seen> seen_;                 // by name; for the thread alone
  bool is_store_away_ = false;                       // likewise: the last look failed
  absl::Time clock_started_ = absl::InfinitePast();  // likewise: the wall time of monotonic zero

  mutable base::Mutex mu_;
  base::CondVar woken_;
  std::set<std::string> changed_ ABSL_GUARDED_BY(mu_);  // names that Wake was given
  bool is_stopping_ ABSL_GUARDED_BY(mu_) = false;
  ScheduleCounts counts_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;  // last: it uses the others
};

}  // namespace muster::initiator::schedule
