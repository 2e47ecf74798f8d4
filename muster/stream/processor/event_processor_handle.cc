// SPDX-License-Identifier: Apache-2.0

// The handler threads of an EventProcessor: they call the handler, and close partitions.
#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"
#include "muster/stream/processor/event_processor.h"
#include "muster/stream/processor/session.h"

namespace muster::stream::processor {
namespace {

// Events that a thread handles of one partition before it looks for another.
constexpr int kTurn = 64;
// The processor whose handler the thread calls; for Stop.
thread_local const EventProcessor* handled_by = nullptr;

template <typename Call>
absl::Status Guarded(Call call) {
  try {
    return call();
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("the handler threw: ", e.what()));
  } catch (...) {
    return absl::InternalError("the handler threw something that is no std::exception");
  }
}

}  // namespace

bool EventProcessor::IsHandlerThread() const { return handled_by == this; }

void EventProcessor::RunHandler() {
  handled_by = this;
  while (const SessionPtr session = AwaitWork()) {
    if (session->closing()) {
      CloseSession(session);
    } else {
      Work(session.get());
    }
  }
}

EventProcessor::SessionPtr EventProcessor::AwaitWork() {
  base::MutexLock lock(&mu_);
  for (;;) {
    absl::Duration next = absl::InfiniteDuration();
    SessionPtr session = TakeWorkLocked(clock_->Monotonic(), &next);
    if (session != nullptr) return session;
    const bool none = std::all_of(sessions_.begin(), sessions_.end(),
                                  [](const SessionPtr& at) { return at == nullptr; });
    if (member_left_ && none) return nullptr;
    clock_->WaitUntil(&work_wake_, &mu_, next);
  }
}

EventProcessor::SessionPtr EventProcessor::TakeWorkLocked(absl::Duration now,
                                                          absl::Duration* next) {
  for (size_t i = 0; i < sessions_.size(); ++i) {
    const size_t at = (work_turn_ + i) % sessions_.size();
    const SessionPtr& session = sessions_[at];
    if (session == nullptr || !IsDueLocked(*session, now, next)) continue;
    session->state.handling = true;
    work_turn_ = at + 1;
    work_wake_.NotifyOne();  // there may be more
    return session;
  }
  return nullptr;
}

bool EventProcessor::IsDueLocked(const Session& session, absl::Duration now,
                                 absl::Duration* next) const {
  const Session::State& state = session.state;
  if (state.handling) return false;
  // A fetcher still reads for it.
  if (session.closing()) return !state.fetching;
  if (!state.open) return false;
  if (!state.initialized) return true;
  const absl::Duration due =
      std::max(state.handle_at,
               state.events.empty() ? state.idle_since + options_.max_wait : absl::ZeroDuration());
  if (due <= now) return true;
  *next = std::min(*next, due);
  return false;
}

void EventProcessor::Work(Session* session) {
  Initialize(session);
  HandleEvents(session);
  base::MutexLock lock(&mu_);
  session->state.handling = false;
  if (session->closing()) work_wake_.NotifyAll();
  if (!session->state.fetching && HasRoomLocked(*session)) fetch_wake_.NotifyOne();
}

void EventProcessor::Initialize(Session* session) {
  {
    base::MutexLock lock(&mu_);
    if (std::exchange(session->state.initialized, true)) return;
  }
  const absl::Status status = Guarded([&] {
    handler_->OnPartitionInitializing(*session);
    return absl::OkStatus();
  });
  if (status.ok()) return;
  Tell({.partition = session->partition(),
        .operation = ProcessorError::Operation::kHandle,
        .status = status});
}

void EventProcessor::HandleEvents(Session* session) {
  for (int i = 0; i < kTurn && !session->closing(); ++i) {
    std::optional<Event> event;
    {
      base::MutexLock lock(&mu_);
      Session::State& state = session->state;
      const bool waited = clock_->Monotonic() >= state.idle_since + options_.max_wait;
      if (state.events.empty() && !waited) return;
      if (!state.events.empty()) {
        event = std::move(state.events.front());
        state.events.pop_front();
        state.bytes -= event->body.size() + event->key.size() + 1;
      }
    }
    if (HandleOne(session, event.has_value() ? &*event : nullptr)) continue;
    base::MutexLock lock(&mu_);
    if (!event.has_value() || session->closing()) return;
    session->state.bytes += event->body.size() + event->key.size() + 1;
    session->state.events.push_front(*std::move(event));
    return;
  }
}

