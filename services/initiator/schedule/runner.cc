// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/schedule/runner.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/failpoint.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/schedule/limits.h"

namespace muster::initiator::schedule {

using muster::schedule::Calendar;
using muster::schedule::Plan;
using muster::schedule::StoredSchedule;

v1::SubmitHeader HeaderOf(const v1::ScheduleRecord& record, std::string request_id) {
  const v1::ScheduleSpec& spec = record.spec();
  v1::SubmitHeader header;
  header.set_job(spec.job());
  header.set_request_id(std::move(request_id));
  if (spec.has_handler_version()) header.set_handler_version(spec.handler_version());
  header.set_tenant(spec.tenant());
  header.set_size_hint(record.content_bytes());
  if (spec.has_sla()) *header.mutable_sla() = spec.sla();
  *header.mutable_labels() = spec.labels();
  (*header.mutable_labels())[muster::schedule::kLabel] = spec.name();
  return header;
}

void ScheduleRunner::Start() {
  thread_ = std::thread([this] { Run(); });
}

void ScheduleRunner::Stop() {
  {
    base::MutexLock lock(&mu_);
    is_stopping_ = true;
    woken_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void ScheduleRunner::Wake(absl::string_view name) {
  base::MutexLock lock(&mu_);
  changed_.emplace(name);
  woken_.NotifyAll();
}

ScheduleCounts ScheduleRunner::counts() const {
  base::MutexLock lock(&mu_);
  return counts_;
}

bool ScheduleRunner::IsStopping() const {
  base::MutexLock lock(&mu_);
  return is_stopping_;
}

void ScheduleRunner::Run() {
  while (!IsStopping()) {
    const absl::Duration latest = deps_.clock->Monotonic() + kLookInterval;
    const absl::Duration deadline = std::min(latest, base::MonotonicAt(*deps_.clock, Look()));
    base::MutexLock lock(&mu_);
    while (changed_.empty() && !is_stopping_ && deps_.clock->Monotonic() < deadline) {
      deps_.clock->WaitUntil(&woken_, &mu_, deadline);
    }
  }
}

absl::Time ScheduleRunner::Look() {
  const absl::Status found = FindSchedules();
  if (!found.ok() && !is_store_away_) {
    base::LogUnlessOk(base::kWarning, "schedules cannot be read, and wait", found);
  }
  is_store_away_ = !found.ok();
  if (is_store_away_) return absl::InfiniteFuture();
  NoticeClockSteps();
  absl::Time next = absl::InfiniteFuture();
  for (auto& [name, seen] : seen_) {
    if (IsStopping()) break;
    if (seen.look_again <= deps_.clock->Now()) {
      v1::ScheduleEntry entry;
      entry.set_name(name);
      entry.set_id(seen.id);
      const absl::Status advanced = Advance(entry, &seen);
      if (!advanced.ok()) {
        base::LogUnlessOk(base::kWarning, "a schedule does not go on", advanced,
                          {{"schedule", name}});
        seen.look_again = deps_.clock->Now() + kLookInterval;
      }
    }
    next = std::min(next, seen.look_again);
  }
  CountSchedules();
  return next;
}

// When to look again is a time of the wall clock, and means nothing once that was set.
void ScheduleRunner::NoticeClockSteps() {
  const absl::Time started = deps_.clock->Now() - deps_.clock->Monotonic();
  const bool was_set = absl::AbsDuration(started - clock_started_) > kClockStep;
  clock_started_ = started;
  if (!was_set) return;
  for (auto& [name, seen] : seen_) seen.look_again = absl::InfinitePast();
}

absl::Status ScheduleRunner::FindSchedules() {
  // Before the look: what is changed after it is looked at next time.
  std::set<std::string> changed;
  {
    base::MutexLock lock(&mu_);
    changed.swap(changed_);
  }
  for (const std::string& name : changed) {
    if (const auto known = seen_.find(name); known != seen_.end()) {
      known->second.look_again = absl::InfinitePast();
    }
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<v1::ScheduleEntry> entries, deps_.store->List());
  std::map<std::string, Seen> seen;
  for (const v1::ScheduleEntry& entry : entries) {
    const auto known = seen_.find(entry.name());
    Seen& now = seen[entry.name()];
    if (known != seen_.end() && known->second.id == entry.id()) now = std::move(known->second);
    now.id = entry.id();
    // Another initiator has changed it, and it may occur sooner.
    if (now.announced != entry.updates()) now.look_again = absl::InfinitePast();
    now.announced = entry.updates();
  }
  seen_ = std::move(seen);
  return absl::OkStatus();
}

absl::Status ScheduleRunner::Advance(const v1::ScheduleEntry& entry, Seen* seen) {
  bool again = true;
  while (again && !IsStopping()) {
    MUSTER_ASSIGN_OR_RETURN(again, Step(entry, seen));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ScheduleRunner::Step(const v1::ScheduleEntry& entry, Seen* seen) {
  absl::StatusOr<StoredSchedule> stored = deps_.store->Read(entry);
  if (absl::IsNotFound(stored.status())) {
    MUSTER_RETURN_IF_ERROR(LookAtLeftover(entry, seen));
    return false;
  }
  MUSTER_RETURN_IF_ERROR(stored.status());
  if (!seen->calendar.has_value() || seen->updates != stored->record.updates()) {
    MUSTER_ASSIGN_OR_RETURN(seen->calendar, Calendar::Of(stored->record.spec()));
    seen->updates = stored->record.updates();
  }
  v1::ScheduleRecord& record = stored->record;
  const absl::Time now = deps_.clock->Now();
  const Plan plan = muster::schedule::MakePlan(*seen->calendar, now, deps_.owner, &record);
  seen->look_again = std::min(plan.look_again, now + kRecordInterval);
  seen->paused = record.paused();
  seen->with_problem = !record.problem().empty();
  if (!plan.changed) {
    if (record.has_ended() && plan.look_again <= now) {
      MUSTER_RETURN_IF_ERROR(deps_.store->Remove(entry));
      seen->look_again = absl::InfiniteFuture();
    }
    return false;
  }
  MUSTER_ASSIGN_OR_RETURN(const bool written, deps_.store->TryWrite(*stored));
  if (!written) return true;
  CountOccurrences(0, plan.missed, plan.failed);
  if (!plan.occurrence.has_value()) return false;
  MUSTER_FAILPOINT("schedule.after_begin");
  MUSTER_RETURN_IF_ERROR(Try(entry, record, *plan.occurrence));
  // Others come first: one that makes up for a thousand occurrences must not make them late.
  seen->look_again = absl::InfinitePast();
  return false;
}

absl::Status ScheduleRunner::Try(const v1::ScheduleEntry& entry, const v1::ScheduleRecord& record,
                                 absl::Time occurrence) {
  absl::StatusOr<std::string> content = deps_.store->Content(record);
  const absl::StatusOr<uint64_t> batch =
      content.ok()
          ? deps_.submit(HeaderOf(record, muster::schedule::RequestIdOf(record, occurrence)),
                         *std::move(content))
          : content.status();
  MUSTER_FAILPOINT("schedule.after_submit");
  bool noted = false;
  const auto note = [&](v1::ScheduleRecord* now) {
    const absl::Time time = deps_.clock->Now();
    // Another initiator may try it by now, for this one was paused: its try is under way.
    const bool is_mine = now->attempt().owner() == record.attempt().owner() &&
                         now->attempt().tries() == record.attempt().tries();
    noted = batch.ok()
                ? muster::schedule::NoteSubmitted(occurrence, *batch, time, now)
                : is_mine && muster::schedule::NoteRefused(occurrence, batch.status(), time, now);
    return noted;
  };
  const absl::Status changed = deps_.store->Change(entry, note).status();
  if (absl::IsNotFound(changed)) return absl::OkStatus();  // it was deleted meanwhile
  MUSTER_RETURN_IF_ERROR(changed);
  if (noted && batch.ok()) CountOccurrences(1, 0, 0);
  if (noted && record.attempt().tries() == 1) {  // the record keeps the problem
    base::LogUnlessOk(base::kWarning, "an occurrence of a schedule is refused, and tried again",
                      batch.status(), {{"schedule", entry.name()}});
  }
  return absl::OkStatus();
}

absl::Status ScheduleRunner::LookAtLeftover(const v1::ScheduleEntry& entry, Seen* seen) {
  const absl::Duration now = deps_.clock->Monotonic();
  seen->no_record_since = std::min(seen->no_record_since, now);
  const absl::Duration left = seen->no_record_since + muster::schedule::kLeftoverAge - now;
  // Its record is expected at any moment.
  seen->look_again = deps_.clock->Now() + std::min(left, kLookInterval);
  if (left > absl::ZeroDuration()) return absl::OkStatus();
  seen->look_again = absl::InfiniteFuture();
  return deps_.store->Remove(entry);
}

void ScheduleRunner::CountSchedules() {
  ScheduleCounts now;
  for (const auto& [name, seen] : seen_) {
    if (!seen.calendar.has_value()) continue;
    ++(seen.paused ? now.paused : now.active);
    now.with_problem += seen.with_problem ? 1 : 0;
  }
  base::MutexLock lock(&mu_);
  counts_.active = now.active;
  counts_.paused = now.paused;
  counts_.with_problem = now.with_problem;
}

void ScheduleRunner::CountOccurrences(int64_t submitted, int64_t missed, int64_t failed) {
  base::MutexLock lock(&mu_);
  counts_.submitted += submitted;
  counts_.missed += missed;
  counts_.failed += failed;
}

}  // namespace muster::initiator::schedule
