// SPDX-License-Identifier: Apache-2.0

// EventHandler: what the user of an EventProcessor provides.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "muster/stream/event_stream_store.h"

namespace muster::stream::processor {

// A partition while its events are handled: from OnPartitionInitializing until the return of
// OnPartitionClosing. Thread-safe, so that a handler may hand events on, and save a checkpoint when
// they are done with; not to be used after OnPartitionClosing.
class PartitionContext {
 public:
  virtual ~PartitionContext() = default;

  virtual int partition() const = 0;
  // Of this member's ownership. What is written elsewhere can be fenced by it: a later owner has a
  // higher one.
  virtual int64_t epoch() const = 0;
  // The offset of the first event that is handled here, or will be.
  virtual int64_t begins_at() const = 0;
  // False: another member may own the partition by now. Ask before each effect elsewhere.
  virtual bool owned() const = 0;

  // Saves that `event` and all events before it are done; the next owner of the partition, this
  // member or another, goes on after it. Call it as often as you like: events after the last
  // checkpoint come again after a failure. Takes two requests to the sync store.
  //
  // FailedPrecondition: another member owns the partition, or will. Aborted: the checkpoint was
  // moved by a replay, and the partition begins anew there. InvalidArgument: a later event has been
  // saved. Otherwise the sync store's errors: nothing is lost, try again with this or a later
  // event.
  virtual absl::Status UpdateCheckpoint(const Event& event) = 0;
};

// Why a partition is closed.
enum class CloseReason {
  kHandedOver,  // to another member: a checkpoint saved now is where that one goes on
  kShutdown,    // the processor stops: as kHandedOver
  kReplayed,    // the checkpoint was moved: the partition is initialised again, and goes on there
  kLost,        // another member may own it already: no checkpoint can be saved
};
absl::string_view CloseReasonName(CloseReason reason);

struct ProcessorError {
  enum class Operation {
    kOpen,        // the checkpoint or the stream cannot be read; tried again with back-off
    kRead,        // events cannot be read; tried again with back-off
    kHandle,      // OnEvent failed; what follows is FailureOptions'
    kRetention,   // events that no checkpoint covers are gone; the partition goes on at the first
    kBeyondEnd,   // the stream was made anew since the checkpoint, or has lost events, so that it
                  // lies beyond the end; the partition begins again with the first event
    kLost,        // events were damaged, and a repair has found them lost; it goes on behind them
    kMembership,  // the processor has stopped: another one has its member id
  };

  int partition = -1;  // -1: none
  Operation operation = Operation::kOpen;
  absl::Status status = {};
  const Event* event = nullptr;  // of kHandle; valid during the call; null: OnEvent had none
  int64_t events_lost = 0;       // of kRetention and kLost
};
absl::string_view OperationName(ProcessorError::Operation operation);

// Calls for one partition never overlap; calls for different partitions do. An exception of a
// handler counts as an error of OnEvent, and is reported from the others.
class EventHandler {
 public:
  virtual ~EventHandler() = default;

  // Handles one event; null: none has come for max_wait. Quick, or it holds up its partition. An
  // error: OnError is told, and FailureOptions say what follows.
  virtual absl::Status OnEvent(PartitionContext& partition, const Event* event) = 0;
  // One call at a time, from any thread of the processor, and beside the other calls.
  virtual void OnError(const ProcessorError& error) = 0;
  virtual void OnPartitionInitializing(PartitionContext&) {}
  // The last call for this context.
  virtual void OnPartitionClosing(PartitionContext&, CloseReason) {}
};

}  // namespace muster::stream::processor
