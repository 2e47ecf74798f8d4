// Checks what the backends of one machine have stored in a data directory, and mends it.
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
  std::string account;           // of a queue whose name is lost
  base::Clock* clock = nullptr;  // not owned
  // What is wrong with a message's body, though its bytes are sound. `blobs` are those that are
  // sound.
  std::function<absl::Status(const queue::QueueId&, absl::string_view body, blob::BlobStore* blobs)>
      check_body;
};

struct DataDirSummary : os::CheckSummary {
  uint64_t last_batch = 0;  // the highest number that the ledger speaks of
};

// Blobs, queue, ledger and sync store, in this order; what is not there is passed over. A part that
// cannot be looked at is told to the findings, and does not hide the others. FailedPrecondition: a
// process works with the directory, or a newer muster wrote it. NotFound: nothing is there.
absl::StatusOr<DataDirSummary> CheckDataDir(const std::string& data_dir,
                                            const DataDirCheck& options);

}  // namespace muster::backend
