// SPDX-License-Identifier: Apache-2.0

// PartitionLog: one partition of an embedded stream, and its readers.
//
//      first            next          written_next
//        |               |                 |
//   gone | synced events | written, not yet | nothing yet
//        |  readable     | synced           |
//
// An event is readable once a sync has covered it: a reader never sees what a power cut can take
// away. Appends write one after the other, and share syncs.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/rocksdb/database.h"
#include "muster/stream/event_stream_store.h"
#include "muster/stream/rocksdb/codec.h"
#include "muster/stream/rocksdb/retention_sweeper.h"

namespace muster::stream::rocksdb {

// The families of the database, in order.
enum FamilyIndex { kMeta, kEvents };

// What all partitions of a store share; not owned.
struct LogContext {
  muster::rocksdb::Database* database;
  base::Clock* clock;
  RetentionSweeper* sweeper;  // null in a store that is read-only
};

// Thread-safe. Some hundred bytes, however many events there are.
class PartitionLog final : public std::enable_shared_from_this<PartitionLog> {
 public:
  // Finds where the log ends: a few reads, at any length. `name`, for messages, is such as
  // "stream 'a' partition 3". DataLoss: its partition record is damaged.
  static absl::StatusOr<std::shared_ptr<PartitionLog>> Load(const LogContext& context,
                                                            const PartitionId& id, std::string name,
                                                            const StreamOptions& options);

  // As EventStreamStore.
  absl::StatusOr<int64_t> Append(absl::Span<const NewEvent> events)
      ABSL_LOCKS_EXCLUDED(sweep_mu_, mu_);
  absl::StatusOr<PartitionExtent> Extent() const ABSL_LOCKS_EXCLUDED(mu_);

  struct Found {
    std::vector<Event> events;
    int64_t next = 1;  // where the reader goes on: behind what is lost, too
  };
  // As PartitionReader::Next, from `place` on, but returns without an event where it only passes
  // over lost ones. `*cancelled` ends it.
  absl::StatusOr<Found> Read(int64_t place, int max_events, absl::Duration wait,
                             const std::atomic<bool>& cancelled) ABSL_LOCKS_EXCLUDED(mu_);
  // Sets `*cancelled`, and wakes all that wait.
  void Cancel(std::atomic<bool>* cancelled) ABSL_LOCKS_EXCLUDED(mu_);

  // Removes the events whose time is over, and asks for the next sweep. Called by the sweeper.
  absl::Status Sweep() ABSL_LOCKS_EXCLUDED(sweep_mu_, mu_);
  // Everything says NotFound from now on, and nothing more is written.
  void Close() ABSL_LOCKS_EXCLUDED(sweep_mu_, mu_);

 private:
  // An event without its content.
  struct EventHead {
    absl::Time appended;
    int64_t begin_bytes = 0;
    int64_t end_bytes = 0;
  };

  PartitionLog(const LogContext& context, const PartitionId& id, std::string name,
               const StreamOptions& options);
  absl::Status LoadEnds() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status LoadLastEvent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Status Gone() const;
  // Writes the contents and returns the first offset; they are not synced yet.
  absl::StatusOr<int64_t> Write(absl::Span<const std::string> contents, absl::Time* appended,
                                int64_t* end_bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // Shows readers the events before `next`, which are synced.
  void Publish(int64_t next, absl::Time appended, int64_t end_bytes) ABSL_LOCKS_EXCLUDED(mu_);

  // Waits for an event at `place`; returns the end of what can be read, `place` when nothing came.
  absl::StatusOr<int64_t> Await(int64_t place, absl::Duration wait,
                                const std::atomic<bool>& cancelled) const ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CheckPlaceLocked(int64_t place) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<Found> ReadEvents(int64_t place, int64_t end, int max_events) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // The first offset from `place` on that is not known to be lost.
  int64_t BehindLost(int64_t place) const;
  absl::StatusOr<Event> DecodeAt(int64_t offset, absl::string_view key,
                                 absl::string_view value) const;
  // Why the event at `place`, which should be there, was not found.
  absl::Status Missing(int64_t place) const ABSL_LOCKS_EXCLUDED(mu_);

  bool HoldsTooMuchLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // When Sweep should be called; InfiniteFuture: not before another append.
  absl::Time DueLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Has the sweeper call Sweep when it is due, if that is `after` some time, and if the sweeper
  // does not do so anyway.
  void Schedule(std::optional<absl::Time> after = std::nullopt) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<EventHead> HeadAt(int64_t offset) const;
  // The first event from `low` on, below `high`, that `drops` does not name; `drops` is true of the
  // events up to some place, and false of those behind. Reads some twenty events of a million.
  // Passes over damaged ones.
  int64_t FirstKept(int64_t low, int64_t high,
                    const std::function<bool(const EventHead&)>& drops) const;
  // Gives up the events before `first`.
  absl::Status Drop(int64_t first) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sweep_mu_)
      ABSL_LOCKS_EXCLUDED(mu_);

  const LogContext context_;
  const PartitionId id_;
  const std::string name_;
  const StreamOptions options_;

  base::Mutex sweep_mu_;  // held for a whole sweep; taken before mu_
  mutable base::Mutex mu_;
  mutable base::CondVar changed_;  // next_ has grown, first_ too, or a reader was cancelled
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  int64_t first_ ABSL_GUARDED_BY(mu_) = 1;
  int64_t next_ ABSL_GUARDED_BY(mu_) = 1;
  int64_t written_next_ ABSL_GUARDED_BY(mu_) = 1;
  // Where the bytes of first_, next_ and written_next_ begin (EventRecord::end_bytes).
  int64_t first_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t next_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t written_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Time first_appended_ ABSL_GUARDED_BY(mu_);  // of first_, if there is one
  absl::Time last_appended_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();  // before next_
  absl::Time last_written_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();   // before written_next_
  absl::Time scheduled_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
};

// Gives back the space of events that were removed: of the files that hold nothing else. RocksDB
// rewrites the others in its own time.
absl::Status RemoveEventFiles(const muster::rocksdb::Database& database, const std::string& begin,
                              const std::string& end);

// A reader of `log` from `offset` on.
std::unique_ptr<PartitionReader> ReadFrom(std::shared_ptr<PartitionLog> log, int64_t offset);

}  // namespace muster::stream::rocksdb
