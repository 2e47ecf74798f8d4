// SPDX-License-Identifier: Apache-2.0
#include "muster/report/sqlite/commit.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status.h"
#include "muster/report/sqlite/batch_rows.h"
#include "muster/report/sqlite/output_rows.h"
#include "muster/report/sqlite/retries.h"

namespace muster::report::sqlite {
namespace {

using report::CountedItem;
using report::ItemFacts;
using report::ItemOutcome;
using report::ItemVerdict;
using report::Progress;
using report::Verdict;

std::string ItemName(const ItemFacts& item) { return absl::StrCat(item.batch, "/", item.index); }

// The wall clock may step back: first and last are the least and the greatest.
void StampCounted(absl::Time now, Progress* progress) {
  progress->first_counted = std::min(progress->first_counted.value_or(now), now);
  progress->last_counted = std::max(progress->last_counted.value_or(now), now);
}

Verdict VerdictOf(const CountedItem& item) {
  return item.outcome == ItemOutcome::kAggregated ? Verdict::kCounted : Verdict::kDeadLettered;
}

std::optional<int64_t> Int64Of(const base::Decimal& value) {
  if (value.units() < std::numeric_limits<int64_t>::min() ||
      value.units() > std::numeric_limits<int64_t>::max()) {
    return std::nullopt;
  }
  return static_cast<int64_t>(value.units());
}

absl::Status AddRow(Statement* statement, uint64_t batch, const report::GroupShape& shape,
                    const report::RowMerger::Row& row) {
  statement->Bind(batch);
  int position = 1;
  for (const std::string& key : *row.keys) statement->BindOne(++position, key);
  std::vector<std::string> texts;  // live until the step
  texts.reserve(shape.measures.size());
  for (size_t i = 0; i < shape.measures.size(); ++i) {
    if (!shape.measures[i].is_int) {
      statement->BindOne(++position, texts.emplace_back(row.measures[i].ToString()));
      continue;
    }
    const std::optional<int64_t> whole = Int64Of(row.measures[i]);
    if (!whole) return absl::OutOfRangeError("the sum does not fit 64 bits");
    statement->BindOne(++position, *whole);
  }
  return statement->Finish();
}

}  // namespace

CommitRun::CommitRun(Connection* connection, ItemRows* items, AddRowStatements* add_row,
                     const report::CommitRequest* request, absl::Time now)
    : connection_(connection), items_(items), add_row_(add_row), request_(*request), now_(now) {}

absl::StatusOr<report::CommitSummary> CommitRun::Run() {
  MUSTER_RETURN_IF_ERROR(Fence());
  MUSTER_RETURN_IF_ERROR(LoadBatches());
  verdicts_.resize(request_.items.size());
  MUSTER_RETURN_IF_ERROR(CountAll());
  MUSTER_RETURN_IF_ERROR(StoreBatches());
  report::CommitSummary summary;
  summary.verdicts = std::move(verdicts_);
  for (auto& [number, batch] : batches_) summary.progress.push_back(std::move(batch.progress));
  return summary;
}

absl::Status CommitRun::Fence() {
  MUSTER_ASSIGN_OR_RETURN(
      Statement claim,
      connection_->Prepare("INSERT INTO muster_partition VALUES (?1, ?2, 1, ?3) ON CONFLICT DO "
                           "UPDATE SET epoch = ?2, commits = commits + 1, committed = ?3 "
                           "WHERE epoch <= ?2"));
  MUSTER_RETURN_IF_ERROR(claim.Run(request_.partition, request_.epoch, absl::ToUnixMicros(now_)));
  if (connection_->Changes() == 1) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "partition '", request_.partition, "' has an owner of a later epoch than ", request_.epoch));
}

