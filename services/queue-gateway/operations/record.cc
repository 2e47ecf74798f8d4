// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/record.h"

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"

namespace muster::queue_gateway::operations {

absl::Status WriteRecord(sync::OptimisticSyncStore* store, absl::string_view key,
                         const MakeRecord& make) {
  for (int attempt = 0; attempt < kMaxWriteAttempts; ++attempt) {
    MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData before, store->Get(key));
    MUSTER_ASSIGN_OR_RETURN(const std::string data, make(before));
    MUSTER_ASSIGN_OR_RETURN(const bool written, store->TryWrite(key, data, before.version));
    if (written) return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat("record '", key, "': others write it all the time"));
}

}  // namespace muster::queue_gateway::operations
