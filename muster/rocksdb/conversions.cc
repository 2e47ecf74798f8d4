// SPDX-License-Identifier: Apache-2.0
#include "muster/rocksdb/conversions.h"

#include "absl/base/attributes.h"
#include "absl/strings/str_cat.h"
#include "muster/base/damage.h"
#include "rocksdb/status.h"

namespace muster::rocksdb {

namespace {

absl::StatusCode IoCode(const ::rocksdb::Status& status) {
  return IsDiskFull(status) ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kUnavailable;
}

absl::StatusCode CodeOf(const ::rocksdb::Status& status) {
  if (status.IsMemoryLimit()) return absl::StatusCode::kResourceExhausted;
  switch (status.code()) {
    case ::rocksdb::Status::kNotFound:
      return absl::StatusCode::kNotFound;
    case ::rocksdb::Status::kCorruption:
      return absl::StatusCode::kDataLoss;
    case ::rocksdb::Status::kIOError:
      return IoCode(status);
    // RocksDB says so of a read-only database, and of a feature that the database lacks.
    case ::rocksdb::Status::kNotSupported:
    case ::rocksdb::Status::kInvalidArgument:
      return absl::StatusCode::kFailedPrecondition;
    case ::rocksdb::Status::kBusy:
    case ::rocksdb::Status::kTryAgain:
    case ::rocksdb::Status::kTimedOut:
    case ::rocksdb::Status::kIncomplete:
    case ::rocksdb::Status::kAborted:
    case ::rocksdb::Status::kShutdownInProgress:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

bool IsDiskFull(const ::rocksdb::Status& status) {
  return status.IsNoSpace() || status.subcode() == ::rocksdb::Status::kSpaceLimit;
}

absl::Status ToStatus(const ::rocksdb::Status& status, absl::string_view context) {
  if (status.ok()) return absl::OkStatus();
  if (status.IsCorruption()) base::NoteDamage(base::Damaged::kStore);
  return absl::Status(CodeOf(status), absl::StrCat(context, ": ", status.ToString()));
}

// Not inlined, so that it is a frame of its own in what a sanitizer reports.
ABSL_ATTRIBUTE_NOINLINE std::string Copy(const ::rocksdb::Slice& slice) { return slice.ToString(); }

}  // namespace muster::rocksdb
