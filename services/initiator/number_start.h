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
#include "muster/base/clock.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/counting_desk.h"

namespace muster::initiator {

// Numbers that initiators may have in hand behind the highest that is known.
inline constexpr int64_t kNumbersInHand = 100'000;

// Nothing is owned. `lost`: this process had numbers of the record, so that it was there. Errors
// are the ledger's.
absl::StatusOr<int64_t> FirstBatchNumber(ledger::BatchLedger* ledger, report::CountingDesk* desk,
                                         base::Clock* clock, bool lost);

}  // namespace muster::initiator
