// SPDX-License-Identifier: Apache-2.0

// FirstBatchNumber: where batch numbers begin when the record that counts them is missing.
//
// The mesh is new then, or its broker has lost its data. Numbers that were given before live on in
// ledgers, reports and receipts, and must not come again: the report would take the results of one
// batch for those of the other. The initiator's own ledger and the report show the highest number
// that they know, but not the numbers that other initiators have drawn and not used yet. So numbers
// continue beyond any value that the counter can have reached:
//
// clang-format off
//   neither the ledger nor the report knows a batch    1
//   otherwise, or the report is away                   the seconds since 2020, or the highest
//                                                      known number + kNumbersInHand, if that
//                                                      is more
// clang-format on
//
// The seconds exceed every counter that rose by less than one a second on average; the report knows
// the numbers of a counter that rose faster.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/bus/roster.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/report_client.h"

namespace muster::initiator::batch {

// Numbers beyond the highest known one that initiators may have drawn already.
inline constexpr int64_t kNumbersInHand = 100'000;

// An initiator that has just started may not have received the controller's heartbeat yet.
inline const absl::Duration kHeartbeatWarmup = 3 * bus::kHeartbeatInterval;

// Nothing is owned. `lost`: this process drew numbers from the record before, so the record has
// existed. `up`: how long this process has run. Errors are the ledger's. Unavailable: the report
// does not answer yet; ask again soon. So a new mesh begins at 1 even if its first batch is
// submitted in its first second.
absl::StatusOr<int64_t> FirstBatchNumber(ledger::BatchLedger* ledger,
                                         report::ReportClient* report_client, base::Clock* clock,
                                         bool lost, absl::Duration up);

// The highest number that the ledger or the report knows; 0: none. The counter may have been
// restored from a copy that is older than they are. `up` and errors are those of FirstBatchNumber.
// std::nullopt: the report is away for longer, and batches do not wait for it; a warning is logged.
absl::StatusOr<std::optional<int64_t>> HighestBatchNumber(ledger::BatchLedger* ledger,
                                                          report::ReportClient* report_client,
                                                          absl::Duration up);

}  // namespace muster::initiator::batch
