// SPDX-License-Identifier: Apache-2.0

// BatchStatus: the status of a batch, and the message that BatchService answers of it.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/report_store.h"
#include "muster/v1/batch_service.pb.h"
#include "services/initiator/batch/engine.h"
#include "services/initiator/retention/remover.h"

namespace muster::initiator::batch {

struct BatchStatus {
  ledger::Batch batch;
  report::Progress counted;            // all zero before anything was counted
  std::optional<SplitProgress> split;  // nullopt: no thread works on the batch here
  double split_share = 0;              // of the content that has arrived: 0 to 1
  absl::Status problem;                // the error that the batch waits for to pass; OK: none
  // Items that are recorded and not put, for the queue is full; then `problem` says so.
  uint64_t held_back_items = 0;
  // Why `counted` is not known, for a list, which shows the batch all the same; OK: it is.
  absl::Status counts_problem;
  // What keeps the batch, which is over, from being removed; nullopt: nothing does.
  std::optional<retention::RemovalProblem> removal_problem = std::nullopt;
};

// The rate of an incomplete batch is measured up to `now`.
v1::BatchStatus StatusOf(const BatchStatus& batch_status, uint64_t revision, absl::Time now);

}  // namespace muster::initiator::batch
