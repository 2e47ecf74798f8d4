// SPDX-License-Identifier: Apache-2.0

// EventProcessor: reads a stream for a group, together with the group's other processors: each
// partition has one owner at a time, and its events are handled one after the other, from the
// group's checkpoint on.
//
//   class Counter : public EventHandler {
//     absl::Status OnEvent(PartitionContext& partition, const Event* event) override {
//       Count(event->body);
//       return partition.UpdateCheckpoint(*event);
//     }
//     void OnError(const ProcessorError& error) override { … }
//   };
//   MUSTER_ASSIGN_OR_RETURN(auto processor, EventProcessor::Start(
//       {.stream = "homes", .group = "store"}, {events, sync}, &counter, clock));
//   processor->Wait();
//
// Each event comes at least once. It comes again when its owner failed before a checkpoint, when a
// replay moves the checkpoint back, and when the producer appended it twice; so what handles events
// remembers (partition, offset), or does not mind.
//
//   fetchers ── Read ──► events read ahead ──► handler threads ── OnEvent
//      ▲                     of each partition         │ UpdateCheckpoint
//   PartitionMember: assigned, draining, revoked ◄── Drained ──┘
//
// Threads: two of the PartitionMember, one that stops, min(partitions, fetch_threads) fetchers and
// min(partitions, handler_threads) that call the handler; so 35 at most by default, for any number
// of partitions. Memory: the events read ahead, of each owned partition as ProcessorOptions say.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/partition/checkpoint_store.h"
#include "muster/partition/partition_member.h"
#include "muster/stream/event_stream_store.h"
#include "muster/stream/processor/event_handler.h"
#include "muster/stream/processor/options.h"
#include "muster/stream/processor/replay.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::stream::processor {

class Session;

// What a processor has done so far.
struct ProcessorCounts {
  int64_t handled = 0;      // events for which OnEvent returned OK
  int64_t failures = 0;     // of OnEvent
  int64_t skipped = 0;      // events that FailureOptions passed over
  int64_t events_lost = 0;  // that retention removed before they were handled
  int64_t replays = 0;      // that this processor noticed
  int64_t owned = 0;        // partitions now
  int64_t read_ahead = 0;   // events now
};

// Thread-safe.
class EventProcessor final : private partition::PartitionWork {
 public:
  // InvalidArgument: the options. NotFound: there is no such stream. Other errors are the event
  // store's: call again. Later failures of the stores do not end the processor. `handler` and
  // `clock` are not owned.
  static absl::StatusOr<std::unique_ptr<EventProcessor>> Start(const ProcessorOptions& options,
                                                               const ProcessorStores& stores,
                                                               EventHandler* handler,
                                                               base::Clock* clock);
  // Stops.
  ~EventProcessor() override;

  // Finishes the events in hand, closes the partitions, hands them over, and leaves the group.
  // Returns when all that is done; that takes the grace at most, if the handler returns. From any
  // thread; called by the handler it is RequestStop. Stopping twice is fine.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);
  // The same without waiting.
  void RequestStop() ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until it has stopped. OK: a caller stopped it. Otherwise, why it stopped by itself: the
  // error of an event by FailureOptions::Then::kStop; FailedPrecondition: another processor has its
  // member id. Not for the handler.
  absl::Status Wait() ABSL_LOCKS_EXCLUDED(mu_);

  // An owned partition whose checkpoint has been read.
  struct Place {
    int partition = 0;
    int64_t goes_on_at = 1;  // where the next owner would begin if this one died now
  };

  const std::string& member() const { return options_.member; }
  const std::string& stream() const { return options_.stream; }
  // "STREAM/GROUP".
  std::string group() const { return GroupName(options_.stream, options_.group); }
  ProcessorCounts counts() const ABSL_LOCKS_EXCLUDED(mu_);
  // In order.
  std::vector<int> OwnedPartitions() const ABSL_LOCKS_EXCLUDED(mu_);
  // In order.
  std::vector<Place> Places() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using SessionPtr = std::shared_ptr<Session>;  // shared with the threads that have it in hand

  EventProcessor(const ProcessorOptions& options, int partitions, const ProcessorStores& stores,
                 EventHandler* handler, base::Clock* clock);
  absl::Status StartThreads(int partitions);

  // PartitionWork.
  void OnAssigned(int partition, int64_t epoch) override;
  void OnDraining(int partition, int64_t epoch, absl::Duration deadline) override;
  void OnRevoked(int partition, int64_t epoch) override;
  void OnDisplaced() override;

  // Sessions.
  SessionPtr MakeSession(int partition, int64_t epoch);
  bool Holds(int partition, int64_t epoch) const;
  void CloseLocked(Session* session, CloseReason reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The fetchers.
  void RunFetcher();
  // Null: it is time to end.
  SessionPtr AwaitFetch() ABSL_LOCKS_EXCLUDED(mu_);
  SessionPtr TakeFetchLocked(absl::Duration now, absl::Duration* next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasRoomLocked(const Session& session) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Fetch(Session* session);
  absl::Status OpenSession(Session* session);
  // Also for a handler whose checkpoint was refused.
  void Look(Session* session);
  absl::Status ReadAhead(Session* session);
  void EndFetch(Session* session, ProcessorError::Operation operation, const absl::Status& status);

  // The handler threads.
  // Whether the caller is one of them.
  bool IsHandlerThread() const;
  void RunHandler();
  SessionPtr AwaitWork() ABSL_LOCKS_EXCLUDED(mu_);
  SessionPtr TakeWorkLocked(absl::Duration now, absl::Duration* next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsDueLocked(const Session& session, absl::Duration now, absl::Duration* next) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Work(Session* session);
  void Initialize(Session* session);
  void HandleEvents(Session* session);
  // OK: go on with the next event. Otherwise the turn ends.
  bool HandleOne(Session* session, const Event* event);
  // True: the event is done with.
  bool DecideAfterFailure(Session* session, const absl::Status& status, const Event* event);
  void CloseSession(const SessionPtr& session);
  void Tell(const ProcessorError& error);

  void RunStop();
  void Fail(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);

  const ProcessorOptions options_;
  const int partitions_;
  const ProcessorStores stores_;
  EventHandler* const handler_;  // not owned
  base::Clock* const clock_;     // not owned
  partition::CheckpointStore checkpoints_;

  base::Mutex tell_mu_;  // one OnError at a time

  mutable base::Mutex mu_;
  base::CondVar fetch_wake_;
  base::CondVar work_wake_;
  base::CondVar stop_wake_;  // of the thread that stops
  std::unique_ptr<partition::PartitionMember> member_ ABSL_GUARDED_BY(mu_);  // set once
  std::vector<SessionPtr> sessions_ ABSL_GUARDED_BY(mu_);  // by partition; null: none
  // Epochs that begin once the session of an earlier one is closed.
  std::map<int, int64_t> next_epochs_ ABSL_GUARDED_BY(mu_);
  size_t fetch_turn_ ABSL_GUARDED_BY(mu_) = 0;
  size_t work_turn_ ABSL_GUARDED_BY(mu_) = 0;
  ProcessorCounts counts_ ABSL_GUARDED_BY(mu_);
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  bool stop_requested_ ABSL_GUARDED_BY(mu_) = false;
  bool member_left_ ABSL_GUARDED_BY(mu_) = false;  // threads end when nothing is left to close

  std::vector<std::thread> threads_;  // joined by the one that stops
  base::Mutex join_mu_;
  std::thread stop_thread_ ABSL_GUARDED_BY(join_mu_);
};

}  // namespace muster::stream::processor
