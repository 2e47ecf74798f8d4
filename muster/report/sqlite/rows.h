// SPDX-License-Identifier: Apache-2.0

// The rows of batches (their running totals, kept by each commit), of items and of rejections.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/report/counted_item.h"
#include "muster/report/report_store.h"
#include "muster/report/sqlite/connection.h"

namespace muster::report::sqlite {

// In the caller's transaction. FailedPrecondition: known with another job or revision.
// AlreadyExists: another owner's.
absl::Status EnsureBatch(Connection* connection, const report::BatchShape& shape);

// NotFound naming the batch.
absl::StatusOr<report::Progress> LoadProgress(Connection* connection, uint64_t batch);
// In order of number.
absl::StatusOr<std::vector<report::Progress>> LoadAllProgress(Connection* connection);

// nullopt: the batch is not cancelled.
absl::StatusOr<std::optional<report::Cancellation>> LoadCancellation(Connection* connection,
                                                                     uint64_t batch);
// LoadProgress with what the other tables say of the batch.
absl::StatusOr<report::Progress> LoadStanding(Connection* connection, uint64_t batch);

// In the caller's transaction: notes that the receipt of a batch, if it has one, no longer proves
// what is counted, and that it does again.
absl::Status StoreReopened(Connection* connection, const report::Progress& progress);
absl::Status ForgetReopened(Connection* connection, uint64_t batch);

// In the caller's transaction: notes in whose place the batch counts.
absl::Status StoreReplaced(Connection* connection, const report::BatchShape& shape);

// In the caller's transaction. FailedPrecondition: the batch has a receipt. AlreadyExists: it is
// another owner's.
absl::Status StoreCancellation(Connection* connection, uint64_t batch,
                               const report::Cancellation& cancellation);

// Adds the item to the totals, or with sign −1 takes it back.
void AddToProgress(const report::ItemFacts& item, int sign, report::Progress* progress);

absl::Status StoreProgress(Connection* connection, const report::Progress& progress);

// The rows of items and rejections. An item's row says that it is done: appended once, in the
// transaction that counts it, instead of a page of bits that every commit writes again.

// The columns that ItemRowOf reads, in its order.
inline constexpr char kItemColumns[] =
    "batch, item, outcome, transactions, aggregated, rejected, content, result, attempts, "
    "handler_version, worker, cause, counted";

// DataLoss naming the item when a column holds what cannot be.
absl::StatusOr<report::ItemRow> ItemRowOf(const Statement& row);

// Not thread-safe; must not outlive its connection. Every verb runs in the caller's transaction.
class ItemRows {
 public:
  static absl::StatusOr<ItemRows> Prepare(Connection* connection);

  // Test-and-set: false when the item has its row already, and nothing is changed.
  absl::StatusOr<bool> Insert(const report::ItemFacts& item, absl::Time counted);
  absl::StatusOr<report::ItemRow> Get(uint64_t batch, uint64_t index);
  absl::Status Replace(const report::ItemFacts& item, absl::Time counted);
  // OK also when there is no such row.
  absl::Status Delete(uint64_t batch, uint64_t index);
  absl::Status InsertRejections(const report::CountedItem& item);

 private:
  explicit ItemRows(Connection* connection) : connection_(connection) {}
  absl::Status Write(Statement* statement, const report::ItemFacts& item, absl::Time counted);

  Connection* connection_;  // not owned
  Statement insert_;
  Statement get_;
  Statement replace_;
  Statement delete_;
  Statement insert_rejection_;
};

}  // namespace muster::report::sqlite
