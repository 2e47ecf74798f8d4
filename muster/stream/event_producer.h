// SPDX-License-Identifier: Apache-2.0

// EventProducer: appends events to a stream, each to the partition of its key.
//
//   MUSTER_ASSIGN_OR_RETURN(auto producer, EventProducer::Open(store, "homes", {}, clock));
//   producer->Send({.key = "home-17", .body = "door open"});
//
// Calls of several threads that meet at one partition share appends: while one append runs, what
// else arrives waits, and goes out as the next one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/retry.h"
#include "muster/stream/event_stream_store.h"

namespace muster::stream {

// The partition of a key: the low 64 bits of its XXH3 128-bit hash, modulo `partitions`. Stable
// across versions, machines and languages, since the order of a key's events depends on it. A key
// is not empty, and `partitions` is at least 1.
int PartitionOf(absl::string_view key, int partitions);

// Where an event went. On an engine without atomic appends (event_stream_store.h), events of other
// producers may lie between those of one append; then the true offset of all but the first of them
// is higher.
struct EventPlace {
  int partition = 0;
  int64_t offset = 0;

  bool operator==(const EventPlace&) const = default;
};

struct ProducerOptions {
  // Of an append that fails with a transient error. An append whose outcome is unknown may have
  // been carried out: the events of a repeated one may come twice.
  base::RetryOptions retry;
};

// Thread-safe; has no thread of its own. Its memory is what its callers hand in.
class EventProducer {
 public:
  // Any partition; an event with a key goes to that of its key.
  static constexpr int kAnyPartition = -1;

  // NotFound: there is no such stream. `store` and `clock` are not owned.
  static absl::StatusOr<std::unique_ptr<EventProducer>> Open(EventStreamStore* store,
                                                             absl::string_view stream,
                                                             const ProducerOptions& options,
                                                             base::Clock* clock);
  ~EventProducer();

  // Appends an event, to `partition` if one is named; else to that of its key; else, without a key,
  // to the partitions in turn. Returns once it is stored. InvalidArgument: the event breaks a
  // limit, or there is no such partition. Other errors are the store's, after the retries.
  //
  // Events that one thread sends one after the other to one partition keep their order, if it does
  // not go on after an error.
  absl::StatusOr<EventPlace> Send(NewEvent event, int partition = kAnyPartition);

  // The same for many: those of a partition go out together, in their order, in as few appends as
  // the limits allow. Returns what became of each, in the order of `events`: an append that fails
  // fails for all of its events and for what follows it in its partition, and no other partition.
  // Events without a key and partition go to one partition, the next in turn.
  std::vector<absl::StatusOr<EventPlace>> SendAll(std::vector<NewEvent> events,
                                                  int partition = kAnyPartition);

  int partitions() const { return static_cast<int>(lanes_.size()); }

 private:
  // What one call sends to one partition.
  struct Parcel {
    std::vector<NewEvent> events;
    size_t bytes = 0;
    bool done = false;
    absl::Status status;
    int64_t first = 0;  // the offset of the first event
  };
  // A partition: what waits for its next append.
  struct Lane {
    base::Mutex mu;
    base::CondVar changed;
    bool appending ABSL_GUARDED_BY(mu) = false;
    std::vector<Parcel*> waiting ABSL_GUARDED_BY(mu);  // owned by their callers
  };

  EventProducer(EventStreamStore* store, absl::string_view stream, int partitions,
                const ProducerOptions& options, base::Clock* clock);

  absl::StatusOr<int> ChoosePartition(const NewEvent& event, int partition, int keyless) const;
  int NextInTurn();
  // Returns once the parcel is done.
  void Ship(int partition, Parcel* parcel);
  static std::vector<Parcel*> TakeBatchLocked(Lane* lane) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lane->mu);
  absl::StatusOr<int64_t> Append(int partition, const std::vector<Parcel*>& batch);

  EventStreamStore* const store_;  // not owned
  const std::string stream_;
  base::RetryPolicy retry_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // by partition
  std::atomic<uint64_t> turn_;
};

}  // namespace muster::stream
