// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch/block_hashes.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"

namespace muster::initiator::batch {
namespace {

using Block = BlockHashes::Block;

absl::Status Compare(absl::string_view path, absl::string_view text, const Block& block) {
  if (base::Fingerprint(text) == block.hash) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(path, " has changed: its bytes ", block.begin, " to ", block.end,
                   " are not those that arrived. Put it back as it was, or cancel the batch and "
                   "submit it again"));
}

// Reads the block, and writes the part of it that `out` has once more.
absl::Status ReadBlock(absl::string_view path, const Block& block, const ReadBytes& read,
                       uint64_t offset, char* out, size_t bytes) {
  std::string text(block.end - block.begin, '\0');
  MUSTER_ASSIGN_OR_RETURN(const size_t got, read(block.begin, text.data(), text.size()));
  MUSTER_RETURN_IF_ERROR(Compare(path, absl::string_view(text.data(), got), block));
  const uint64_t from = std::max(block.begin, offset);
  const uint64_t to = std::min(block.end, offset + bytes);
  std::copy_n(text.data() + (from - block.begin), to - from, out + (from - offset));
  return absl::OkStatus();
}

}  // namespace

void BlockHashes::GoOnAt(uint64_t end) {
  if (end == end_) return;
  whole_.resize(end / kBlockBytes);
  end_ = end;
  tail_ = base::Fingerprinter();
  tail_is_known_ = end % kBlockBytes == 0;
}

void BlockHashes::Append(uint64_t offset, absl::string_view data) {
  GoOnAt(offset);
  while (!data.empty()) {
    const absl::string_view part = data.substr(0, kBlockBytes - end_ % kBlockBytes);
    data.remove_prefix(part.size());
    tail_.Update(part);
    end_ += part.size();
    if (end_ % kBlockBytes != 0) continue;
    whole_.push_back(At(end_ - 1).hash);
    tail_ = base::Fingerprinter();
    tail_is_known_ = true;
  }
}

BlockHashes::Block BlockHashes::At(uint64_t offset) const {
  const uint64_t index = offset / kBlockBytes;
  const uint64_t begin = index * kBlockBytes;
  if (index < whole_.size()) return {begin, begin + kBlockBytes, whole_[index]};
  if (!tail_is_known_) return {begin, end_, std::nullopt};
  return {begin, end_, tail_.Digest()};
}

absl::Status CheckBlocks(absl::string_view path,
                         const std::function<Block(uint64_t offset)>& block_at,
                         const ReadBytes& read, uint64_t offset, char* out, size_t bytes) {
  for (uint64_t at = offset; at < offset + bytes;) {
    const Block block = block_at(at);
    const bool is_whole = block.begin >= offset && block.end <= offset + bytes;
    absl::Status same;
    if (block.hash.has_value()) {
      same = is_whole
                 ? Compare(path, {out + (block.begin - offset), block.end - block.begin}, block)
                 : ReadBlock(path, block, read, offset, out, bytes);
    }
    // A writer may have dropped a part of the block, or added one, meanwhile.
    if (!same.ok() && block_at(at) != block) continue;
    MUSTER_RETURN_IF_ERROR(same);
    at = block.end;
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> CheckedSource::Read(uint64_t offset, char* out, size_t bytes) const {
  MUSTER_ASSIGN_OR_RETURN(const size_t got, bytes_->Read(offset, out, bytes));
  const auto block_at = [this](uint64_t at) { return hashes_.At(at); };
  const auto read = [this](uint64_t at, char* to, size_t size) {
    return bytes_->Read(at, to, size);
  };
  MUSTER_RETURN_IF_ERROR(CheckBlocks(path_, block_at, read, offset, out, got));
  return got;
}

}  // namespace muster::initiator::batch
