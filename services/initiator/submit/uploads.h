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
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/fingerprint.h"
#include "muster/base/mutex.h"
#include "muster/input/byte_source.h"
#include "muster/ledger/batch_ledger.h"
#include "services/initiator/batch/content_store.h"

namespace muster::initiator::submit {

// The path of the content while it is not whole yet.
std::string ArrivingPath(const std::string& path);

// Thread-safe. As a ByteSource it shows the durable content, and grows until it is sealed.
class Upload final : public input::ByteSource {
 public:
  // Continues the file at `path`, or begins an empty one. Call SyncFound before anything else.
  // ResourceExhausted: the disk is full. Unavailable: the medium failed.
  static absl::StatusOr<std::shared_ptr<Upload>> Open(const std::string& path);

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

  // Where the batch's ledger finds the content once it is sealed.
  const std::string& path() const { return path_; }
  uint64_t durable_size() const ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t size_so_far() const ABSL_LOCKS_EXCLUDED(mu_);  // including what is not synced yet
  bool sealed() const ABSL_LOCKS_EXCLUDED(mu_);

  // input::ByteSource
  uint64_t size() const override ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<size_t> Read(uint64_t offset, char* out, size_t bytes) const override
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Upload(std::string path, int fd, uint64_t size, bool sealed);

  absl::StatusOr<size_t> ReadFile(uint64_t offset, char* out, size_t bytes) const
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
  bool found_ ABSL_GUARDED_BY(mu_);            // Open found content that SyncFound has not synced
  absl::Status broken_ ABSL_GUARDED_BY(mu_);   // of a sync since the last TakeOver
  bool sealed_ ABSL_GUARDED_BY(mu_);
  uint64_t writer_ ABSL_GUARDED_BY(mu_) = 0;  // the ticket that may write
  absl::Status refused_ ABSL_GUARDED_BY(mu_);
};

// UploadSyncer: syncs an upload while more of it arrives.

// The syncer waits so long before its first sync: a short upload is sealed by then, and its seal
// syncs it.
inline constexpr absl::Duration kSealPause = absl::Milliseconds(2);

// For one thread. Syncs on a thread of its own, which begins with the first content, one sync at a
// time; each covers all that was added before it began.
class UploadSyncer {
 public:
  // Called on the syncer's thread after each sync, with the end of the durable content.
  using OnDurable = std::function<void(uint64_t durable)>;
  // Called once, on the syncer's thread, with the reason why a sync has failed.
  using OnFailed = std::function<void(const absl::Status&)>;

  // Neither `upload` nor `clock` is owned.
  UploadSyncer(Upload* upload, base::Clock* clock, OnDurable on_durable, OnFailed on_failed);
  ~UploadSyncer();  // as Finish
  UploadSyncer(const UploadSyncer&) = delete;
  UploadSyncer& operator=(const UploadSyncer&) = delete;

  // The writer has added content: sync it.
  void Wake() ABSL_LOCKS_EXCLUDED(mu_);

  // Syncs the rest and calls OnDurable for it. Makes no calls afterwards. Answers the status of the
  // last sync.
  absl::Status Finish() ABSL_LOCKS_EXCLUDED(mu_);

  // As Finish, but leaves the rest to Upload::Seal.
  absl::Status HandOver() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // False: nothing is left to sync, and no more will come.
  bool AwaitMore() ABSL_LOCKS_EXCLUDED(mu_);

  Upload* const upload_;      // not owned
  base::Clock* const clock_;  // not owned
  const OnDurable on_durable_;
  const OnFailed on_failed_;

  base::Mutex mu_;
  base::CondVar changed_;
  bool more_ ABSL_GUARDED_BY(mu_) = false;
  bool finishing_ ABSL_GUARDED_BY(mu_) = false;
  bool handed_over_ ABSL_GUARDED_BY(mu_) = false;
  bool is_first_ ABSL_GUARDED_BY(mu_) = true;
  bool busy_ ABSL_GUARDED_BY(mu_) = false;  // in a sync or in a callback
  absl::Status status_ ABSL_GUARDED_BY(mu_);

  std::thread thread_;  // last: it uses all of these
};

// Uploads: the folder with the content of this initiator's batches, one file for each batch, except
// for inline content (kMaxInlineContentBytes in source.h). A file stays for some time after its
// batch is complete: any item can be made again from it.

// Thread-safe.
class Uploads final : public batch::ContentStore {
 public:
  // Creates the folder if it is missing. Unavailable: it cannot be created.
  static absl::StatusOr<std::unique_ptr<Uploads>> Open(const std::string& folder);

  // The path of the whole content within the folder's parent, the data directory.
  std::string ContentPathOf(uint64_t batch) const;

  // batch::ContentStore
  bool Stores(const ledger::Batch& batch) const override;
  std::string PathOf(uint64_t batch) const override;
  absl::StatusOr<std::shared_ptr<const input::ByteSource>> OpenContent(uint64_t batch) override
      ABSL_LOCKS_EXCLUDED(mu_);
  std::optional<uint64_t> DurableBytes(uint64_t batch) override ABSL_LOCKS_EXCLUDED(mu_);
  bool IsSealed(uint64_t batch) const override;
  void Refuse(uint64_t batch, const absl::Status& why) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Delete(uint64_t batch) override ABSL_LOCKS_EXCLUDED(mu_);

  // The batch's upload, begun if it is missing. Callers that hold it at the same time share one
  // object.
  absl::StatusOr<std::shared_ptr<Upload>> Get(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // The batch's open Upload; null: no caller holds one.
  std::shared_ptr<Upload> Held(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);

  explicit Uploads(std::string folder) : folder_(std::move(folder)) {}

  const std::string folder_;
  base::Mutex mu_;
  std::map<uint64_t, std::weak_ptr<Upload>> held_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::initiator::submit
