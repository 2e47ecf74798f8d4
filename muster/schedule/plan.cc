// SPDX-License-Identifier: Apache-2.0
#include "muster/schedule/plan.h"

#include <algorithm>
#include <deque>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/proto_time.h"
#include "muster/base/retry.h"
#include "muster/base/text.h"
#include "muster/rpc/status.h"
#include "muster/schedule/limits.h"

namespace muster::schedule {
namespace {

// A problem is one line of a list.
constexpr size_t kMaxProblemBytes = 512;

absl::Time TimeOf(const v1::ScheduleAttempt& attempt) {
  return base::FromProto(attempt.occurrence());
}

void SetProblem(absl::string_view problem, absl::Time now, v1::ScheduleRecord* record) {
  if (record->problem().empty()) *record->mutable_problem_since() = base::ToProto(now);
  record->set_problem(base::Printable(problem, kMaxProblemBytes));
}

void ClearProblem(v1::ScheduleRecord* record) {
  record->clear_problem();
  record->clear_problem_since();
}

void Decide(absl::Time occurrence, absl::Time now, v1::ScheduleRecord* record) {
  *record->mutable_decided() = base::ToProto(occurrence);
  if (record->spec().has_at()) *record->mutable_ended() = base::ToProto(now);
}

v1::CatchUp RuleOf(const v1::ScheduleRecord& record) {
  const v1::CatchUp rule = record.spec().catch_up();
  return rule == v1::CATCH_UP_UNSPECIFIED ? v1::CATCH_UP_ONCE : rule;
}

// What is due, as the rule takes it.
struct Due {
  std::optional<absl::Time> first;        // to be begun now
  std::optional<absl::Time> last_missed;  // the occurrences up to here are missed
  int64_t missed = 0;
};

Due FindDue(const v1::ScheduleRecord& record, const Calendar& calendar, absl::Time now) {
  const v1::CatchUp rule = RuleOf(record);
  const size_t room = rule == v1::CATCH_UP_ALL ? kMaxCaughtUp : 1;
  std::deque<absl::Time> kept;
  Due due;
  const auto drop_first = [&] {
    due.last_missed = kept.front();
    ++due.missed;
    kept.pop_front();
  };
  const absl::Time decided =
      std::max(base::FromProto(record.decided()),
               record.has_resumed() ? base::FromProto(record.resumed()) : absl::InfinitePast());
  const absl::Time since = calendar.is_once() ? decided : std::max(decided, now - kMaxLookBack);
  for (auto next = calendar.Next(since); next.has_value() && *next <= now;
       next = calendar.Next(*next)) {
    kept.push_back(*next);
    if (kept.size() > room) drop_first();
  }
  if (rule == v1::CATCH_UP_NONE && !kept.empty() && now - kept.front() > kOnTime) drop_first();
  if (!kept.empty()) due.first = kept.front();
  return due;
}

// Whether the attempt in hand is given up: a later occurrence is due, and the last try has ended
// with a refusal, or with any other error although it began after that. What became of a try that a
// death cut off is not known, so it is tried again first.
bool IsGivenUp(const v1::ScheduleRecord& record, const Calendar& calendar, absl::Time now) {
  const v1::ScheduleAttempt& attempt = record.attempt();
  if (!attempt.waits()) return false;
  if (calendar.is_once()) return now - base::FromProto(attempt.began()) >= kGiveUpAfter;
  if (RuleOf(record) == v1::CATCH_UP_ALL) return false;  // its turn comes
  const auto next = calendar.Next(TimeOf(attempt));
  if (!next.has_value() || *next > now) return false;
  return attempt.refused() || base::FromProto(attempt.tried()) >= *next;
}

void GiveUp(absl::Time now, v1::ScheduleRecord* record) {
  record->set_failed(record->failed() + 1);
  Decide(TimeOf(record->attempt()), now, record);
  record->clear_attempt();
}

void Miss(const Due& due, absl::Time now, v1::ScheduleRecord* record) {
  record->set_missed(record->missed() + due.missed);
  Decide(*due.last_missed, now, record);
  if (due.first.has_value() && RuleOf(*record) != v1::CATCH_UP_ALL) return;
  SetProblem(
      absl::StrCat("missed ", due.missed, due.missed == 1 ? " occurrence" : " occurrences",
                   ", the last one that of ",
                   absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", *due.last_missed, absl::UTCTimeZone())),
      now, record);
}

void Begin(absl::Time occurrence, absl::string_view owner, absl::Time now,
           v1::ScheduleRecord* record) {
  v1::ScheduleAttempt* const attempt = record->mutable_attempt();
  if (!attempt->has_occurrence()) *attempt->mutable_began() = base::ToProto(now);
  *attempt->mutable_occurrence() = base::ToProto(occurrence);
  attempt->set_owner(std::string(owner));
  *attempt->mutable_until() = base::ToProto(now + kTryTime);
  *attempt->mutable_tried() = base::ToProto(now);
  attempt->set_tries(attempt->tries() + 1);
  attempt->set_refused(false);
  attempt->set_waits(false);
}

// Nothing was done by then, or can have been: the batch needs another try, or the mesh's user. Any
// other error may come from a step after the batch was recorded.
bool IsRefusal(const absl::Status& status) {
  if (absl::IsResourceExhausted(status)) {
    // A full disk may be so after the batch was recorded.
    const std::optional<rpc::ErrorReason> reason = rpc::Reason(status);
    return reason.has_value() && reason->reason == "DRAIN_TOO_LONG";
  }
  return absl::IsNotFound(status) || absl::IsInvalidArgument(status) ||
         absl::IsFailedPrecondition(status) || absl::IsPermissionDenied(status);
}

}  // namespace

Plan MakePlan(const Calendar& calendar, absl::Time now, absl::string_view owner,
              v1::ScheduleRecord* record) {
  Plan plan;
  if (record->has_ended()) {
    plan.look_again = base::FromProto(record->ended()) + kKeepEnded;
    return plan;
  }
  const absl::Time next = calendar.Next(std::max(now, base::FromProto(record->decided())))
                              .value_or(absl::InfiniteFuture());
  plan.look_again = next;
  // It may be resumed at another initiator: who looks at each occurrence learns of it in time.
  if (record->paused()) return plan;
  if (record->has_attempt() && IsGivenUp(*record, calendar, now)) {
    GiveUp(now, record);
    plan.changed = true;
    plan.failed = 1;
    if (record->has_ended()) return plan;
  }
  if (record->has_attempt()) {
    const v1::ScheduleAttempt& attempt = record->attempt();
    const absl::Time until = base::FromProto(attempt.until());
    // Later ones come from a clock that was wrong.
    const bool is_ahead = until > now && until <= now + kMaxRetry;
    const bool is_taken = is_ahead && (attempt.waits() || attempt.owner() != owner);
    if (is_taken) {
      plan.look_again = std::min(until, next);
      return plan;
    }
    plan.occurrence = TimeOf(attempt);
  } else {
    const Due due = FindDue(*record, calendar, now);
    if (due.last_missed.has_value()) {
      Miss(due, now, record);
      plan.changed = true;
      plan.missed = due.missed;
    }
    plan.occurrence = due.first;
  }
  if (plan.occurrence.has_value()) {
    Begin(*plan.occurrence, owner, now, record);
    plan.changed = true;
  }
  return plan;
}

bool HasAttempt(const v1::ScheduleRecord& record, absl::Time occurrence) {
  return record.has_attempt() && TimeOf(record.attempt()) == occurrence;
}

bool NoteSubmitted(absl::Time occurrence, uint64_t batch, absl::Time now,
                   v1::ScheduleRecord* record) {
  if (!HasAttempt(*record, occurrence)) return false;
  record->clear_attempt();
  record->set_submitted(record->submitted() + 1);
  *record->mutable_last() = base::ToProto(occurrence);
  record->set_last_batch(batch);
  ClearProblem(record);
  Decide(occurrence, now, record);
  return true;
}

bool NoteRefused(absl::Time occurrence, const absl::Status& why, absl::Time now,
                 v1::ScheduleRecord* record) {
  if (!HasAttempt(*record, occurrence)) return false;
  v1::ScheduleAttempt* const attempt = record->mutable_attempt();
  const absl::Duration wait = std::clamp(rpc::RetryAfter(why).value_or(base::ExponentialBackoff(
                                             std::max(attempt->tries(), 1), kMinRetry, kMaxRetry)),
                                         kMinRetry, kMaxRetry);
  attempt->set_refused(IsRefusal(why));
  attempt->set_waits(true);
  *attempt->mutable_until() = base::ToProto(now + wait);
  SetProblem(why.message(), now, record);
  return true;
}

namespace {

// Until when all is decided once an attempt that waits is dropped: its occurrence may lie ahead of
// a clock that is behind, and has a request id that is used up.
absl::Time DecidedWithAttempt(const v1::ScheduleRecord& record, absl::Time now) {
  const absl::Time decided = std::max(now, base::FromProto(record.decided()));
  return record.has_attempt() ? std::max(decided, TimeOf(record.attempt())) : decided;
}

}  // namespace

void Pause(v1::ScheduleRecord* record) { record->set_paused(true); }

void Resume(absl::Time now, v1::ScheduleRecord* record) {
  if (!record->paused()) return;
  record->set_paused(false);
  *record->mutable_resumed() = base::ToProto(now);
  if (record->has_attempt() && !record->attempt().waits()) return;
  *record->mutable_decided() = base::ToProto(DecidedWithAttempt(*record, now));
  record->clear_attempt();
  const bool is_past = record->spec().has_at() && base::FromProto(record->spec().at()) <= now;
  if (!is_past || record->has_ended()) return;
  record->set_missed(record->missed() + 1);
  *record->mutable_ended() = base::ToProto(now);
  SetProblem("its time passed while it was paused", now, record);
}

absl::Status Update(const v1::ScheduleSpec& spec, absl::Time now, v1::ScheduleRecord* record) {
  if (record->has_ended()) {  // and may be removed at any moment
    return absl::FailedPreconditionError(
        absl::StrCat("schedule '", spec.name(), "' has ended; make another one"));
  }
  // A batch may come of it under its request id, and must be what the schedule says then.
  if (record->has_attempt() && !record->attempt().waits()) {
    return absl::UnavailableError(absl::StrCat("an occurrence of schedule '", spec.name(),
                                               "' is being submitted; try again",
                                               record->paused() ? " when it is resumed" : ""));
  }
  // An occurrence that was decided has a request id that is used up.
  const absl::Time decided = DecidedWithAttempt(*record, now);
  if (spec.has_at() && base::FromProto(spec.at()) <= decided) {
    return rpc::BadField("spec.at", "is past");
  }
  *record->mutable_spec() = spec;
  record->set_updates(record->updates() + 1);
  *record->mutable_decided() = base::ToProto(decided);
  *record->mutable_resumed() = base::ToProto(now);
  record->clear_attempt();
  ClearProblem(record);
  return absl::OkStatus();
}

std::string RequestIdOf(const v1::ScheduleRecord& record, absl::Time occurrence) {
  return absl::StrCat("schedule:", absl::BytesToHexString(record.id()), ":",
                      absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", occurrence, absl::UTCTimeZone()));
}

std::string RequestIdOf(const v1::ScheduleRecord& record, absl::string_view run_id) {
  return absl::StrCat("schedule:", absl::BytesToHexString(record.id()), ":run:", run_id);
}

std::optional<absl::Time> NextOf(const v1::ScheduleRecord& record, const Calendar& calendar,
                                 absl::Time now) {
  if (record.paused() || record.has_ended()) return std::nullopt;
  return calendar.Next(std::max(now, base::FromProto(record.decided())));
}

}  // namespace muster::schedule
