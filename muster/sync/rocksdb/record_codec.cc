// SPDX-License-Identifier: Apache-2.0
#include "muster/sync/rocksdb/record_codec.h"

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/rocksdb/checked_value.h"

namespace muster::sync::rocksdb {
namespace {

constexpr char kFormat = 1;
constexpr size_t kHeaderBytes = 9;

}  // namespace

std::string EncodeRecord(absl::string_view data, uint64_t version) {
  std::string payload(1, kFormat);
  muster::rocksdb::AppendKey(version, &payload);
  absl::StrAppend(&payload, data);
  return muster::rocksdb::CheckedValue(payload);
}

absl::StatusOr<sync::VersionedData> DecodeRecord(absl::string_view key, absl::string_view value) {
  const std::string what = absl::StrCat("sync record '", key, "'");
  MUSTER_ASSIGN_OR_RETURN(const absl::string_view payload,
                          muster::rocksdb::CheckedPayload(value, what));
  if (!payload.empty() && payload[0] != kFormat) {
    return absl::FailedPreconditionError(absl::StrCat(
        what, " has format ", static_cast<int>(payload[0]), ", which this muster does not know"));
  }
  if (payload.size() < kHeaderBytes) {
    return absl::DataLossError(absl::StrCat(what, " is cut off"));
  }
  const uint64_t version = muster::rocksdb::KeyNumber(payload.substr(1));
  if (version == sync::kAbsent) {
    return absl::DataLossError(absl::StrCat(what, " has no version"));
  }
  return sync::VersionedData{.data = std::string(payload.substr(kHeaderBytes)), .version = version};
}

}  // namespace muster::sync::rocksdb
