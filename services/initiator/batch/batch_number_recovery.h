// Where batch numbers begin when the record that counts them is not there.
//
// The mesh is new then, or its broker has lost its data. Numbers that were given before live on in
// ledgers, reports and receipts, and must not come again: what was counted under one would be taken
// for the results of the other batch. The own ledger and the report say how far they had come, but
// not what other initiators have drawn and told nobody of; so numbers go on where no counter can
// have got to:
//
//   nobody knows of any batch           1
//   otherwise, or the report is away    seconds since 2020, or well behind the highest that is
//   known
//
// The seconds are beyond every counter that went up less than once a second on the average, and
// what went up faster is known to the report.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/bus/roster.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/report_client.h"

namespace muster::initiator::batch {

// Numbers that initiators may have in hand behind the highest that is known.
inline constexpr int64_t kNumbersInHand = 100'000;

// Who has just begun may not have heard of the controller yet.
inline const absl::Duration kHeartbeatWarmup = 3 * bus::kHeartbeatInterval;

// Nothing is owned. `lost`: this process had numbers of the record, so that it was there. `up`: how
// long it is there. Errors are the ledger's. Unavailable: the report cannot be asked yet, and may
// be in a moment; a new mesh begins at 1 even if its first batch is submitted in its first second.
absl::StatusOr<int64_t> FirstBatchNumber(ledger::BatchLedger* ledger,
                                         report::ReportClient* report_client, base::Clock* clock,
                                         bool lost, absl::Duration up);

}  // namespace muster::initiator::batch
