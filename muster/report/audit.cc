// SPDX-License-Identifier: Apache-2.0
#include "muster/report/audit.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "muster/base/status.h"

namespace muster::report {

void RowDigest::Add(const ItemRow& item) {
  Number(static_cast<int64_t>(item.index));
  Field(ItemOutcomeName(item.outcome));
  for (int64_t count : {item.transactions, item.aggregated, item.rejected}) Number(count);
  Field(item.content.ToHex());
  Field(item.result.ToHex());
  Number(item.attempts);
  for (const std::string* text : {&item.handler_version, &item.worker, &item.cause}) Field(*text);
  Number(absl::ToUnixMicros(item.counted));
  EndRow();
}

void RowDigest::Add(absl::string_view group, const GroupRow& row) {
  Field(group);
  for (const std::string& key : row.keys) Field(key);
  for (const base::Decimal& measure : row.measures) Field(measure.ToString());
  EndRow();
}

void RowDigest::Add(const RejectionRow& rejection) {
  Number(static_cast<int64_t>(rejection.item));
  Number(rejection.line);
  Field(rejection.reason);
  EndRow();
}

void RowDigest::Field(absl::string_view text) {
  for (char c : text) {
    switch (c) {
      case '\\':
        line_ += "\\\\";
        break;
      case '\t':
        line_ += "\\t";
        break;
      case '\n':
        line_ += "\\n";
        break;
      case '\r':
        line_ += "\\r";
        break;
      default:
        line_ += c;
    }
  }
  line_ += '\t';
}

void RowDigest::Number(int64_t number) { absl::StrAppend(&line_, number, "\t"); }

void RowDigest::EndRow() {
  line_.back() = '\n';
  sha_.Update(line_);
  line_.clear();
}

absl::StatusOr<std::string> DigestRows(ReportReader& reader, uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<GroupShape> groups, reader.Groups(batch));
  RowDigest digest;
  for (const GroupShape& group : groups) {
    MUSTER_RETURN_IF_ERROR(reader.ForEachRow(
        batch, group.name, [&](const GroupRow& row) { digest.Add(group.name, row); }));
  }
  return digest.Hex();
}

absl::StatusOr<std::string> DigestRejections(ReportReader& reader, uint64_t batch,
                                             int64_t rejected) {
  RowDigest digest;
  int64_t rejections = 0;
  MUSTER_RETURN_IF_ERROR(reader.ForEachRejection(batch, 0, std::numeric_limits<int64_t>::max(),
                                                 [&](const RejectionRow& rejection) {
                                                   ++rejections;
                                                   digest.Add(rejection);
                                                 }));
  if (rejections == rejected) return digest.Hex();
  return absl::FailedPreconditionError(absl::StrCat(
      "batch ", batch, " has ", rejections, " rejections stored, its items say ", rejected));
}

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

namespace {

// What the rows of all items add up to.
struct ItemTotals {
  uint64_t items = 0;
  uint64_t beyond = 0;  // items whose index is not below the batch's number of items
  int64_t transactions = 0;
  RowDigest digest;
};

void AddItem(const ItemRow& item, Receipt* receipt, ItemTotals* totals) {
  ++totals->items;
  totals->beyond += item.index >= receipt->items ? 1 : 0;
  totals->transactions += item.transactions;
  totals->digest.Add(item);
  const bool dead = item.outcome == ItemOutcome::kDeadLettered;
  receipt->items_dead += dead ? 1 : 0;
  receipt->dead_lettered += dead ? item.transactions : 0;
  receipt->aggregated += item.aggregated;
  receipt->rejected += item.rejected;
  receipt->attempts += item.attempts;
  ++receipt->items_by_version[item.handler_version];
  const bool first = totals->items == 1;
  receipt->first_counted = first ? item.counted : std::min(receipt->first_counted, item.counted);
  receipt->last_counted = first ? item.counted : std::max(receipt->last_counted, item.counted);
}

// Indexes are unique in any store, so that their number and their bound say that each is there.
absl::Status CheckWhole(const Receipt& receipt, const ItemTotals& totals) {
  if (totals.items != receipt.items || totals.beyond != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("batch ", receipt.batch, " has ", totals.items, " of ", receipt.items,
                     " items counted, ", totals.beyond, " of them beyond its end"));
  }
  const int64_t accounted = receipt.aggregated + receipt.rejected + receipt.dead_lettered;
  if (static_cast<uint64_t>(totals.transactions) != receipt.transactions ||
      accounted != totals.transactions) {
    return absl::FailedPreconditionError(absl::StrCat(
        "batch ", receipt.batch, " was submitted with ", receipt.transactions,
        " transactions, its items have ", totals.transactions, ", accounted for are ", accounted));
  }
  return absl::OkStatus();
}

// Never: a batch without items.
void StartCounting(Receipt* receipt) {
  receipt->first_counted = absl::InfinitePast();
  receipt->last_counted = absl::InfinitePast();
}

