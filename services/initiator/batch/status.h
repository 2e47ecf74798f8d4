// A batch's batch_status as BatchService tells it.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "muster/v1/batch_service.pb.h"
#include "services/initiator/batch/scheduler.h"

namespace muster::initiator::batch {

// `now` is what an incomplete batch's rate is reckoned to.
v1::BatchStatus StatusOf(const BatchStatus& batch_status, uint64_t revision, absl::Time now);

// Whether nothing of the batch will change any more, but for a redrive.
bool IsOver(ledger::BatchState state);

}  // namespace muster::initiator::batch
