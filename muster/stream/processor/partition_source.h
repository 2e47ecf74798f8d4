// SPDX-License-Identifier: Apache-2.0

// PartitionSource: reads the events of one partition for one owner, from the group's checkpoint on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/mutex.h"
#include "muster/partition/checkpoint_store.h"
#include "muster/stream/event_stream_store.h"
#include "muster/stream/processor/event_handler.h"
#include "muster/stream/processor/options.h"

namespace muster::stream::processor {

// One thread at a time, except for Cancel.
class PartitionSource {
 public:
  struct Setup {
    EventStreamStore* store = nullptr;                  // not owned
    partition::CheckpointStore* checkpoints = nullptr;  // not owned
    std::string stream = "";
    int partition = 0;
    int64_t epoch = 0;
    BeginAt begin = {};
    // Told of kRetention, kBeyondEnd and kLost.
    std::function<void(const ProcessorError&)> on_gap = nullptr;
  };

  explicit PartitionSource(Setup setup);

  // Raises the checkpoint's fence, and goes to where the group goes on. FailedPrecondition: a later
  // owner has begun. Other errors are the stores': call again.
  absl::Status Open();

  // At most `max_events` within `wait`; none after Cancel, and once the checkpoint has moved. When
  // events are gone that should have come, on_gap is told, and it goes on with the first that is
  // kept. FailedPrecondition: a later owner has begun. Unimplemented: the next event has a format
  // that this muster does not know. NotFound: the stream was deleted; if it is made anew, that one
  // is read. Other errors are the stores': call again.
  absl::StatusOr<std::vector<Event>> Read(int max_events, absl::Duration wait);

  // Ends a Read that waits, and makes later ones return at once. From any thread.
  void Cancel();

  // True: a replay has moved the checkpoint since Open. From any thread, after Open.
  absl::StatusOr<bool> WasReplayed();

  // After a Read: the stream was made anew since Open, or ends before the next event, and the
  // checkpoint was moved to its first event. What was read before, and is not handled yet, lies
  // elsewhere: close, and open another source.
  bool moved() const { return moved_; }

  // After Open: the offset of the next event to read, and what the checkpoints of its events have.
  int64_t next() const { return next_; }
  int64_t replays() const { return checkpoint_.replays; }
  uint64_t incarnation() const { return checkpoint_.incarnation; }

 private:
  // Opens a reader at `next_`, or at the nearest place that is kept, and tells of a gap.
  absl::Status OpenReader();
  absl::Status BeginWithoutCheckpoint(const PartitionExtent& extent);
  void TellOfLoss(int64_t wanted);
  // Offsets that `events`, which were read at `next_`, pass over.
  void TellOfGaps(const std::vector<Event>& events);
  absl::Status BeginAgain(const PartitionExtent& extent);
  // Whether the extent is of a stream that was made anew since the checkpoint.
  bool IsAnew(const PartitionExtent& extent) const;

  const Setup setup_;
  partition::Checkpoint checkpoint_;
  int64_t next_ = 0;     // 0: not known yet
  bool opened_ = false;  // a reader; its events may wait for their handler
  bool moved_ = false;

  base::Mutex mu_;
  std::shared_ptr<PartitionReader> reader_ ABSL_GUARDED_BY(mu_);  // shared with a Cancel
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace muster::stream::processor
