// SPDX-License-Identifier: Apache-2.0

// JetStreamSyncStore: the OptimisticSyncStore that many machines share, in a key-value bucket of
// NATS (its layout is below). The server does the compare-and-set.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/clock.h"
#include "muster/nats/connection.h"
#include "muster/nats/jetstream.h"
#include "muster/nats/stream_provisioner.h"
#include "muster/sync/optimistic_sync_store.h"
#include "nlohmann/json_fwd.hpp"

namespace muster::sync::jetstream {

struct Options {
  std::string bucket = "muster";              // [A-Za-z0-9_-]+
  int replicas = 1;                           // 1 to 5, of the servers in the cluster
  absl::Duration timeout = absl::Seconds(5);  // of each call to the server
  // Changes nothing, not even the bucket; refuses to write (FailedPrecondition).
  bool read_only = false;
  base::Clock* clock = base::RealClock();  // not owned
};

// Thread-safe; any number of stores, in any number of processes, may share a bucket.
//
// After true, a write survives what the server's acknowledgements survive: always a crash of the
// server; with three replicas or more, the loss of the minority. A single server writes to its disk
// at once, but syncs it only every `sync_interval`: a power cut may take the last writes back,
// unless that is set to "always" (supported from 2.10 on).
class JetStreamSyncStore final : public sync::OptimisticSyncStore {
 public:
  // Creates the bucket, or changes it to match the options. `connection` is not owned.
  // InvalidArgument: the bucket's name is invalid. FailedPrecondition: the server has the bucket
  // with settings that cannot be changed, or runs no JetStream. NotFound: read-only and there is no
  // bucket. Unavailable: try again.
  static absl::StatusOr<std::unique_ptr<JetStreamSyncStore>> Open(
      nats::Connection* connection, const Options& options = Options());

  // Reads from the leader of the bucket, not from a replica. A deposed leader that does not know it
  // yet may return an older record; a write on top of that fails. Unavailable: also while the
  // bucket is gone. A bucket that stays gone is created again, without records
  // (nats/stream_provisioner.h), but not by a read-only store, which returns FailedPrecondition.
  absl::StatusOr<sync::VersionedData> Get(absl::string_view key) override;
  // Unavailable: no answer, so the outcome is unknown; the server may even write it later.
  absl::StatusOr<bool> TryWrite(absl::string_view key, absl::string_view data,
                                uint64_t version) override;
  // Leaves no marker: the bucket keeps nothing of a removed record.
  absl::StatusOr<bool> TryDelete(absl::string_view key, uint64_t version) override;

 private:
  // A record as the stream has it.
  struct Stored {
    sync::VersionedData record;
    uint64_t sequence = 0;  // of the last message, even if that only marks a deletion
  };

  JetStreamSyncStore(nats::Connection* connection, const Options& options);

  absl::Status PrepareBucket();
  absl::StatusOr<nats::StoredMessage> ReadLast(absl::string_view key);
  absl::StatusOr<Stored> Read(absl::string_view key);
  absl::StatusOr<bool> WriteOver(absl::string_view key, absl::string_view data, uint64_t sequence);

  const std::string bucket_;
  const bool read_only_;
  nats::JetStream jetstream_;
  nats::StreamProvisioner provisioner_;
};

// The layout of a sync store in JetStream: a key-value bucket of NATS (ADR-8), which any NATS tool
// reads.
//
//   stream KV_<bucket>            one message for each key, the last one written
//   subject $KV.<bucket>.<key>    the data, as it is; its stream sequence is the record's version
//   header KV-Operation           DEL or PURGE: a tool deleted the key
//
// Keys of a bucket may hold every character of a sync key, but a dot only between other characters,
// and "_kv" at the beginning is reserved by NATS. A dot or underscore in a forbidden place is
// written as =2E or =5F; sync keys hold no =.

std::string StreamOf(absl::string_view bucket);
// `key` is valid (sync::ValidateKey).
std::string SubjectOf(absl::string_view bucket, absl::string_view key);

std::string EscapeKey(absl::string_view key);
std::string UnescapeKey(absl::string_view escaped);

// The stream's configuration, for EnsureStream.
nlohmann::json BucketConfig(absl::string_view bucket, int replicas);

// Whether a message with these headers says that its key was deleted.
bool MarksDeletion(absl::Span<const nats::Header> headers);

}  // namespace muster::sync::jetstream
