// Upload: the content of one batch on its way in: a file that grows piece by piece, and that can be
// split while it does, as far as it is synced.
//
//   7.part ── Append*, Sync* ──► Seal ──► 7        (in the folder of uploads)
//
// Pieces are added while those before them are synced: one sync is for all that came meanwhile.
// The file's name says whether it is whole, and its length how far it is: nothing else is recorded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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

namespace muster::initiator::batch {

// Where content lies that is not whole yet.
std::string ArrivingPath(const std::string& path);

// Thread-safe. As a source it has what is durable, and grows until it is sealed.
class Upload final : public input::ByteSource {
 public:
  // Goes on with what is there, which Sync makes durable, or begins with nothing.
  // ResourceExhausted: the disk is full. Unavailable: the medium failed.
  static absl::StatusOr<std::shared_ptr<Upload>> Open(const std::string& path);

  ~Upload() override;
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  // One writer at a time: answers the new one's ticket, and from then on every other one's call
  // is answered Aborted. What could not be synced is dropped: the content ends at durable_size().
  uint64_t TakeOver();

  // Adds `data`, which begins at `offset` of the content. OutOfRange: the content does not end at
  // `offset` (size_so_far() says where). AlreadyExists: it is sealed. Otherwise as Open: then
  // nothing was added, and the same may be tried again.
  absl::Status Append(uint64_t ticket, uint64_t offset, absl::string_view data);

  // Makes durable what was added before the call, by whichever writer, beside calls of Append.
  // After an error nobody can say what the medium has: the writer is answered that error from then
  // on, and must take over anew.
  absl::Status Sync();

  // Syncs. The content is whole, and is what the writer sent. Sealing twice is fine. OutOfRange: it
  // does not end at `size`. DataLoss: it has another fingerprint. AlreadyExists: it was sealed with
  // another size or fingerprint.
  absl::Status Seal(uint64_t ticket, uint64_t size, const base::Fingerprint128& content);

  // From now on writers are answered `why`, which is no OK: nobody needs the content any more. The
  // first reason counts.
  void Refuse(absl::Status why);

  // Where the batch's ledger finds the content once it is sealed.
  const std::string& path() const { return path_; }
  uint64_t durable_size() const;
  uint64_t size_so_far() const;  // what is not synced yet included
  bool sealed() const;

  // input::ByteSource
  uint64_t size() const override;
  absl::StatusOr<size_t> Read(uint64_t offset, char* out, size_t bytes) const override;

 private:
  Upload(std::string path, int fd, uint64_t size, bool sealed);

  absl::StatusOr<size_t> ReadFile(uint64_t offset, char* out, size_t bytes) const;

  // Whether the writer with `ticket` may write, and begins at the right place.
  absl::Status CheckWriter(uint64_t ticket) const;
  absl::Status Write(uint64_t offset, absl::string_view data);
  absl::Status SyncFile();
  // What is written is durable up to `end`, or, where `status` is an error, dropped. Answers
  // `status`.
  absl::Status NoteSynced(uint64_t end, absl::Status status);
  // The content ends at `end`, and is whole.
  absl::Status SyncWhole(uint64_t end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_mu_);
  // The content ends where it is durable.
  void DropLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Brings content_ up to the first `size` bytes: what an earlier process wrote is read again.
  absl::Status ReadContent(uint64_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_mu_);

  const std::string path_;
  const int fd_;

  // Held while a piece is written: pieces come one after the other.
  base::Mutex writing_mu_;
  base::Fingerprinter content_ ABSL_GUARDED_BY(writing_mu_);
  uint64_t fingerprinted_ ABSL_GUARDED_BY(writing_mu_) = 0;  // bytes that content_ has seen
  bool renamed_ ABSL_GUARDED_BY(writing_mu_) = false;        // it has the name of what is whole

  base::Mutex syncing_mu_;                   // held during a sync, beside pieces that are written
  bool named_ ABSL_GUARDED_BY(syncing_mu_);  // the folder knows the file, whatever happens

  mutable base::Mutex mu_;
  uint64_t written_ ABSL_GUARDED_BY(mu_);
  uint64_t durable_ ABSL_GUARDED_BY(mu_);     // <= written_
  absl::Status broken_ ABSL_GUARDED_BY(mu_);  // of a sync since the last TakeOver
  bool sealed_ ABSL_GUARDED_BY(mu_);
  uint64_t writer_ ABSL_GUARDED_BY(mu_) = 0;  // the ticket that may write
  absl::Status refused_ ABSL_GUARDED_BY(mu_);
};

// UploadSyncer: makes an upload durable while more of it arrives.

// For so long the first content is left alone: a short upload is sealed by then, and its seal syncs
// it as well.
inline constexpr absl::Duration kSealPause = absl::Milliseconds(2);

// Thread-safe. One sync at a time, on a thread of its own; each is for all that was added before it
// began.
class UploadSyncer {
 public:
  // Told after each sync, on the syncer's thread, where the durable content ends.
  using OnDurable = std::function<void(uint64_t durable)>;
  // Told once, on the syncer's thread, why the content cannot be synced.
  using OnFailed = std::function<void(const absl::Status&)>;

  // Neither `upload` nor `clock` is owned.
  UploadSyncer(Upload* upload, base::Clock* clock, OnDurable on_durable, OnFailed on_failed);
  ~UploadSyncer();  // as Finish
  UploadSyncer(const UploadSyncer&) = delete;
  UploadSyncer& operator=(const UploadSyncer&) = delete;

  // More was added.
  void Wake();

  // Syncs what is left and tells of it. Nobody is told anything afterwards. Answers how the last
  // sync ended.
  absl::Status Finish();

  // As Finish, but leaves what is left to the upload's own Seal.
  absl::Status HandOver();

 private:
  void Run();
  // False: there is nothing more to sync, ever.
  bool AwaitMore();

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
  bool busy_ ABSL_GUARDED_BY(mu_) = false;  // syncs, or tells of it
  absl::Status status_ ABSL_GUARDED_BY(mu_);

  std::thread thread_;  // last: it uses all of these
};

// Uploads: the folder that holds the content of this initiator's batches, a file for each, but for
// short content (whole_content.h). It stays for some time after its batch is complete: from it any
// item can be made again.

// Thread-safe.
class Uploads {
 public:
  // Makes the folder if it is missing. Unavailable: that is not possible.
  static absl::StatusOr<std::unique_ptr<Uploads>> Open(const std::string& folder);

  // Absolute; whatever has become of the content.
  std::string PathOf(uint64_t batch) const;

  // Whether all of the batch's content is there.
  bool IsSealed(uint64_t batch) const;
  // What somebody holds of it at the moment; null: nobody does.
  std::shared_ptr<Upload> Held(uint64_t batch);

  // The batch's content, begun if it is not there; whoever asks while somebody else holds it gets
  // the same one.
  absl::StatusOr<std::shared_ptr<Upload>> Get(uint64_t batch);

  // Deletes the content, whole or not; fine where there is none. Who holds it can still read it.
  absl::Status Delete(uint64_t batch);

 private:
  explicit Uploads(std::string folder) : folder_(std::move(folder)) {}

  const std::string folder_;
  base::Mutex mu_;
  std::map<uint64_t, std::weak_ptr<Upload>> held_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::initiator::batch
