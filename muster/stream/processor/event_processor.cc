// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/processor/event_processor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/names.h"
#include "muster/base/status.h"
#include "muster/stream/processor/session.h"

namespace muster::stream::processor {
namespace {

partition::MemberOptions MemberOptionsOf(const ProcessorOptions& options, int partitions) {
  return {.group = GroupName(options.stream, options.group),
          .member = options.member,
          .partitions = partitions,
          .strategy = options.strategy,
          .interval = options.interval,
          .lease = options.lease,
          .grace = options.grace};
}

// A name that is made ends in what tells it from others, so it is cut at the other end.
ProcessorOptions WithMember(ProcessorOptions options, int partitions) {
  if (!options.member.empty()) return options;
  const std::string made = base::MakeInstanceId("events");
  const size_t most = partition::MaxMemberBytes(partitions);
  options.member = made.size() <= most ? made : made.substr(made.size() - most);
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<EventProcessor>> EventProcessor::Start(
    const ProcessorOptions& options, const ProcessorStores& stores, EventHandler* handler,
    base::Clock* clock) {
  MUSTER_RETURN_IF_ERROR(Validate(options));
  MUSTER_ASSIGN_OR_RETURN(const StreamOptions stream, stores.events->Describe(options.stream));
  std::unique_ptr<EventProcessor> processor(new EventProcessor(
      WithMember(options, stream.partitions), stream.partitions, stores, handler, clock));
  MUSTER_RETURN_IF_ERROR(processor->StartThreads(stream.partitions));
  return processor;
}

EventProcessor::EventProcessor(const ProcessorOptions& options, int partitions,
                               const ProcessorStores& stores, EventHandler* handler,
                               base::Clock* clock)
    : options_(options),
      partitions_(partitions),
      stores_(stores),
      handler_(handler),
      clock_(clock),
      checkpoints_(stores.sync, GroupName(options.stream, options.group)),
      sessions_(static_cast<size_t>(partitions)) {}

absl::Status EventProcessor::StartThreads(int partitions) {
  MUSTER_ASSIGN_OR_RETURN(
      std::unique_ptr<partition::PartitionMember> member,
      partition::PartitionMember::Start(MemberOptionsOf(options_, partitions), stores_.sync, this,
                                        clock_, stores_.metrics));
  {
    // Until now, the member's calls have only made and marked sessions.
    base::MutexLock lock(&mu_);
    member_ = std::move(member);
  }
  const int fetchers = std::min(partitions, options_.fetch_threads);
  for (int i = 0; i < fetchers; ++i) threads_.emplace_back([this] { RunFetcher(); });
  const int handlers = std::min(partitions, options_.handler_threads);
  for (int i = 0; i < handlers; ++i) threads_.emplace_back([this] { RunHandler(); });
  base::MutexLock lock(&join_mu_);
  stop_thread_ = std::thread([this] { RunStop(); });
  return absl::OkStatus();
}

EventProcessor::~EventProcessor() { Stop(); }

void EventProcessor::Stop() {
  RequestStop();
  if (IsHandlerThread()) return;
  Wait().IgnoreError();
}

void EventProcessor::RequestStop() {
  base::MutexLock lock(&mu_);
  stop_requested_ = true;
  stop_wake_.NotifyAll();
}

absl::Status EventProcessor::Wait() {
  {
    base::MutexLock lock(&join_mu_);
    if (stop_thread_.joinable()) stop_thread_.join();
  }
  base::MutexLock lock(&mu_);
  return failure_;
}

void EventProcessor::RunStop() {
  partition::PartitionMember* member = nullptr;
  {
    base::MutexLock lock(&mu_);
    while (!stop_requested_) stop_wake_.Wait(&mu_);
    member = member_.get();
  }
  member->Stop();
  {
    base::MutexLock lock(&mu_);
    member_left_ = true;
    fetch_wake_.NotifyAll();
    work_wake_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void EventProcessor::Fail(const absl::Status& status) {
  base::MutexLock lock(&mu_);
  if (failure_.ok()) failure_ = status;
  stop_requested_ = true;
  stop_wake_.NotifyAll();
}

ProcessorCounts EventProcessor::counts() const {
  base::MutexLock lock(&mu_);
  ProcessorCounts counts = counts_;
  for (const SessionPtr& session : sessions_) {
    if (session == nullptr) continue;
    ++counts.owned;
    counts.read_ahead += static_cast<int64_t>(session->state.events.size());
  }
  return counts;
}

std::vector<int> EventProcessor::OwnedPartitions() const {
  base::MutexLock lock(&mu_);
  std::vector<int> owned;
  for (const SessionPtr& session : sessions_) {
    if (session != nullptr) owned.push_back(session->partition());
  }
  return owned;
}

std::vector<EventProcessor::Place> EventProcessor::Places() const {
  base::MutexLock lock(&mu_);
  std::vector<Place> places;
  for (const SessionPtr& session : sessions_) {
    if (session == nullptr || !session->state.open) continue;
    places.push_back({session->partition(), session->goes_on_at()});
  }
  return places;
}

EventProcessor::SessionPtr EventProcessor::MakeSession(int partition, int64_t epoch) {
  return std::make_shared<Session>(
      Session::Setup{.source = {.store = stores_.events,
                                .checkpoints = &checkpoints_,
                                .stream = options_.stream,
                                .partition = partition,
                                .epoch = epoch,
                                .begin = options_.begin,
                                .on_gap = [this](const ProcessorError& error) { Tell(error); }},
                     .is_held = [this, partition, epoch] { return Holds(partition, epoch); },
                     .on_replay = [this](Session* self) { Look(self); }});
}

bool EventProcessor::Holds(int partition, int64_t epoch) const {
  partition::PartitionMember* member = nullptr;
  {
    base::MutexLock lock(&mu_);
    member = member_.get();
  }
  const std::optional<partition::Holding> held =
      member == nullptr ? std::nullopt : member->Held(partition);
  return held.has_value() && held->epoch == epoch;
}

void EventProcessor::OnAssigned(int partition, int64_t epoch) {
  SessionPtr session = MakeSession(partition, epoch);
  base::MutexLock lock(&mu_);
  SessionPtr& at = sessions_[static_cast<size_t>(partition)];
  // The handler of an earlier epoch has not returned yet.
  if (at != nullptr) {
    next_epochs_[partition] = epoch;
    return;
  }
  at = std::move(session);
  fetch_wake_.NotifyAll();
}

void EventProcessor::OnDraining(int partition, int64_t epoch, absl::Duration) {
  bool drained = false;
  partition::PartitionMember* member = nullptr;
  {
    base::MutexLock lock(&mu_);
    member = member_.get();
    const auto waiting = next_epochs_.find(partition);
    if (waiting != next_epochs_.end() && waiting->second == epoch) {
      next_epochs_.erase(waiting);
      drained = true;
    }
    Session* const session = sessions_[static_cast<size_t>(partition)].get();
    if (session != nullptr && session->epoch() == epoch) {
      CloseLocked(session, stop_requested_ ? CloseReason::kShutdown : CloseReason::kHandedOver);
    }
  }
  if (drained && member != nullptr) member->Drained(partition, epoch);
}

// A handler that has an event in hand is not waited for: it has had the grace, or the lease is
// lost, and the calls for other partitions must not be late. It can save no checkpoint.
void EventProcessor::OnRevoked(int partition, int64_t epoch) {
  base::MutexLock lock(&mu_);
  const auto waiting = next_epochs_.find(partition);
  if (waiting != next_epochs_.end() && waiting->second == epoch) next_epochs_.erase(waiting);
  Session* const session = sessions_[static_cast<size_t>(partition)].get();
  if (session == nullptr || session->epoch() != epoch) return;
  session->lost_ = true;
  CloseLocked(session, CloseReason::kLost);
}

void EventProcessor::OnDisplaced() {
  const absl::Status status = absl::FailedPreconditionError(
      absl::StrCat("another processor of group ", GroupName(options_.stream, options_.group),
                   " has started with the member id ", options_.member));
  Tell({.operation = ProcessorError::Operation::kMembership, .status = status});
  Fail(status);
}

void EventProcessor::CloseLocked(Session* session, CloseReason reason) {
  // The last reason counts: a partition that was handed over too late is lost.
  session->state.reason = reason;
  if (!session->closing_.exchange(true)) session->source().Cancel();
  session->state.events.clear();
  session->state.bytes = 0;
  work_wake_.NotifyAll();
}

}  // namespace muster::stream::processor
