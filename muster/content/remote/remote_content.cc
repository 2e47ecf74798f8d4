// SPDX-License-Identifier: Apache-2.0
#include "muster/content/remote/remote_content.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/content/ledger_content.h"
#include "muster/input/byte_source.h"
#include "muster/item/work_item_codec.h"
#include "muster/os/file_descriptor.h"
#include "muster/v1/ledger_service.pb.h"

namespace muster::content::remote {
namespace {

// An open file of the initiator, which may still grow: what an item needs of it is there.
class OpenFile final : public input::ByteSource {
 public:
  explicit OpenFile(const os::FileDescriptor* fd) : fd_(fd->get()) {}

  uint64_t size() const override { return input::kStillGrowing; }
  absl::StatusOr<size_t> Read(uint64_t offset, char* out, size_t bytes) const override {
    size_t done = 0;
    while (done < bytes) {
      const ssize_t got = pread(fd_, out + done, bytes - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return absl::ErrnoToStatus(errno, "reading the initiator's file");
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    return done;
  }

 private:
  const int fd_;
};

// Adds the piece to the item. False: it is damaged, or the item is longer than any may be.
bool Append(const v1::ReadItemsResponse& piece, std::string* slice) {
  if (slice->size() + piece.raw_bytes() > item::kMaxRawBytes) return false;
  if (piece.compression() == v1::COMPRESSION_NONE) {
    slice->append(piece.data());
    return piece.data().size() == piece.raw_bytes();
  }
  if (piece.compression() != v1::COMPRESSION_LZ4) return false;
  std::string raw(piece.raw_bytes(), '\0');
  if (!item::Decompress(piece.data(), &raw)) return false;
  slice->append(raw);
  return true;
}

}  // namespace

absl::Status RemoteContent::Read(const ItemReference& item, std::string* slice) {
  if (TakeHeld(item, slice) || ReadHere(item, slice)) return absl::OkStatus();
  bool is_there = false;
  MUSTER_RETURN_IF_ERROR(Fetch({item}, [&](const ItemReference&, std::string received) {
    *slice = std::move(received);
    is_there = true;
  }));
  if (is_there) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the content of item ", item.batch, "/", item.index, " did not arrive whole"));
}

void RemoteContent::Expect(absl::Span<const ItemReference> items) {
  if (items.empty()) return;
  const absl::StatusOr<std::optional<LocalFile>> here = Locate(items.front());
  if (!here.ok() || here->has_value()) return;
  std::vector<ItemReference> wanted;
  uint64_t bytes = 0;
  for (const ItemReference& item : items) {
    bytes += item.bytes;
    const bool is_others = item.batch != items.front().batch || item.owner != items.front().owner;
    if (is_others || bytes > kMaxExpectedBytes || wanted.size() == kMaxExpectedItems) break;
    wanted.push_back(item);
  }
  if (wanted.size() < 2) return;
  // What could not be fetched is asked for again when it is read, and the error told then.
  (void)Fetch(wanted, [this](const ItemReference& item, std::string slice) {
    Hold(item, std::move(slice));
  });
}

absl::StatusOr<std::optional<RemoteContent::LocalFile>> RemoteContent::Locate(
    const ItemReference& item) {
  if (boot_id_.empty()) return std::nullopt;
  {
    base::MutexLock lock(&mu_);
    const auto located = located_.find(item.batch);
    if (located != located_.end()) return located->second;
  }
  MUSTER_ASSIGN_OR_RETURN(const v1::LocateContentResponse answer,
                          initiators_->LocateContent(item.batch, item.owner, boot_id_));
  std::optional<LocalFile> file;
  if (!answer.path().empty()) file = LocalFile{answer.path(), answer.device(), answer.inode()};
  base::MutexLock lock(&mu_);
  if (located_.size() >= kMaxLocated) located_.clear();
  located_[item.batch] = file;
  return file;
}

void RemoteContent::Forget(uint64_t batch) {
  base::MutexLock lock(&mu_);
  located_.erase(batch);
}

bool RemoteContent::ReadHere(const ItemReference& item, std::string* slice) {
  // An upload gets another name when it is whole, so its path is asked for once more.
  for (int attempt = 0; attempt < 2; ++attempt) {
    const absl::StatusOr<std::optional<LocalFile>> file = Locate(item);
    if (!file.ok() || !file->has_value()) return false;
    if (ReadFile(**file, item, slice)) return true;
    Forget(item.batch);
  }
  // Another user's file, or another container's: from now on the initiator is asked.
  base::MutexLock lock(&mu_);
  located_[item.batch] = std::nullopt;
  return false;
}

bool RemoteContent::ReadFile(const LocalFile& file, const ItemReference& item, std::string* slice) {
  const absl::StatusOr<ledger::ItemBoundary> boundary = boundaries_.Find(item);
  if (!boundary.ok()) return false;
  const os::FileDescriptor fd(open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat opened = {};
  if (fd.get() < 0 || fstat(fd.get(), &opened) != 0) return false;
  const bool is_meant =
      S_ISREG(opened.st_mode) && opened.st_dev == file.device && opened.st_ino == file.inode;
  return is_meant && ReadAt(OpenFile(&fd), item, *boundary, slice).ok();
}

template <typename Take>
absl::Status RemoteContent::Fetch(absl::Span<const ItemReference> items, Take take) {
  v1::ReadItemsRequest request;
  request.set_batch(items.front().batch);
  request.set_owner(items.front().owner);
  request.set_compress(true);
  for (const ItemReference& item : items) {
    v1::ItemToRead* const to_read = request.add_items();
    to_read->set_index(item.index);
    to_read->set_content_hash(item.hash.ToBytes());
  }
  std::string slice;
  bool is_sound = true;
  return initiators_->ReadItems(request, [&](const v1::ReadItemsResponse& piece) {
    is_sound = Append(piece, &slice) && is_sound;
    if (!piece.is_last()) return;
    const auto* const item = std::find_if(
        items.begin(), items.end(),
        [&](const ItemReference& candidate) { return candidate.index == piece.index(); });
    if (is_sound && item != items.end() && base::Fingerprint(slice) == item->hash) {
      take(*item, std::move(slice));
    }
    slice.clear();
    is_sound = true;
  });
}

bool RemoteContent::TakeHeld(const ItemReference& item, std::string* slice) {
  std::string held;
  {
    base::MutexLock lock(&mu_);
    const auto found = held_by_key_.find({item.batch, item.index});
    if (found == held_by_key_.end()) return false;
    const auto entry = found->second;
    held_bytes_ -= entry->slice.size();
    held = std::move(entry->slice);
    held_by_key_.erase(found);
    held_.erase(entry);
  }
  if (base::Fingerprint(held) != item.hash) return false;
  *slice = std::move(held);
  return true;
}

void RemoteContent::Hold(const ItemReference& item, std::string slice) {
  base::MutexLock lock(&mu_);
  const Key key(item.batch, item.index);
  if (held_by_key_.contains(key)) return;
  held_bytes_ += slice.size();
  held_by_key_[key] = held_.insert(held_.end(), {key, std::move(slice)});
  while (held_bytes_ > kMaxHeldBytes) {
    held_bytes_ -= held_.front().slice.size();
    held_by_key_.erase(held_.front().key);
    held_.pop_front();
  }
}

}  // namespace muster::content::remote
