// SPDX-License-Identifier: Apache-2.0

// JetStreamBlobStore: the BlobStore that many machines share, in an object bucket of NATS
// (object_layout.h).
//
// Put writes the chunks under a nuid of its own, and then the metadata that names them: the
// metadata message makes the blob the new one. A Put that dies before that leaves chunks that no
// reader finds; the next Open or Scan removes them once they are older than kOrphanAge. An
// initiator scans once a day. So a bucket may hold, beside its blobs, the chunks of the Puts that
// died within the last two days.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

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
  // Names the chunks of one attempt to put a blob.
  std::function<std::string(absl::Time now)> make_nuid = MakeNuid;
};

// Thread-safe; any number of stores, in any number of processes, may share a bucket.
//
// After OK, a Put survives what the server's acknowledgements survive: always a crash of the
// server; with three replicas or more, the loss of the minority. A single server syncs its disk
// only every `sync_interval`: to survive a power cut, that must be "always" (supported from 2.10
// on).
class JetStreamBlobStore final : public blob::BlobStore {
 public:
  // Creates the bucket, or changes it to match the options, and removes the chunks of Puts that
  // died. `connection` is not owned. InvalidArgument: the bucket's name is invalid.
  // FailedPrecondition: the server has the bucket with settings that cannot be changed, runs no
  // JetStream, or takes no messages as large as a chunk. Unavailable: try again.
  static absl::StatusOr<std::unique_ptr<JetStreamBlobStore>> Open(
      nats::Connection* connection, const Options& options = Options());

  // All methods: Unavailable: no answer, or the bucket is gone; whether the blob was put or deleted
  // is unknown. A bucket that stays gone is created again, without blobs
  // (nats/stream_provisioner.h). ResourceExhausted: the server is full; the blob is as it was
  // before.
  absl::Status Put(absl::string_view name, absl::string_view data) override;
  absl::StatusOr<std::string> Get(absl::string_view name) override;
  // Removes the metadata, too, where NATS's tools would leave a marker: names do not come again,
  // and the markers would add up.
  absl::Status Delete(absl::string_view name) override;
  // One call to the server for each blob. Begins with the removal of what old Puts left that died.
  absl::StatusOr<std::unique_ptr<BlobScan>> Scan() override;

 private:
  // The metadata as the bucket holds it.
  struct Meta {
    uint64_t sequence = 0;  // 0: there is none
    absl::StatusOr<ObjectInfo> info = absl::NotFoundError("there is no such blob");
  };

  JetStreamBlobStore(nats::Connection* connection, const Options& options);

  void RemoveOldOrphans();
  // Changes the nuid of `info` when it has to begin again.
  absl::Status WriteAll(absl::string_view data, ObjectInfo* info);
  absl::StatusOr<Meta> ReadMeta(absl::string_view name);
  absl::StatusOr<nats::StoredMessage> ReadLastMeta(absl::string_view name);
  // Makes `info` the blob's metadata. Returns the nuid that it replaced, "" if none.
  absl::StatusOr<std::string> Commit(const ObjectInfo& info);
  // The blob that `info` names.
  absl::StatusOr<std::string> ReadObject(const ObjectInfo& info);
  // On failure the chunks become orphans.
  void RemoveChunks(absl::string_view nuid);

  const std::string bucket_;
  base::Clock* const clock_;  // not owned
  const std::function<std::string(absl::Time)> make_nuid_;
  nats::JetStream jetstream_;
  nats::StreamProvisioner provisioner_;
};

// Removes orphans: chunks that no metadata names, because a Put died before it wrote the metadata,
// or after it had replaced a blob and before it had removed the replaced chunks.
//
// Removes the chunks that muster wrote for Puts which began before `before`, and returns the number
// of those Puts. Costs one call if the bucket holds nothing that old; otherwise it reads the
// metadata of every blob. Blobs that other tools put, and what is left of them, stay.
// FailedPrecondition: metadata cannot be read, so it is unknown which chunks it names, and nothing
// is removed.
absl::StatusOr<size_t> RemoveOrphans(nats::JetStream* jetstream, absl::string_view bucket,
                                     absl::Time before);

}  // namespace muster::blob::jetstream