absl::Status CommitRun::LoadBatches() {
  for (const CountedItem& item : request_.items) {
    auto [it, is_new] = batches_.try_emplace(item.batch);
    if (!is_new) continue;
    Batch& batch = it->second;
    MUSTER_ASSIGN_OR_RETURN(batch.progress, LoadProgress(connection_, item.batch));
    MUSTER_ASSIGN_OR_RETURN(batch.tables, LoadGroupTables(connection_, batch.progress.job,
                                                          batch.progress.job_revision));
    for (const GroupTable& table : batch.tables) batch.shapes.push_back(table.shape);
    MUSTER_ASSIGN_OR_RETURN(batch.outputs, LoadOutputColumns(connection_, batch.progress.job,
                                                             batch.progress.job_revision));
  }
  return absl::OkStatus();
}

template <typename Work>
absl::Status CommitRun::UnderSavepoint(Work work) {
  const Batches batches_before = batches_;
  const std::vector<ItemVerdict> verdicts_before = verdicts_;
  MUSTER_RETURN_IF_ERROR(connection_->Execute("SAVEPOINT count"));
  const absl::Status status = work();
  if (absl::IsOutOfRange(status)) {
    MUSTER_RETURN_IF_ERROR(connection_->Execute("ROLLBACK TO count"));
    batches_ = batches_before;
    verdicts_ = verdicts_before;
  } else if (!status.ok()) {
    return status;
  }
  MUSTER_RETURN_IF_ERROR(connection_->Execute("RELEASE count"));
  return status;
}

// All together is fast. When a sum overflows, one by one finds the items that do not fit.
absl::Status CommitRun::CountAll() {
  const absl::Status together = UnderSavepoint([&] { return Count(request_.items, 0); });
  if (!absl::IsOutOfRange(together)) return together;
  for (size_t i = 0; i < request_.items.size(); ++i) MUSTER_RETURN_IF_ERROR(CountAlone(i));
  return absl::OkStatus();
}

absl::Status CommitRun::CountAlone(size_t i) {
  const CountedItem& item = request_.items[i];
  const absl::Status alone =
      UnderSavepoint([&] { return Count(absl::MakeConstSpan(&item, 1), i); });
  if (!absl::IsOutOfRange(alone)) return alone;
  const CountedItem dead = report::DeadLettered(item, alone.message());
  MUSTER_RETURN_IF_ERROR(Count(absl::MakeConstSpan(&dead, 1), i));
  if (verdicts_[i].verdict == Verdict::kDeadLettered) {
    verdicts_[i] = {Verdict::kRefused, std::string(alone.message())};
  }
  return absl::OkStatus();
}

absl::Status CommitRun::Count(absl::Span<const CountedItem> items, size_t first) {
  Mergers mergers;
  for (size_t i = 0; i < items.size(); ++i) {
    MUSTER_ASSIGN_OR_RETURN(verdicts_[first + i], CountItem(items[i], &mergers));
  }
  return AddRows(mergers);
}

absl::StatusOr<ItemVerdict> CommitRun::CountItem(const CountedItem& item, Mergers* mergers) {
  Batch& batch = batches_.at(item.batch);
  const absl::Status fits = report::CheckItem(item, batch.shapes, batch.outputs);
  if (!fits.ok()) {
    const CountedItem dead = report::DeadLettered(item, fits.message());
    // Else it would be given up again and again.
    MUSTER_CHECK(report::CheckItem(dead, batch.shapes, batch.outputs).ok(), "item ", ItemName(item),
                 ", transactions ", item.transactions);
    MUSTER_ASSIGN_OR_RETURN(ItemVerdict verdict, CountItem(dead, mergers));
    if (verdict.verdict != Verdict::kDeadLettered) return verdict;
    return ItemVerdict{Verdict::kRefused, std::string(fits.message())};
  }
  MUSTER_ASSIGN_OR_RETURN(const bool is_new, items_->Insert(item, now_));
  if (!is_new) return CountRepeat(item, &batch, mergers);
  AddToProgress(item, 1, &batch.progress);
  MUSTER_RETURN_IF_ERROR(Merge(item, &batch, mergers));
  return ItemVerdict{VerdictOf(item), ""};
}

