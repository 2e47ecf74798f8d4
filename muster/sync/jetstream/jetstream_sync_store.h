// JetStreamSyncStore: the OptimisticSyncStore that many machines share, in a key-value bucket of
// NATS (kv_layout.h). The server compares and sets.
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
// A write that answered true survives what the server's acknowledgements survive: its own death
// always; with three replicas or more, that of the minority. A single server writes to its disk at
// once, but syncs it only every `sync_interval`: a power cut may take the last writes back, unless
// that is set to "always" (which servers know from 2.10 on).
class JetStreamSyncStore final : public sync::OptimisticSyncStore {
 public:
  // Makes the bucket, or changes it to be as the options say. `connection` is not owned.
  // InvalidArgument: a bucket's name that is none. FailedPrecondition: the server has the bucket
  // with settings that cannot be changed, or runs no JetStream. NotFound: read-only and not there.
  // Unavailable: try again.
  static absl::StatusOr<std::unique_ptr<JetStreamSyncStore>> Open(
      nats::Connection* connection, const Options& options = Options());

  // What the leader of the bucket has, not a replica. A deposed leader that does not know it yet
  // may answer what was; a write on top of that fails. Unavailable: also while the bucket is gone;
  // one that stays so is made anew, without records (nats/stream_keeper.h), but not by a store that
  // is open for reading only: FailedPrecondition.
  absl::StatusOr<sync::VersionedData> Get(absl::string_view key) override;
  // Unavailable: no answer, the outcome is unknown; it may even be written later.
  absl::StatusOr<bool> TryWrite(absl::string_view key, absl::string_view data,
                                uint64_t version) override;

 private:
  // A record as the stream has it.
  struct Stored {
    sync::VersionedData record;
    uint64_t sequence = 0;  // of the last message, if only to say that the key was deleted
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

// How a sync store lies in JetStream: as a key-value bucket of NATS (ADR-8), which any NATS tool
// reads.
//
//   stream KV_<bucket>            one message for each key, the last one written
//   subject $KV.<bucket>.<key>    the data, as it is; its stream sequence is the record's version
//   header KV-Operation           DEL or PURGE: somebody deleted the key with a tool
//
// Keys of a bucket may hold all that sync keys may, but a dot only between other characters, and
// "_kv" at the beginning is NATS's own. A dot or underscore that may not stand where it is is
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
