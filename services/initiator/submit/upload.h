// SPDX-License-Identifier: Apache-2.0

// Upload: the arriving content of one batch: a file that grows piece by piece. The initiator splits
// it while it grows, as far as it is synced.
//
//   7.part ── Append*, Sync* ──► Seal ──► 7        (in the folder of uploads)
//
// A writer adds pieces while earlier ones are being synced: the next sync covers all that arrived
// meanwhile. The file's name says whether the content is whole, and its length how much has
// arrived: nothing else is recorded.
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
#include "muster/base/fingerprint.h"
#include "muster/base/mutex.h"
#include "muster/input/byte_source.h"
#include "services/initiator/batch/block_hashes.h"

namespace muster::initiator::submit {

// The path of the content while it is not whole yet.
std::string ArrivingPath(const std::string& path);

// Thread-safe. As a ByteSource it shows the durable content, and grows until it is sealed.
class Upload final : public input::ByteSource {
 public:
  // Continues the file at `path`, or begins an empty one. Call SyncFound before anything else.
  // ResourceExhausted: the disk is full. Unavailable: the medium failed. `clock` is not owned.
  static absl::StatusOr<std::shared_ptr<Upload>> Open(const std::string& path, base::Clock* clock);

  ~Upload() override;
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  // Makes durable what Open found, and its name: the process that wrote it may have died before its
  // sync. None of it counts as durable before. Does nothing from the second time on. After an error
  // the content stays as it was found, and the same may be tried again.
  absl::Status SyncFound() ABSL_LOCKS_EXCLUDED(syncing_mu_, mu_);

  // Makes the caller the only writer and answers its ticket; calls with any other ticket then
  // answer Aborted. If an earlier sync has failed, drops what it could not sync: the content ends
  // at durable_size().
  uint64_t TakeOver() ABSL_LOCKS_EXCLUDED(writing_mu_, syncing_mu_, mu_);

  // Adds `data`, which begins at `offset` of the content. OutOfRange: the content does not end at
  // `offset` (size_so_far() says where). AlreadyExists: it is sealed. Otherwise as Open: then
  // nothing was added, and the same may be tried again.
  absl::Status Append(uint64_t ticket, uint64_t offset, absl::string_view data)
      ABSL_LOCKS_EXCLUDED(writing_mu_, syncing_mu_, mu_);

  // Makes durable what any writer added before the call; Append may run meanwhile. After an error
  // it is unknown what the medium holds: the writer's calls answer that error from then on, and the
  // writer must take over anew.
  absl::Status Sync() ABSL_LOCKS_EXCLUDED(syncing_mu_, mu_);

  // Syncs, and marks the content as whole and equal to what the writer sent. Sealing twice is fine.
  // OutOfRange: it does not end at `size`. DataLoss: it has another fingerprint. AlreadyExists: it
  // was sealed with another size or fingerprint.
  absl::Status Seal(uint64_t ticket, uint64_t size, const base::Fingerprint128& content)
      ABSL_LOCKS_EXCLUDED(writing_mu_, syncing_mu_, mu_);

  // Writers' calls answer the error `why` from now on: the batch does not need the content any
  // more. The first reason counts.
  void Refuse(absl::Status why) ABSL_LOCKS_EXCLUDED(mu_);
  // The same, of content that is not whole: it will not be. False: it is whole, and stays.
  bool EndArrival(absl::Status why) ABSL_LOCKS_EXCLUDED(writing_mu_, mu_);

  // Where the batch's ledger finds the content once it is sealed.
  const std::string& path() const { return path_; }
  uint64_t durable_size() const ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t size_so_far() const ABSL_LOCKS_EXCLUDED(mu_);  // including what is not synced yet
  bool sealed() const ABSL_LOCKS_EXCLUDED(mu_);
  // When the last of the content arrived, perhaps at an earlier process; InfinitePast: none has.
  absl::Time last_arrival() const ABSL_LOCKS_EXCLUDED(mu_);

  // input::ByteSource. DataLoss: the file has other bytes there than arrived in this process.
  uint64_t size() const override ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<size_t> Read(uint64_t offset, char* out, size_t bytes) const override
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // What Open finds: a file of `size` bytes, the last of which were written at `last_arrival`.
  Upload(std::string path, int fd, uint64_t size, absl::Time last_arrival, bool sealed,
         base::Clock* clock);

  absl::StatusOr<size_t> ReadFile(uint64_t offset, char* out, size_t bytes) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Holds `bytes` bytes at `out`, which were read at `offset`, against those that arrived.
  absl::Status CheckArrived(uint64_t offset, char* out, size_t bytes) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // Whether the writer with `ticket` may write, and begins at the right place.
  absl::Status CheckWriter(uint64_t ticket) const ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Write(uint64_t offset, absl::string_view data) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status SyncFile() ABSL_LOCKS_EXCLUDED(mu_);
  // Writes the first `size` bytes of the file over themselves.
  absl::Status WriteAgain(uint64_t size) ABSL_LOCKS_EXCLUDED(mu_);
  // Records that the content is durable up to `end`, or, if `status` is an error, drops what is not
  // durable. Answers `status`.
  absl::Status NoteSynced(uint64_t end, absl::Status status) ABSL_LOCKS_EXCLUDED(mu_);
  // Makes the whole content, which ends at `end`, durable under its final name.
  absl::Status SyncWhole(uint64_t end) ABSL_LOCKS_EXCLUDED(syncing_mu_, mu_)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_mu_);
  // Cuts the content at its durable end.
  void DropLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Brings content_ up to the first `size` bytes; reads again what an earlier process wrote.
  absl::Status ReadContent(uint64_t size) ABSL_LOCKS_EXCLUDED(mu_)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_mu_);

  const std::string path_;
  const int fd_;
  base::Clock* const clock_;  // not owned

  // Held while a piece is written: pieces come one after the other.
  base::Mutex writing_mu_;
  base::Fingerprinter content_ ABSL_GUARDED_BY(writing_mu_);
  uint64_t fingerprinted_ ABSL_GUARDED_BY(writing_mu_) = 0;  // bytes that content_ has seen
  bool renamed_ ABSL_GUARDED_BY(writing_mu_) = false;        // the file has its final name

  base::Mutex syncing_mu_;  // held during a sync; pieces may be written meanwhile
  bool named_ ABSL_GUARDED_BY(syncing_mu_) = false;  // the folder entry of the file is durable

  mutable base::Mutex mu_;
  uint64_t written_ ABSL_GUARDED_BY(mu_);
  uint64_t durable_ ABSL_GUARDED_BY(mu_) = 0;  // <= written_
  batch::BlockHashes arrived_ ABSL_GUARDED_BY(mu_);
  absl::Time last_arrival_ ABSL_GUARDED_BY(mu_);
  bool found_ ABSL_GUARDED_BY(mu_);           // Open found content that SyncFound has not synced
  absl::Status broken_ ABSL_GUARDED_BY(mu_);  // of a sync since the last TakeOver
  bool sealed_ ABSL_GUARDED_BY(mu_);
  uint64_t writer_ ABSL_GUARDED_BY(mu_) = 0;  // the ticket that may write
  absl::Status refused_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::initiator::submit
