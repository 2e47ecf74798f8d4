// SPDX-License-Identifier: Apache-2.0

// SubmitWhole: submits a batch whose content this process has as a whole, as BatchService.Submit
// does for a stream.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/v1/batch_service.pb.h"
#include "services/initiator/batch/scheduler.h"
#include "services/initiator/submit/submissions.h"
#include "services/initiator/submit/uploads.h"

namespace muster::initiator::submit {

// Nothing is owned.
struct SubmitTools {
  Submissions* submissions = nullptr;
  batch::BatchScheduler* scheduler = nullptr;
  Uploads* uploads = nullptr;
  ledger::BatchLedger* ledger = nullptr;
};

// Answers the batch of the request id: the one that is there already, at this or at another
// initiator, also if it is cancelled here or was submitted when its job was another; or else a new
// one, once `content`, at least 1 byte, is durable as a whole. Thread-safe. Statuses are those of
// BatchService.Submit for a header; Unavailable, too, if the content cannot be made durable now.
// After an error, the same call again comes to the same batch.
absl::StatusOr<uint64_t> SubmitWhole(const SubmitTools& tools, const v1::SubmitHeader& header,
                                     absl::string_view content);

}  // namespace muster::initiator::submit
