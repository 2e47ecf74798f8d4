#include "muster/report/tally.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/report/digest.h"

namespace muster::report {

absl::StatusOr<Tally> TakeTally(ReportReader& reader, uint64_t batch) {
  Tally tally;
  MUSTER_ASSIGN_OR_RETURN(tally.progress, reader.GetProgress(batch));
  RowDigest digest;
  int64_t items = 0;
  int64_t transactions = 0;
  MUSTER_RETURN_IF_ERROR(reader.ForEachItem(batch, [&](const ItemRow& item) {
    ++items;
    transactions += item.transactions;
    ++tally.items_by_version[item.handler_version];
    digest.Add(item);
  }));
  if (items != tally.progress.items() || transactions != tally.progress.transactions) {
    return absl::DataLossError(
        absl::StrCat("batch ", batch, "'s running totals are not what its rows add up to"));
  }
  tally.items_sha256 = digest.Hex();
  MUSTER_ASSIGN_OR_RETURN(tally.rows_sha256, DigestRows(reader, batch));
  MUSTER_ASSIGN_OR_RETURN(tally.rejections_sha256,
                          DigestRejections(reader, batch, tally.progress.rejected));
  return tally;
}

Tally EmptyTally(uint64_t batch) {
  Tally tally;
  tally.progress.batch = batch;
  tally.items_sha256 = tally.rows_sha256 = tally.rejections_sha256 = RowDigest().Hex();
  return tally;
}

}  // namespace muster::report
