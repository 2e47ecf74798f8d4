// SPDX-License-Identifier: Apache-2.0

// MeasuredQuote: the forecast of a batch where no scaling agent makes one: from the speed of the
// last batches of its job, as the ledger has them.
#pragma once

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/job/job.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/v1/batch_service.pb.h"

namespace muster::initiator::api {

// Batches that speed is measured of, at most: the newest ones that are complete. Older ones had
// other workers.
inline constexpr int kMeasuredBatches = 10;

// Their transactions over their time, from submit to end, with the workers that there were; what is
// open of the job comes first. Reads at most 2 * item::kMaxBatchesRead batches. `ledger` is not
// owned. NotFound: no batch of the job was ever complete.
absl::StatusOr<v1::QuoteResponse> MeasuredQuote(const v1::QuoteRequest& request,
                                                const job::JobDefinition& job,
                                                ledger::BatchLedger* ledger, absl::Time now);

}  // namespace muster::initiator::api
