// SPDX-License-Identifier: Apache-2.0

// BatchSource: the input of a batch. The initiator cuts it into slices once, and later reads it
// again by the recorded boundaries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/base/fingerprint.h"
#include "muster/input/byte_source.h"
#include "muster/input/format.h"
#include "muster/input/slice_reader.h"
#include "muster/job/job.h"
#include "muster/ledger/batch_ledger.h"
#include "services/initiator/batch/block_hashes.h"

namespace muster::initiator::batch {

// The limits of one item of the job: how much input it may hold.
input::SliceLimits SliceLimitsOf(const job::JobDefinition& job);

// InvalidArgument, in words for the user: no batch of `format` is to be made of `content`, of which
// nothing was split yet (input::CheckContentKind, ReadHeader). HasNotArrived: it still grows, and
// cannot be told yet.
absl::Status CheckNewContent(const input::ByteSource& content, const input::InputFormat& format);

// Begins the request id of a batch that retries the records that another one rejected
// (api/retries.h). Its content is not held against CheckNewContent: it may have no other records
// than those that cannot be read.
inline constexpr absl::string_view kRetryRequest = "muster-retry:";

// Thread-compatible.
class BatchSource {
 public:
  // Opens the file and reads its header. Errors name the file and what is wrong with it: missing, a
  // folder, empty where a header is due, a column that is not there, not UTF-8. `is_new`: nothing
  // of it was split yet, and it is held against CheckNewContent.
  static absl::StatusOr<std::unique_ptr<BatchSource>> Open(const std::string& path,
                                                           const input::InputFormat& format,
                                                           bool is_new = false);

  // The same for content at `path` that is already open and may still grow. HasNotArrived: its
  // header has not arrived yet.
  static absl::StatusOr<std::unique_ptr<BatchSource>> Over(
      std::shared_ptr<const input::ByteSource> bytes, std::string path,
      const input::InputFormat& format);

  // Absolute path.
  const std::string& path() const { return path_; }
  const std::shared_ptr<const input::ByteSource>& bytes() const { return bytes_; }
  // As ByteSource::size.
  uint64_t size() const { return bytes_->size(); }
  const input::Header& header() const { return header_; }
  // Of the bytes before the first record.
  const base::Fingerprint128& header_fingerprint() const { return header_fingerprint_; }

  // Slices from `start` on.
  input::SliceReader Slices(input::SliceStart start, input::SliceLimits limits) const;
  input::SliceStart FirstRecord() const;
  // The boundary of a slice of this source, to be recorded in the ledger.
  absl::StatusOr<ledger::ItemBoundary> BoundaryOf(const input::Slice& slice) const;
  // What follows a recorded item.
  absl::StatusOr<input::SliceStart> After(const ledger::ItemBoundary& item) const;

  // The bytes of a recorded item; OutOfRange when the source ends before it does.
  absl::StatusOr<std::string> Read(const ledger::ItemBoundary& item) const;
  // The fingerprint of the bytes at [offset, offset + length), without holding them in memory.
  // Cancelled when `stop` is requested meanwhile.
  absl::StatusOr<base::Fingerprint128> Fingerprint(uint64_t offset, uint64_t length,
                                                   const std::stop_token& stop = {}) const;

 private:
  BatchSource(std::string path, const input::InputFormat& format,
              std::shared_ptr<const input::ByteSource> bytes, input::Header header);

  // Calls `visit` with the bytes of [offset, offset + length), in pieces.
  template <typename Visit>
  absl::Status ReadPieces(uint64_t offset, uint64_t length, Visit visit) const;

  const std::string path_;
  const input::InputFormat format_;
  const std::shared_ptr<const input::ByteSource> bytes_;
  const input::Header header_;
  base::Fingerprint128 header_fingerprint_;
};

// Inline content comes in one piece and is short enough for its batch's record: one sync of the
// ledger makes the batch, its content and its items durable.

// The limit is low because each read of a batch copies its record.
inline constexpr size_t kMaxInlineContentBytes = size_t{16} << 10;
// The most items that are recorded with inline content; each read of one of them reads all.
inline constexpr size_t kMaxInlineItems = 128;

// Sealed: `hash` is that of `data`, which is not owned and has 1 to kMaxInlineContentBytes bytes.
struct InlineContent {
  absl::string_view data;
  base::Fingerprint128 hash;
};

// The hashes of `source`, which has stopped growing. DataLoss, with what differs, unless it is what
// was sealed. Reads all of it if its size is right. Cancelled when `stop` is requested meanwhile.
absl::StatusOr<BlockHashes> CheckSealed(const input::ByteSource& source,
                                        const ledger::SealedContent& sealed,
                                        const std::stop_token& stop);

// The items of `content`, kMaxInlineItems at most; none if the job cannot run on `content`, or has
// order_by. The
// batch's enqueuer continues after these items, and reports what is wrong.
std::vector<ledger::ItemBoundary> SplitInline(const job::JobDefinition& job,
                                              absl::string_view content);

// The content of a batch whose source is a user's file. Statuses are those of FileSource.
absl::StatusOr<std::shared_ptr<const input::ByteSource>> OpenUsersContent(
    const ledger::Batch& batch);

// A source that reads `content`.
std::shared_ptr<const input::ByteSource> SourceOf(std::string content);

}  // namespace muster::initiator::batch