// The running totals that commits keep must agree with the rows that they kept them for.
absl::Status CheckProgress(const Progress& progress, const Receipt& receipt) {
  const bool agrees =
      progress.job == receipt.job && progress.job_revision == receipt.job_revision &&
      static_cast<uint64_t>(progress.items()) == receipt.items &&
      progress.items_dead == receipt.items_dead &&
      static_cast<uint64_t>(progress.transactions) == receipt.transactions &&
      progress.aggregated == receipt.aggregated && progress.rejected == receipt.rejected &&
      progress.dead_lettered == receipt.dead_lettered && progress.attempts == receipt.attempts;
  if (agrees) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("batch ", receipt.batch, "'s running totals are not what its rows add up to"));
}

// Both texts have the same lines in the same order, but for what differs.
std::vector<std::string> Differences(const Receipt& stored, const Receipt& computed) {
  const std::string stored_text = stored.ToText();
  const std::string computed_text = computed.ToText();
  const std::vector<absl::string_view> was = absl::StrSplit(stored_text, '\n');
  const std::vector<absl::string_view> is = absl::StrSplit(computed_text, '\n');
  std::vector<std::string> differences;
  for (size_t i = 0; i < std::max(was.size(), is.size()); ++i) {
    const absl::string_view left = i < was.size() ? was[i] : "";
    const absl::string_view right = i < is.size() ? is[i] : "";
    if (left != right) {
      differences.push_back(absl::StrCat("the receipt says '", left, "', the rows '", right, "'"));
    }
  }
  return differences;
}

// Results that were dropped later may have added to these two; they never become fewer.
void CheckDropped(const Receipt& stored, Receipt* computed, std::vector<std::string>* differences) {
  if (computed->duplicates_dropped < stored.duplicates_dropped ||
      computed->conflicts < stored.conflicts) {
    differences->push_back("fewer duplicates or conflicts are stored than when it was issued");
  }
  computed->duplicates_dropped = stored.duplicates_dropped;
  computed->conflicts = stored.conflicts;
}

void CompareWithRows(ReportReader& reader, Verification* verification) {
  const Receipt& stored = verification->receipt;
  absl::StatusOr<Receipt> computed = BuildReceipt(reader, stored, stored.revision);
  if (!computed.ok()) {
    verification->differences.emplace_back(computed.status().message());
    return;
  }
  CheckDropped(stored, &*computed, &verification->differences);
  for (std::string& difference : Differences(stored, *computed)) {
    verification->differences.push_back(std::move(difference));
  }
}

}  // namespace

absl::StatusOr<Receipt> BuildReceipt(ReportReader& reader, const BatchFacts& facts,
                                     int64_t revision) {
  Receipt receipt;
  static_cast<BatchFacts&>(receipt) = facts;
  receipt.revision = revision;
  StartCounting(&receipt);
  ItemTotals totals;
  MUSTER_RETURN_IF_ERROR(reader.ForEachItem(
      facts.batch, [&](const ItemRow& item) { AddItem(item, &receipt, &totals); }));
  MUSTER_RETURN_IF_ERROR(CheckWhole(receipt, totals));
  MUSTER_ASSIGN_OR_RETURN(const Progress progress, reader.GetProgress(facts.batch));
  MUSTER_RETURN_IF_ERROR(CheckProgress(progress, receipt));
  receipt.duplicates_dropped = progress.duplicates;
  receipt.conflicts = progress.conflicts;
  receipt.items_sha256 = totals.digest.Hex();
  MUSTER_ASSIGN_OR_RETURN(receipt.rows_sha256, DigestRows(reader, facts.batch));
  MUSTER_ASSIGN_OR_RETURN(receipt.rejections_sha256,
                          DigestRejections(reader, facts.batch, receipt.rejected));
  return receipt;
}

bool ProvesTheSame(const Receipt& a, const Receipt& b) {
  Receipt like_a = b;
  like_a.revision = a.revision;
  like_a.duplicates_dropped = a.duplicates_dropped;
  like_a.conflicts = a.conflicts;
  return like_a.ToText() == a.ToText();
}

absl::StatusOr<Verification> VerifyReceipt(ReportReader& reader, uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(const StoredReceipt stored, reader.GetReceipt(batch));
  Verification verification;
  if (base::Sha256Hex(stored.text) != stored.checksum) {
    verification.differences.push_back("the checksum is not that of the receipt's text");
  }
  absl::StatusOr<Receipt> receipt = ParseReceipt(stored.text);
  if (!receipt.ok()) {
    verification.differences.emplace_back(receipt.status().message());
    return verification;
  }
  verification.receipt = *std::move(receipt);
  if (verification.receipt.batch != batch) {
    verification.differences.push_back(
        absl::StrCat("it is the receipt of batch ", verification.receipt.batch));
    return verification;
  }
  CompareWithRows(reader, &verification);
  return verification;
}

}  // namespace muster::report