bool EventProcessor::HandleOne(Session* session, const Event* event) {
  const absl::Status status = Guarded([&] { return handler_->OnEvent(*session, event); });
  {
    base::MutexLock lock(&mu_);
    session->state.idle_since = clock_->Monotonic();
    if (status.ok()) {
      if (event != nullptr) ++counts_.handled;
      session->state.attempts = 0;
      return true;
    }
    // A checkpoint that is refused since the partition is on its way is no failure: the event
    // comes again, here or elsewhere.
    const bool refused = absl::IsAborted(status) || absl::IsFailedPrecondition(status);
    if (refused && session->closing()) return false;
    ++counts_.failures;
  }
  Tell({.partition = session->partition(),
        .operation = ProcessorError::Operation::kHandle,
        .status = status,
        .event = event});
  return DecideAfterFailure(session, status, event);
}

bool EventProcessor::DecideAfterFailure(Session* session, const absl::Status& status,
                                        const Event* event) {
  if (event == nullptr) return true;
  const FailureOptions& failure = options_.failure;
  {
    base::MutexLock lock(&mu_);
    Session::State& state = session->state;
    ++state.attempts;
    const bool again =
        failure.then == FailureOptions::Then::kRetry || state.attempts < failure.attempts;
    if (!again && failure.then == FailureOptions::Then::kSkip) {
      state.attempts = 0;
      ++counts_.skipped;
      return true;
    }
    state.handle_at =
        clock_->Monotonic() +
        base::ExponentialBackoff(state.attempts, failure.min_backoff, failure.max_backoff);
    if (again) return false;
    state.handle_at = absl::InfiniteDuration();  // the event stays for the next owner
  }
  Fail(base::Annotate(
      status, absl::StrCat("partition ", session->partition(), ", offset ", event->offset)));
  return false;
}

void EventProcessor::CloseSession(const SessionPtr& session) {
  CloseReason reason = CloseReason::kLost;
  bool initialized = false;
  partition::PartitionMember* member = nullptr;
  {
    base::MutexLock lock(&mu_);
    reason = session->state.reason;
    initialized = session->state.initialized;
    member = member_.get();
  }
  if (initialized) {
    const absl::Status status = Guarded([&] {
      handler_->OnPartitionClosing(*session, reason);
      return absl::OkStatus();
    });
    if (!status.ok()) {
      Tell({.partition = session->partition(),
            .operation = ProcessorError::Operation::kHandle,
            .status = status});
    }
  }
  session->closed_ = true;
  const int partition = session->partition();
  bool drained = false;
  {
    base::MutexLock lock(&mu_);
    SessionPtr& at = sessions_[static_cast<size_t>(partition)];
    at = nullptr;
    // What has come meanwhile counts.
    drained = session->state.reason != CloseReason::kReplayed;
    int64_t next = drained ? 0 : session->epoch();
    const auto waiting = next_epochs_.find(partition);
    if (waiting != next_epochs_.end()) {
      next = waiting->second;
      next_epochs_.erase(waiting);
    }
    if (next != 0) at = MakeSession(partition, next);
    fetch_wake_.NotifyAll();
    work_wake_.NotifyAll();
  }
  if (drained) member->Drained(partition, session->epoch());
}

void EventProcessor::Tell(const ProcessorError& error) {
  if (error.events_lost > 0) {
    base::MutexLock lock(&mu_);
    counts_.events_lost += error.events_lost;
  }
  base::MutexLock lock(&tell_mu_);
  const absl::Status status = Guarded([&] {
    handler_->OnError(error);
    return absl::OkStatus();
  });
  base::LogUnlessOk(base::kWarning, "an error handler failed", status,
                    {{"stream", options_.stream}, {"group", options_.group}});
}

}  // namespace muster::stream::processor
