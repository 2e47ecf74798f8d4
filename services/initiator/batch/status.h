// SPDX-License-Identifier: Apache-2.0

// Converts the status of a batch into the message that BatchService answers.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "muster/v1/batch_service.pb.h"
#include "services/initiator/batch/scheduler.h"

namespace muster::initiator::batch {

// The rate of an incomplete batch is measured up to `now`.
v1::BatchStatus StatusOf(const BatchStatus& batch_status, uint64_t revision, absl::Time now);

}  // namespace muster::initiator::batch
