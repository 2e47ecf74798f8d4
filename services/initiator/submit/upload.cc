// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/submit/upload.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/os/durable_file.h"

namespace muster::initiator::submit {

namespace {

constexpr size_t kReadBytes = size_t{1} << 20;

// A full disk may get room again, and a failing one may recover: both errors tell the sender to try
// again with the same piece.
absl::Status TryAgain(const absl::Status& status) {
  if (status.ok() || absl::IsResourceExhausted(status)) return status;
  return absl::UnavailableError(status.message());
}

absl::Status ErrnoStatus(absl::string_view doing, const std::string& path) {
  return TryAgain(os::FileError(errno, doing, path));
}

}  // namespace

std::string ArrivingPath(const std::string& path) { return absl::StrCat(path, ".part"); }

absl::StatusOr<std::shared_ptr<Upload>> Upload::Open(const std::string& path, base::Clock* clock) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC;
  bool sealed = true;
  int fd = open(path.c_str(), kFlags);
  if (fd < 0 && errno == ENOENT) {
    sealed = false;
    fd = open(ArrivingPath(path).c_str(), kFlags | O_CREAT, S_IRUSR | S_IWUSR);
  }
  if (fd < 0) return ErrnoStatus("opening the upload", path);
  struct stat info;
  if (fstat(fd, &info) != 0) {
    const absl::Status looked = ErrnoStatus("looking at the upload", path);
    close(fd);
    return looked;
  }
  const absl::Time last =
      info.st_size == 0 ? absl::InfinitePast() : absl::TimeFromTimespec(info.st_mtim);
  return std::shared_ptr<Upload>(
      new Upload(path, fd, static_cast<uint64_t>(info.st_size), last, sealed, clock));
}

Upload::Upload(std::string path, int fd, uint64_t size, absl::Time last_arrival, bool sealed,
               base::Clock* clock)
    : path_(std::move(path)),
      fd_(fd),
      clock_(clock),
      written_(size),
      arrived_(size),
      last_arrival_(last_arrival),
      found_(size > 0 || sealed),
      sealed_(sealed) {}

Upload::~Upload() { close(fd_); }

absl::Status Upload::SyncFound() {
  {
    base::MutexLock lock(&mu_);
    if (!found_) return absl::OkStatus();
  }
  base::MutexLock syncing(&syncing_mu_);
  uint64_t size = 0;
  {
    base::MutexLock lock(&mu_);
    if (!found_) return absl::OkStatus();
    MUSTER_CHECK(durable_ == 0, "durable ", durable_, " before what was found is synced");
    size = written_;
  }
  absl::Status status = SyncFile();
  if (!status.ok()) {
    // The found bytes are not cut off: an earlier process may have acknowledged them. Written
    // again, they are part of the next sync, which would leave out what this one has failed to
    // write.
    base::LogUnlessOk(base::kError, "an upload that cannot be synced cannot be written again",
                      WriteAgain(size), {{"upload", path_}});
    return status;
  }
  MUSTER_RETURN_IF_ERROR(TryAgain(os::SyncFolderOf(path_)));
  named_ = true;
  base::MutexLock lock(&mu_);
  durable_ = size;
  found_ = false;
  return absl::OkStatus();
}

absl::Status Upload::WriteAgain(uint64_t size) {
  std::string piece(std::min<uint64_t>(kReadBytes, size), '\0');
  for (uint64_t offset = 0; offset < size; offset += piece.size()) {
    piece.resize(std::min<uint64_t>(piece.size(), size - offset));
    MUSTER_RETURN_IF_ERROR(ReadFile(offset, piece.data(), piece.size()).status());
    MUSTER_RETURN_IF_ERROR(Write(offset, piece));
  }
  return absl::OkStatus();
}

uint64_t Upload::TakeOver() {
  base::MutexLock writing(&writing_mu_);
  (void)Sync();  // drops what it cannot save
  base::MutexLock lock(&mu_);
  if (!broken_.ok() || written_ > durable_) DropLocked();
  if (fingerprinted_ > durable_) {
    content_ = base::Fingerprinter();
    fingerprinted_ = 0;
  }
  broken_ = absl::OkStatus();
  return ++writer_;
}

