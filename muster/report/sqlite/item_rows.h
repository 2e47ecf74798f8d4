// SPDX-License-Identifier: Apache-2.0

// ItemRows: the rows of items and rejections. An item's row says that it is done: appended once, in
// the transaction that counts it, instead of a page of bits that every commit writes again.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/report/counted_item.h"
#include "muster/report/report_store.h"
#include "muster/report/sqlite/connection.h"

namespace muster::report::sqlite {

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
