// SPDX-License-Identifier: Apache-2.0

// Checks the data that the backends of one machine have stored in a data directory, and repairs it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/base/clock.h"
#include "muster/blob/blob_store.h"
#include "muster/os/quarantine.h"
#include "muster/queue/queue_store.h"

namespace muster::backend {

struct DataDirCheck {
  os::CheckOptions check;
  std::string account;           // given to a queue with a lost name
  base::Clock* clock = nullptr;  // not owned
  // Returns what is wrong with the content of a body with sound bytes. `blobs` holds only sound
  // blobs.
  std::function<absl::Status(const queue::QueueId&, absl::string_view body, blob::BlobStore* blobs)>
      check_body;
};

struct DataDirSummary : os::CheckSummary {
  uint64_t last_batch = 0;  // the highest batch number in the ledger or the report
};

// Checks blobs, queue, ledger, report, sync store and event streams, in this order; skips those
// that do not exist. A part that cannot be read is reported in the findings, and the other parts
// are still checked. A repair opens the batches again that the ledger has as complete and of which
// the report lacks items: the run or the initiator that has them puts these items again.
// FailedPrecondition: a process works with the directory, or a newer muster wrote it. NotFound:
// nothing is there.
absl::StatusOr<DataDirSummary> CheckDataDir(const std::string& data_dir,
                                            const DataDirCheck& options);

}  // namespace muster::backend