void Upload::DropLocked() {
  MUSTER_CHECK(!sealed_ && durable_ <= written_, "durable ", durable_, ", written ", written_,
               ", sealed ", sealed_);
  // The next process would take leftover bytes for content, so cut them off.
  if (ftruncate(fd_, static_cast<off_t>(durable_)) != 0) {
    base::Log(base::kError, "an upload cannot be cut to what is durable",
              {{"why", ErrnoStatus("cutting", path_).ToString()}});
  }
  written_ = durable_;
  arrived_.GoOnAt(durable_);
}

absl::Status Upload::CheckWriter(uint64_t ticket) const {
  base::MutexLock lock(&mu_);
  if (!refused_.ok()) return refused_;
  if (ticket != writer_) {
    return absl::AbortedError("a newer stream has taken the upload over");
  }
  return broken_;
}

absl::Status Upload::Append(uint64_t ticket, uint64_t offset, absl::string_view data) {
  base::MutexLock writing(&writing_mu_);
  MUSTER_RETURN_IF_ERROR(CheckWriter(ticket));
  if (sealed()) return absl::AlreadyExistsError("the content is whole already");
  const uint64_t end = size_so_far();
  if (offset != end) {
    return absl::OutOfRangeError(
        absl::StrCat("the content ends at byte ", end, ", not at ", offset));
  }
  MUSTER_RETURN_IF_ERROR(ReadContent(end));
  MUSTER_RETURN_IF_ERROR(Write(offset, data));
  content_.Update(data);
  fingerprinted_ += data.size();
  base::MutexLock lock(&mu_);
  MUSTER_CHECK(ticket == writer_ && !sealed_, "writer ", ticket, " adds, the ticket is of ",
               writer_, ", sealed ", sealed_);
  MUSTER_CHECK(durable_ <= end, "durable ", durable_, ", written ", end);
  written_ = end + data.size();
  arrived_.Append(end, data);
  last_arrival_ = clock_->Now();
  return absl::OkStatus();
}

absl::Status Upload::Sync() {
  base::MutexLock syncing(&syncing_mu_);
  uint64_t end = 0;
  {
    base::MutexLock lock(&mu_);
    if (!broken_.ok() || durable_ == written_) return broken_;
    end = written_;
  }
  absl::Status status = SyncFile();
  // The folder is synced with the first content only: an empty upload is as good as none.
  if (status.ok() && !named_) status = TryAgain(os::SyncFolderOf(path_));
  named_ = named_ || status.ok();
  return NoteSynced(end, std::move(status));
}

absl::Status Upload::SyncFile() {
  return fdatasync(fd_) == 0 ? absl::OkStatus() : ErrnoStatus("syncing", path_);
}

absl::Status Upload::NoteSynced(uint64_t end, absl::Status status) {
  base::MutexLock lock(&mu_);
  if (status.ok()) {
    MUSTER_CHECK(durable_ <= end && end <= written_, "durable ", durable_, ", synced ", end,
                 ", written ", written_);
    durable_ = end;
  } else {
    DropLocked();
  }
  broken_ = status;
  return status;
}

