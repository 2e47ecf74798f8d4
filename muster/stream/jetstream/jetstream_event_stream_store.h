// SPDX-License-Identifier: Apache-2.0

// JetStreamEventStreamStore: the EventStreamStore that many machines share, on NATS JetStream
// (stream_layout.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/nats/connection.h"
#include "muster/nats/jetstream.h"
#include "muster/stream/event_stream_store.h"
#include "muster/stream/jetstream/consumer_inbox.h"
#include "muster/stream/jetstream/stream_layout.h"

namespace muster::stream::jetstream {

struct Options {
  std::string bucket = "muster";              // [A-Za-z0-9_-]+: keeps meshes on one server apart
  int replicas = 1;                           // 1 to 5, of the servers in the cluster
  absl::Duration timeout = absl::Seconds(5);  // of each call to the server
  // How long a reader's request for events waits at the server before it is renewed. A consumer
  // that is gone is noticed within 5/6 of it.
  absl::Duration pull_expires = absl::Seconds(30);
  // Appends of several events are atomic batches, where the server has them (from 2.12 on). For a
  // server that syncs each write: it then syncs once for all. Others take single events faster.
  bool atomic_appends = false;
  base::Clock* clock = base::RealClock();  // not owned
};

// Partitions of a stream that was not made to its end, or not removed, go when they are older.
inline constexpr absl::Duration kOrphanAge = absl::Hours(1);

// Thread-safe; any number of stores, in any number of processes, may share a bucket. One
// subscription, and its thread, for all readers; one consumer for each reader (consumer_reader.h).
//
// After OK, an append survives what the server's acknowledgements survive: always a crash of the
// server; with three replicas or more, the loss of the minority. A single server syncs its disk
// only every `sync_interval`: to survive a power cut, that must be "always" (supported from 2.10
// on).
//
// From 2.12 on, an append of several events is an atomic batch: all or nothing, one behind the
// other. Before, or when the server refuses the batch, each event is accepted only behind the one
// before it: after an error the first of them may have been appended, never a later one without
// those before. Events of other producers may lie between them.
//
// A reader that does not wait (Next with a wait of zero) gets what was there when its pull began;
// an event that was acknowledged a moment ago may still be on its way to it.
class JetStreamEventStreamStore final : public stream::EventStreamStore {
 public:
  // `connection` is not owned. InvalidArgument: the bucket's name is invalid. FailedPrecondition:
  // the server runs no JetStream. Unavailable: try again.
  static absl::StatusOr<std::unique_ptr<JetStreamEventStreamStore>> Open(
      nats::Connection* connection, const Options& options = Options());

  // One call to the server for each partition. FailedPrecondition: a stream of another program is
  // in the way.
  absl::Status Create(absl::string_view stream, const StreamOptions& options) override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Delete(absl::string_view stream) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::vector<std::string>> List() override;
  absl::StatusOr<StreamOptions> Describe(absl::string_view stream) override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<PartitionExtent> Extent(absl::string_view stream, int partition) override
      ABSL_LOCKS_EXCLUDED(mu_);
  // InvalidArgument: also an event larger than the server takes (its max_payload).
  absl::StatusOr<int64_t> Append(absl::string_view stream, int partition,
                                 absl::Span<const NewEvent> events) override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::unique_ptr<PartitionReader>> OpenReader(absl::string_view stream,
                                                              int partition,
                                                              int64_t offset) override
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  JetStreamEventStreamStore(nats::Connection* connection, const Options& options, bool has_atomic);

  // What the server says of a stream; NotFound: there is none. Notes it.
  absl::StatusOr<Description> Read(absl::string_view stream) ABSL_LOCKS_EXCLUDED(mu_);
  // What was read before, if that has the partition, or else what the server says. NotFound also
  // for a partition that the stream does not have.
  absl::StatusOr<Description> Find(absl::string_view stream, int partition)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Calls `act` with what is noted of the stream, and once more if that turns out to be of an
  // earlier stream of this name.
  template <typename Result>
  absl::StatusOr<Result> WithPartition(
      absl::string_view stream, int partition,
      absl::FunctionRef<absl::StatusOr<Result>(const Description&)> act) ABSL_LOCKS_EXCLUDED(mu_);

  absl::Status MakePartition(absl::string_view stream, const Description& description,
                             int partition);
  absl::Status DeleteOthers(absl::string_view stream, const Description& description);
  // Best effort: the next Create or Delete tries again.
  void RemoveOrphans(absl::string_view stream, absl::string_view id);

  absl::StatusOr<int64_t> AppendAt(const std::string& subject,
                                   absl::Span<const std::string> contents);
  // Each behind the one before it.
  absl::StatusOr<int64_t> AppendChain(const std::string& subject,
                                      absl::Span<const std::string> contents);

  const Options options_;
  const bool has_atomic_;  // the server's streams may take atomic batches
  const bool is_atomic_;
  nats::JetStream jetstream_;
  ConsumerInbox inbox_;
  const std::string message_ids_;  // with which the ids of messages begin
  std::atomic<uint64_t> last_chain_ = 0;
  base::KeyedMutex chains_;  // by subject: chains of one process do not break each other

  base::Mutex mu_;
  // Of the streams that this process uses, at most kMaxStreams.
  std::map<std::string, Description, std::less<>> noted_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::stream::jetstream
