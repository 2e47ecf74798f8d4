// SPDX-License-Identifier: Apache-2.0

// The fetchers of an EventProcessor: they open partitions and read ahead.
#include <algorithm>
#include <utility>

#include "muster/base/retry.h"
#include "muster/base/status.h"
#include "muster/stream/processor/event_processor.h"
#include "muster/stream/processor/session.h"

namespace muster::stream::processor {
namespace {

// A fetcher that has a partition for itself waits so long for an event.
constexpr absl::Duration kLongWait = absl::Seconds(1);
// One that has several waits longer for those that have been idle.
constexpr absl::Duration kShortWait = absl::Milliseconds(20);
constexpr absl::Duration kIdleWait = absl::Milliseconds(250);
// After a failure of a store.
constexpr absl::Duration kMinFetchBackoff = absl::Milliseconds(100);
constexpr absl::Duration kMaxFetchBackoff = absl::Seconds(10);

}  // namespace

void EventProcessor::RunFetcher() {
  while (const SessionPtr session = AwaitFetch()) Fetch(session.get());
}

EventProcessor::SessionPtr EventProcessor::AwaitFetch() {
  base::MutexLock lock(&mu_);
  for (;;) {
    if (member_left_) return nullptr;
    absl::Duration next = absl::InfiniteDuration();
    SessionPtr session = TakeFetchLocked(clock_->Monotonic(), &next);
    if (session != nullptr) return session;
    clock_->WaitUntil(&fetch_wake_, &mu_, next);
  }
}

EventProcessor::SessionPtr EventProcessor::TakeFetchLocked(absl::Duration now,
                                                           absl::Duration* next) {
  for (size_t i = 0; i < sessions_.size(); ++i) {
    const size_t at = (fetch_turn_ + i) % sessions_.size();
    const SessionPtr& session = sessions_[at];
    if (session == nullptr || session->closing() || session->state.fetching) continue;
    Session::State& state = session->state;
    const absl::Duration due =
        HasRoomLocked(*session) ? state.fetch_at : std::max(state.fetch_at, state.look_at);
    if (due <= now) {
      state.fetching = true;
      fetch_turn_ = at + 1;
      // The wake-up may have been for another session: this one may have got room in the middle of
      // its handler's turn, which wakes no fetcher.
      fetch_wake_.NotifyOne();
      return session;
    }
    *next = std::min(*next, due);
  }
  return nullptr;
}

// Half of the room at least, so that a read brings many events at once.
bool EventProcessor::HasRoomLocked(const Session& session) const {
  const Session::State& state = session.state;
  if (!state.open) return true;
  return 2 * state.events.size() <= static_cast<size_t>(options_.prefetch_events) &&
         2 * state.bytes <= options_.prefetch_bytes;
}

void EventProcessor::Fetch(Session* session) {
  bool open = false;
  bool look = false;
  {
    base::MutexLock lock(&mu_);
    open = session->state.open;
    look = open && clock_->Monotonic() >= session->state.look_at;
  }
  if (!open) return EndFetch(session, ProcessorError::Operation::kOpen, OpenSession(session));
  if (look) Look(session);
  EndFetch(session, ProcessorError::Operation::kRead, ReadAhead(session));
}

absl::Status EventProcessor::OpenSession(Session* session) {
  MUSTER_RETURN_IF_ERROR(session->source().Open());
  base::MutexLock lock(&mu_);
  session->begins_at_ = session->source().next();
  session->state.open = true;
  session->state.idle_since = clock_->Monotonic();
  session->state.look_at = clock_->Monotonic() + options_.replay_check;
  work_wake_.NotifyOne();
  return absl::OkStatus();
}

// While the sync store is away, events are still read and handled, as long as the lease lasts.
void EventProcessor::Look(Session* session) {
  const absl::StatusOr<bool> replayed = session->source().WasReplayed();
  if (!replayed.ok()) {
    Tell({.partition = session->partition(),
          .operation = ProcessorError::Operation::kOpen,
          .status = replayed.status()});
  }
  base::MutexLock lock(&mu_);
  session->state.look_at = clock_->Monotonic() + options_.replay_check;
  if (!replayed.value_or(false) || session->closing()) return;
  ++counts_.replays;
  CloseLocked(session, CloseReason::kReplayed);
}

absl::Status EventProcessor::ReadAhead(Session* session) {
  int max_events = 0;
  absl::Duration wait = kLongWait;
  {
    base::MutexLock lock(&mu_);
    const Session::State& state = session->state;
    if (session->closing() || !HasRoomLocked(*session)) return absl::OkStatus();
    // Before the first event, any may be as large as they can be.
    const size_t largest = state.largest == 0 ? kMaxBodyBytes : state.largest;
    const size_t by_bytes = std::max<size_t>(1, (options_.prefetch_bytes - state.bytes) / largest);
    const size_t by_count = static_cast<size_t>(options_.prefetch_events) - state.events.size();
    max_events =
        static_cast<int>(std::min({by_bytes, by_count, static_cast<size_t>(kMaxReadEvents)}));
    if (partitions_ > options_.fetch_threads) {
      wait = base::ExponentialBackoff(state.idle_reads + 1, kShortWait, kIdleWait);
    }
    wait = std::min(wait, options_.replay_check);
  }
  MUSTER_ASSIGN_OR_RETURN(std::vector<Event> events, session->source().Read(max_events, wait));
  base::MutexLock lock(&mu_);
  if (session->source().moved() && !session->closing()) {
    CloseLocked(session, CloseReason::kReplayed);
    return absl::OkStatus();
  }
  Session::State& state = session->state;
  state.idle_reads = events.empty() ? state.idle_reads + 1 : 0;
  if (events.empty() || session->closing()) return absl::OkStatus();
  state.largest = 0;
  for (Event& event : events) {
    const size_t size = event.body.size() + event.key.size() + 1;
    state.bytes += size;
    state.largest = std::max(state.largest, size);
    state.events.push_back(std::move(event));
  }
  work_wake_.NotifyOne();
  return absl::OkStatus();
}

void EventProcessor::EndFetch(Session* session, ProcessorError::Operation operation,
                              const absl::Status& status) {
  const bool lost = absl::IsFailedPrecondition(status);  // a later owner has begun
  if (!status.ok() && !lost && !session->closing()) {
    Tell({.partition = session->partition(), .operation = operation, .status = status});
  }
  base::MutexLock lock(&mu_);
  Session::State& state = session->state;
  state.fetching = false;
  state.fetch_failures = status.ok() ? 0 : state.fetch_failures + 1;
  state.fetch_at = clock_->Monotonic();
  if (!status.ok()) {
    state.fetch_at +=
        base::ExponentialBackoff(state.fetch_failures, kMinFetchBackoff, kMaxFetchBackoff);
  }
  // The member notices it, too, and closes the session.
  if (lost) session->lost_ = true;
  if (session->closing()) work_wake_.NotifyAll();
  fetch_wake_.NotifyOne();
}

}  // namespace muster::stream::processor
