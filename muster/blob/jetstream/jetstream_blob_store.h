// JetStreamBlobStore: the BlobStore that many machines share, in an object bucket of NATS
// (object_layout.h).
//
// A put writes its chunks under a nuid of its own, and then the metadata that names them: with that
// message the blob is the new one. A put that dies before leaves chunks that nobody reads; the next
// open removes them once they are older than kOrphanAge. So until then a bucket may hold, beside
// its blobs, what the puts of a day left that died.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/blob/blob_store.h"
#include "muster/blob/jetstream/object_layout.h"
#include "muster/nats/connection.h"
#include "muster/nats/jetstream.h"
#include "muster/nats/stream_provisioner.h"

namespace muster::blob::jetstream {

struct Options {
  std::string bucket = "muster";               // [A-Za-z0-9_-]+
  int replicas = 1;                            // 1 to 5, of the servers in the cluster
  absl::Duration timeout = absl::Seconds(10);  // of each call to the server, or window of chunks
  base::Clock* clock = base::RealClock();      // not owned
};

// Thread-safe; any number of stores, in any number of processes, may share a bucket.
//
// A Put that answered OK survives what the server's acknowledgements survive: its own death always;
// with three replicas or more, that of the minority. A single server syncs its disk only every
// `sync_interval`: to survive a power cut, that has to be "always" (known from 2.10 on).
class JetStreamBlobStore final : public blob::BlobStore {
 public:
  // Makes the bucket, or changes it to be as the options say, and removes what puts that died left.
  // `connection` is not owned. InvalidArgument: a bucket's name that is none. FailedPrecondition:
  // the server has the bucket with settings that cannot be changed, runs no JetStream, or takes no
  // messages as large as a chunk. Unavailable: try again.
  static absl::StatusOr<std::unique_ptr<JetStreamBlobStore>> Open(
      nats::Connection* connection, const Options& options = Options());

  // Of all: Unavailable: no answer, or the bucket is gone; whether a blob was put or deleted is
  // unknown. A bucket that stays gone is made anew, without blobs (nats/stream_keeper.h).
  // ResourceExhausted: the server is full; the blob is as it was before.
  absl::Status Put(absl::string_view name, absl::string_view data) override;
  absl::StatusOr<std::string> Get(absl::string_view name) override;
  // Removes the metadata, too, where tools would leave a marker: names do not come again, and the
  // markers would add up.
  absl::Status Delete(absl::string_view name) override;

 private:
  // The metadata as it lies there.
  struct Meta {
    uint64_t sequence = 0;  // 0: there is none
    absl::StatusOr<ObjectInfo> info = absl::NotFoundError("there is no such blob");
  };

  JetStreamBlobStore(nats::Connection* connection, const Options& options);

  void RemoveOldOrphans();
  absl::Status WriteAll(absl::string_view nuid, absl::string_view data);
  absl::StatusOr<Meta> ReadMeta(absl::string_view name);
  absl::StatusOr<nats::StoredMessage> ReadLastMeta(absl::string_view name);
  // With `info` the blob is the new one. Answers the nuid that it replaced, "" if none.
  absl::StatusOr<std::string> Commit(const ObjectInfo& info);
  // The blob that `info` names.
  absl::StatusOr<std::string> ReadObject(const ObjectInfo& info);
  // Where it fails, they become orphans.
  void RemoveChunks(absl::string_view nuid);

  const std::string bucket_;
  base::Clock* const clock_;  // not owned
  nats::JetStream jetstream_;
  nats::StreamProvisioner provisioner_;
};

// Chunks that no metadata names: a put died before it came to that, or after it had replaced a blob
// and before it had removed what it replaced.

// Removes those that muster wrote for puts which began before `before`, and answers of how many
// puts. Costs one call where the bucket holds nothing as old; otherwise it looks at the metadata of
// every blob. Blobs that tools put, and what is left of them, stay. FailedPrecondition, and nothing
// is removed: metadata cannot be read, so it is not known what it names.
absl::StatusOr<size_t> RemoveOrphans(nats::JetStream* jetstream, absl::string_view bucket,
                                     absl::Time before);

}  // namespace muster::blob::jetstream