absl::StatusOr<ItemVerdict> CommitRun::CountRepeat(const CountedItem& item, Batch* batch,
                                                   Mergers* mergers) {
  MUSTER_ASSIGN_OR_RETURN(const report::ItemRow stored, items_->Get(item.batch, item.index));
  switch (report::CompareWithStored(stored, item)) {
    case report::Repeat::kDuplicate:
      ++batch->progress.duplicates;
      return ItemVerdict{Verdict::kDuplicate, ""};
    case report::Repeat::kConflict:
      ++batch->progress.conflicts;
      return ItemVerdict{Verdict::kConflict,
                         absl::StrCat("item ", ItemName(item), " was counted from worker '",
                                      stored.worker, "' with another content")};
    case report::Repeat::kReplaces: {
      MUSTER_ASSIGN_OR_RETURN(
          const auto retried,
          LoadRetriedItems(connection_, item.batch, absl::MakeConstSpan(&item.index, 1)));
      if (retried.empty()) break;
      // Else it would count here and in the batch that retries it.
      ++batch->progress.duplicates;
      return ItemVerdict{Verdict::kDuplicate, ""};
    }
  }
  ItemFacts revived = item;
  revived.attempts += stored.attempts;
  MUSTER_RETURN_IF_ERROR(items_->Replace(revived, now_));
  MUSTER_RETURN_IF_ERROR(StoreReopened(connection_, batch->progress));
  AddToProgress(stored, -1, &batch->progress);
  AddToProgress(revived, 1, &batch->progress);
  MUSTER_RETURN_IF_ERROR(Merge(item, batch, mergers));
  return ItemVerdict{Verdict::kCounted, ""};
}

absl::Status CommitRun::Merge(const CountedItem& item, Batch* batch, Mergers* mergers) {
  StampCounted(now_, &batch->progress);
  for (const report::GroupPartial& partial : item.groups) {
    size_t group = 0;
    while (group < batch->shapes.size() && batch->shapes[group].name != partial.group) ++group;
    // CheckItem found it there.
    MUSTER_CHECK(group < batch->shapes.size(), "item ", ItemName(item), ", group '", partial.group,
                 "' of ", batch->shapes.size());
    report::RowMerger& merger =
        mergers->try_emplace({item.batch, group}, &batch->shapes[group]).first->second;
    MUSTER_RETURN_IF_ERROR(merger.Add(partial.rows));
  }
  MUSTER_RETURN_IF_ERROR(InsertOutputs(connection_, item));
  const bool has_receipt = batch->progress.receipt_revision > 0;
  if (has_receipt && !item.rejections.empty()) {
    MUSTER_RETURN_IF_ERROR(NoteNewRejections(connection_, item.batch));
  }
  return items_->InsertRejections(item);
}

absl::Status CommitRun::AddRows(const Mergers& mergers) {
  for (const auto& [where, merger] : mergers) {
    const auto& [batch, group] = where;
    MUSTER_RETURN_IF_ERROR(AddRowsOf(batch, batches_.at(batch).tables[group], merger));
  }
  return absl::OkStatus();
}

absl::Status CommitRun::AddRowsOf(uint64_t batch, const GroupTable& table,
                                  const report::RowMerger& merger) {
  auto it = add_row_->find(table.name);
  if (it == add_row_->end()) {
    if (add_row_->size() >= kMaxAddRowStatements) add_row_->clear();
    MUSTER_ASSIGN_OR_RETURN(Statement statement, connection_->Prepare(AddRowSql(table)));
    it = add_row_->emplace(table.name, std::move(statement)).first;
  }
  // Sorted: neighbours in the tree are written one after the other.
  for (const report::RowMerger::Row* row : merger.SortedRows()) {
    const absl::Status status = AddRow(&it->second, batch, table.shape, *row);
    if (!status.ok()) return base::Annotate(status, report::RowName(table.shape, *row->keys));
  }
  return absl::OkStatus();
}

absl::Status CommitRun::StoreBatches() {
  for (const auto& [number, batch] : batches_) {
    MUSTER_RETURN_IF_ERROR(StoreProgress(connection_, batch.progress));
  }
  return absl::OkStatus();
}

}  // namespace muster::report::sqlite
