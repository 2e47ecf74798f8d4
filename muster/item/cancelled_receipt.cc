// SPDX-License-Identifier: Apache-2.0
#include "muster/item/cancelled_receipt.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/fingerprint.h"
#include "muster/base/status.h"

namespace muster::item {
namespace {

constexpr absl::string_view kCancelledForm = "2";
// No name has a line feed in it, so that no other line can be this one.
constexpr absl::string_view kSoFarLine = "\ncounts so_far\n";

absl::Status CheckCancelled(const ledger::Batch& batch, const report::Progress& counted) {
  if (batch.state != ledger::BatchState::kCancelled) {
    return absl::FailedPreconditionError(absl::StrCat("batch ", batch.number, " is not cancelled"));
  }
  if (static_cast<uint64_t>(counted.items()) > batch.items ||
      static_cast<uint64_t>(counted.transactions) > batch.transactions) {
    return absl::DataLossError(absl::StrCat("batch ", batch.number, " has ", batch.items,
                                            " items and ", batch.transactions,
                                            " transactions in the ledger, but the report counts ",
                                            counted.items(), " and ", counted.transactions));
  }
  return absl::OkStatus();
}

// No items are added to a cancelled batch, so nothing more can be counted once all have their row.
std::string StandingLines(const ledger::Batch& batch, const report::Progress& counted,
                          absl::Time now) {
  if (static_cast<uint64_t>(counted.items()) == batch.items) return "counts final\n";
  return absl::StrCat(kSoFarLine.substr(1), "as_of ", report::ReceiptTime(now), "\n");
}

std::string CountLines(const ledger::Batch& batch, const report::Tally& tally) {
  const report::Progress& counted = tally.progress;
  const uint64_t uncounted = batch.transactions - static_cast<uint64_t>(counted.transactions);
  return absl::StrCat(
      absl::StrCat("items ", batch.items, "\nitems_counted ", counted.items(), "\nitems_dead ",
                   counted.items_dead, "\ntransactions ", batch.transactions, "\naggregated ",
                   counted.aggregated, "\nrejected ", counted.rejected, "\ndead_lettered ",
                   counted.dead_lettered, "\nuncounted ", uncounted, "\n"),
      report::VersionLines(tally.items_by_version),
      absl::StrCat("attempts ", counted.attempts, "\nduplicates_dropped ", counted.duplicates,
                   "\nconflicts ", counted.conflicts, "\n"));
}

std::string TimeLines(const ledger::Batch& batch, const report::Progress& counted) {
  const absl::Time never = absl::InfinitePast();
  return absl::StrCat("created ", report::ReceiptTime(batch.created), "\nfirst_counted ",
                      report::ReceiptTime(counted.first_counted.value_or(never)), "\nlast_counted ",
                      report::ReceiptTime(counted.last_counted.value_or(never)), "\n");
}

}  // namespace

absl::StatusOr<report::StoredReceipt> CancelledReceipt(const ledger::Batch& batch,
                                                       const report::Tally& tally, absl::Time now) {
  MUSTER_RETURN_IF_ERROR(CheckCancelled(batch, tally.progress));
  std::string text = absl::StrCat(
      "muster-receipt ", kCancelledForm, "\nbatch ", batch.number, "\nstate cancelled\ncancelled ",
      report::ReceiptTime(batch.completed.value_or(absl::InfinitePast())), "\ncancel_reason ",
      report::EscapeName(batch.cancel_reason), "\n");
  absl::StrAppend(&text, StandingLines(batch, tally.progress, now), "job ",
                  report::EscapeName(batch.job), "\njob_revision ",
                  report::EscapeName(batch.job_revision), "\nhandler_version ",
                  report::EscapeName(batch.handler_version), "\n");
  absl::StrAppend(&text, CountLines(batch, tally), TimeLines(batch, tally.progress));
  absl::StrAppend(&text, "items_sha256 ", tally.items_sha256, "\nrows_sha256 ", tally.rows_sha256,
                  "\nrejections_sha256 ", tally.rejections_sha256, "\n");
  std::string checksum = base::Sha256Hex(text);
  return report::StoredReceipt{std::move(text), std::move(checksum)};
}

bool CountsMayChange(const report::StoredReceipt& receipt) {
  return absl::StrContains(receipt.text, kSoFarLine);
}

}  // namespace muster::item
