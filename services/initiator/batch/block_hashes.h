// SPDX-License-Identifier: Apache-2.0

// BlockHashes: hashes of the blocks of a batch's content, taken when it arrives, or when all of it
// is compared with its seal. The file is held against them when it is read: what the disk, or a
// person, has changed meanwhile would be split as if it had been sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/base/fingerprint.h"
#include "muster/input/byte_source.h"

namespace muster::initiator::batch {

// A read verifies whole blocks, so a short one costs a block; the hashes take a ten-thousandth of
// the content in memory.
inline constexpr uint64_t kBlockBytes = uint64_t{256} << 10;

// Not thread-safe.
class BlockHashes {
 public:
  struct Block {
    uint64_t begin = 0;
    uint64_t end = 0;
    std::optional<base::Fingerprint128> hash;  // nullopt: unknown

    friend bool operator==(const Block&, const Block&) = default;
  };

  // The first `found` bytes have no hash: the process did not see them arrive.
  explicit BlockHashes(uint64_t found = 0) { GoOnAt(found); }

  // The next piece goes to `end`, which is where the last one ended, or before: the rest is
  // dropped. The block around a new end is unknown.
  void GoOnAt(uint64_t end);
  void Append(uint64_t offset, absl::string_view data);

  // The block of the byte at `offset`, as far as it has arrived.
  Block At(uint64_t offset) const;

 private:
  std::vector<std::optional<base::Fingerprint128>> whole_;
  uint64_t end_ = 0;
  base::Fingerprinter tail_;  // of the block that is not whole yet
  bool tail_is_known_ = true;
};

// As ByteSource::Read.
using ReadBytes = std::function<absl::StatusOr<size_t>(uint64_t offset, char* out, size_t bytes)>;

// Holds what was read at [offset, offset + bytes) into `out` against the hashes of its blocks,
// which `block_at` answers as BlockHashes::At. Reads a block again of which `out` has a part only.
// DataLoss, which names `path`: these are other bytes. Otherwise errors of `read`.
absl::Status CheckBlocks(absl::string_view path,
                         const std::function<BlockHashes::Block(uint64_t offset)>& block_at,
                         const ReadBytes& read, uint64_t offset, char* out, size_t bytes);

// Whole content that is held against its hashes with each read. Thread-safe.
class CheckedSource final : public input::ByteSource {
 public:
  // `path` is for errors.
  CheckedSource(std::string path, std::shared_ptr<const input::ByteSource> bytes,
                BlockHashes hashes)
      : path_(std::move(path)), bytes_(std::move(bytes)), hashes_(std::move(hashes)) {}

  uint64_t size() const override { return bytes_->size(); }
  // DataLoss, too: it has other bytes than before.
  absl::StatusOr<size_t> Read(uint64_t offset, char* out, size_t bytes) const override;

 private:
  const std::string path_;
  const std::shared_ptr<const input::ByteSource> bytes_;
  const BlockHashes hashes_;
};

}  // namespace muster::initiator::batch
