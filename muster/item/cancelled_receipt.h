// SPDX-License-Identifier: Apache-2.0

// The receipt of a cancelled batch: what was counted of it, and how much was not.
//
// Unlike that of a complete batch (report/receipt.h), this receipt is not issued once and kept. It
// is made of the ledger and of the report's rows at each request. Items that were being processed
// when the batch was cancelled may still be done, and results that were on their way are counted:
// until every item is accounted for, the text says that its counts are those of the moment.
//
//   muster-receipt 2                    the form's version
//   batch 7
//   state cancelled
//   cancelled 2011-12-09T12:50:03Z
//   cancel_reason a mistake             empty: none was given
//   counts so_far                       they may still change; final: every item is accounted for,
//                                       and nothing but a redrive changes them
//   as_of 2011-12-09T12:50:04Z          the time of the request; only while the counts may change
//   job retail
//   job_revision 5f1c…
//   handler_version 1                   that the batch is bound to; empty: to none
//   items 1084                          that it was split into until it was cancelled
//   items_counted 5
//   items_dead 0                        of these, dead-lettered
//   transactions 541909                 = aggregated + rejected + dead_lettered + uncounted
//   aggregated 2500
//   rejected 0
//   dead_lettered 0
//   uncounted 539409                    nothing of these is in the report
//   items_by_version 5 1                one line per handler version: items, version
//   attempts 5                          handler starts of the counted items
//   duplicates_dropped 0
//   conflicts 0
//   created 2011-12-09T12:50:00Z
//   first_counted 2011-12-09T12:50:01.000042Z
//   last_counted 2011-12-09T12:50:02.000042Z
//   items_sha256 …                      of the rows that are there (report/audit.h)
//   rows_sha256 …
//   rejections_sha256 …
//
// The checksum is the SHA-256 of that text.
#pragma once

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/audit.h"
#include "muster/report/receipt.h"

namespace muster::item {

// `tally` is taken at `now`, after `batch` was read from the ledger. FailedPrecondition: the batch
// is not cancelled. DataLoss: more is counted of it than the ledger has.
absl::StatusOr<report::StoredReceipt> CancelledReceipt(const ledger::Batch& batch,
                                                       const report::Tally& tally, absl::Time now);

// Whether the counts in the text of a receipt may still change.
bool CountsMayChange(const report::StoredReceipt& receipt);

}  // namespace muster::item
