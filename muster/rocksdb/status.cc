#include "muster/rocksdb/status.h"

#include <string>

#include "absl/strings/str_cat.h"
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
  return absl::Status(CodeOf(status), absl::StrCat(context, ": ", status.ToString()));
}

}  // namespace muster::rocksdb
