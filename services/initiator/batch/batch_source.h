// BatchSource: an input as the initiator needs it: cut into slices the first time, and read again
// by recorded boundaries ever after.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/fingerprint.h"
#include "muster/input/byte_source.h"
#include "muster/input/format.h"
#include "muster/input/header.h"
#include "muster/input/slice_reader.h"
#include "muster/job/job.h"
#include "muster/ledger/batch_ledger.h"

namespace muster::initiator::batch {

// How much of its input an item of the job may be.
input::SliceLimits SliceLimitsOf(const job::JobDefinition& job);

// Thread-compatible.
class BatchSource {
 public:
  // Opens the file and reads its header. Errors name the file and what is wrong with it: missing, a
  // folder, empty where a header is due, a column that is not there, not UTF-8.
  static absl::StatusOr<std::unique_ptr<BatchSource>> Open(const std::string& path,
                                                           const input::InputFormat& format);

  // The same for content at `path` that is open already, and perhaps still grows: HasNotArrived as
  // long as its header is not there.
  static absl::StatusOr<std::unique_ptr<BatchSource>> Over(
      std::shared_ptr<const input::ByteSource> bytes, std::string path,
      const input::InputFormat& format);

  // Absolute path.
  const std::string& path() const { return path_; }
  // As ByteSource::size.
  uint64_t size() const { return bytes_->size(); }
  const input::Header& header() const { return header_; }
  // Of the bytes before the first record.
  const base::Fingerprint128& header_fingerprint() const { return header_fingerprint_; }

  // Slices from `start` on.
  input::SliceReader Slices(input::SliceStart start, input::SliceLimits limits) const;
  input::SliceStart FirstRecord() const;
  // Where a slice of this source lies, to be recorded.
  absl::StatusOr<ledger::ItemBoundary> BoundaryOf(const input::Slice& slice) const;
  // What follows a recorded item.
  absl::StatusOr<input::SliceStart> After(const ledger::ItemBoundary& item) const;

  // The bytes of a recorded item; OutOfRange when the source ends before it does.
  absl::StatusOr<std::string> Read(const ledger::ItemBoundary& item) const;
  // Their fingerprint, without holding them in memory.
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

}  // namespace muster::initiator::batch