absl::Status Upload::Write(uint64_t offset, absl::string_view data) {
  while (!data.empty()) {
    const ssize_t written = pwrite(fd_, data.data(), data.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus("writing the upload", path_);
    offset += static_cast<uint64_t>(written);
    data.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status Upload::Seal(uint64_t ticket, uint64_t size, const base::Fingerprint128& content) {
  base::MutexLock writing(&writing_mu_);
  MUSTER_RETURN_IF_ERROR(CheckWriter(ticket));
  const uint64_t end = size_so_far();
  MUSTER_RETURN_IF_ERROR(ReadContent(end));
  const bool same = end == size && content_.Digest() == content;
  if (sealed()) {
    if (same) return absl::OkStatus();
    return absl::AlreadyExistsError("it was sealed with other content");
  }
  if (end != size) {
    return absl::OutOfRangeError(absl::StrCat("the content ends at byte ", end, ", not at ", size));
  }
  if (!same) return absl::DataLossError("what arrived is not what was sent");
  return SyncWhole(end);
}

// Syncs the content before it gets the name of whole content; one sync of the folder covers both
// names.
absl::Status Upload::SyncWhole(uint64_t end) {
  base::MutexLock syncing(&syncing_mu_);
  {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(broken_);  // a concurrent sync may have dropped the end
  }
  if (durable_size() < end) {
    const absl::Status synced = SyncFile();
    if (!synced.ok()) return NoteSynced(end, synced);
  }
  if (!renamed_ && rename(ArrivingPath(path_).c_str(), path_.c_str()) != 0) {
    return ErrnoStatus("renaming the upload to", path_);
  }
  renamed_ = true;
  if (absl::Status named = TryAgain(os::SyncFolderOf(path_)); !named.ok()) {
    // The next writer may have to cut it: what is left must not pass for the whole.
    renamed_ = rename(path_.c_str(), ArrivingPath(path_).c_str()) != 0;
    return named;
  }
  named_ = true;
  base::MutexLock lock(&mu_);
  MUSTER_CHECK(!sealed_ && durable_ <= end && written_ == end, "durable ", durable_, ", whole ",
               end, ", written ", written_, ", sealed ", sealed_);
  durable_ = end;
  sealed_ = true;
  return absl::OkStatus();
}

absl::Status Upload::ReadContent(uint64_t size) {
  if (fingerprinted_ == size) return absl::OkStatus();
  std::string piece(std::min<uint64_t>(kReadBytes, size), '\0');
  while (fingerprinted_ < size) {
    const size_t wanted = std::min<uint64_t>(piece.size(), size - fingerprinted_);
    MUSTER_ASSIGN_OR_RETURN(const size_t got, ReadFile(fingerprinted_, piece.data(), wanted));
    content_.Update(absl::string_view(piece.data(), got));
    fingerprinted_ += got;
  }
  return absl::OkStatus();
}

void Upload::Refuse(absl::Status why) {
  base::MutexLock lock(&mu_);
  if (refused_.ok()) refused_ = std::move(why);
}

// A seal holds writing_mu_ from its check of the writer to its end: it is over, or will be refused.
bool Upload::EndArrival(absl::Status why) {
  base::MutexLock writing(&writing_mu_);
  base::MutexLock lock(&mu_);
  if (sealed_) return false;
  if (refused_.ok()) refused_ = std::move(why);
  return true;
}

absl::Time Upload::last_arrival() const {
  base::MutexLock lock(&mu_);
  return last_arrival_;
}

uint64_t Upload::durable_size() const {
  base::MutexLock lock(&mu_);
  return durable_;
}

uint64_t Upload::size_so_far() const {
  base::MutexLock lock(&mu_);
  return written_;
}

bool Upload::sealed() const {
  base::MutexLock lock(&mu_);
  return sealed_;
}

uint64_t Upload::size() const {
  base::MutexLock lock(&mu_);
  return sealed_ ? durable_ : input::kStillGrowing;
}

absl::StatusOr<size_t> Upload::Read(uint64_t offset, char* out, size_t bytes) const {
  uint64_t end = 0;
  {
    base::MutexLock lock(&mu_);
    end = durable_;
    if (!sealed_ && offset + bytes > end) return input::NotArrivedYet();
  }
  if (offset >= end) return size_t{0};
  MUSTER_ASSIGN_OR_RETURN(const size_t got,
                          ReadFile(offset, out, std::min<uint64_t>(bytes, end - offset)));
  MUSTER_RETURN_IF_ERROR(CheckArrived(offset, out, got));
  return got;
}

absl::Status Upload::CheckArrived(uint64_t offset, char* out, size_t bytes) const {
  const auto block_at = [this](uint64_t at) {
    base::MutexLock lock(&mu_);
    return arrived_.At(at);
  };
  const auto read = [this](uint64_t at, char* to, size_t size) { return ReadFile(at, to, size); };
  return batch::CheckBlocks(path_, block_at, read, offset, out, bytes);
}

absl::StatusOr<size_t> Upload::ReadFile(uint64_t offset, char* out, size_t bytes) const {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = pread(fd_, out + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus("reading the upload", path_);
    if (got == 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("the upload ", path_, " was cut while it was read"));
    }
    done += static_cast<size_t>(got);
  }
  return done;
}

}  // namespace muster::initiator::submit
