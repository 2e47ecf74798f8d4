#include "muster/sync/rocksdb/check.h"

#include <memory>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/rocksdb/workbench.h"
#include "muster/sync/rocksdb/record_codec.h"
#include "muster/sync/rocksdb/rocks_sync_store.h"

namespace muster::sync::rocksdb {

absl::StatusOr<os::CheckSummary> CheckSync(const std::string& dir,
                                           const os::CheckOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const auto session, muster::rocksdb::RepairSession::Open(
                                                  dir, "sync", SyncDatabase({}), options,
                                                  /*may_begin_anew=*/true));
  const auto check = [&](absl::string_view key, absl::string_view value) -> absl::Status {
    session->Count(1);
    const absl::Status decoded = DecodeRecord(key, value).status();
    if (!absl::IsDataLoss(decoded)) return decoded;
    os::Damage damage{.kind = "record",
                      .name = absl::StrCat("key '", absl::CHexEscape(key), "'"),
                      .why = std::string(decoded.message()),
                      .remedy = "the record is taken away"};
    damage.records = {session->Stored(0, key, value)};
    return session->Found(std::move(damage));
  };
  MUSTER_RETURN_IF_ERROR(session->ForEach(0, check));
  return session->Finish();
}

}  // namespace muster::sync::rocksdb
