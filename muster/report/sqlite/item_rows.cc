// SPDX-License-Identifier: Apache-2.0
#include "muster/report/sqlite/item_rows.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "muster/base/fingerprint.h"
#include "muster/base/status.h"

namespace muster::report::sqlite {

namespace {

bool IsOutcome(int64_t stored) {
  return stored == static_cast<int64_t>(report::ItemOutcome::kAggregated) ||
         stored == static_cast<int64_t>(report::ItemOutcome::kDeadLettered);
}

}  // namespace

absl::StatusOr<report::ItemRow> ItemRowOf(const Statement& row) {
  report::ItemRow item;
  item.batch = static_cast<uint64_t>(row.Int(0));
  item.index = static_cast<uint64_t>(row.Int(1));
  const std::optional<base::Fingerprint128> content = base::Fingerprint128::FromBytes(row.Bytes(6));
  const std::optional<base::Fingerprint128> result = base::Fingerprint128::FromBytes(row.Bytes(7));
  if (!IsOutcome(row.Int(2)) || !content || !result) {
    return absl::DataLossError(
        absl::StrCat("the row of item ", item.batch, "/", item.index, " is damaged"));
  }
  item.outcome = static_cast<report::ItemOutcome>(row.Int(2));
  item.transactions = row.Int(3);
  item.aggregated = row.Int(4);
  item.rejected = row.Int(5);
  item.content = *content;
  item.result = *result;
  item.attempts = row.Int(8);
  item.handler_version = std::string(row.Text(9));
  item.worker = std::string(row.Text(10));
  item.cause = std::string(row.Text(11));
  item.counted = absl::FromUnixMicros(row.Int(12));
  return item;
}

absl::StatusOr<ItemRows> ItemRows::Prepare(Connection* connection) {
  ItemRows rows(connection);
  const std::string values = absl::StrCat(" INTO muster_item (", kItemColumns,
                                          ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  MUSTER_ASSIGN_OR_RETURN(
      rows.insert_, connection->Prepare(absl::StrCat("INSERT", values, " ON CONFLICT DO NOTHING")));
  MUSTER_ASSIGN_OR_RETURN(rows.replace_, connection->Prepare(absl::StrCat("REPLACE", values)));
  MUSTER_ASSIGN_OR_RETURN(
      rows.get_, connection->Prepare(absl::StrCat(
                     "SELECT ", kItemColumns, " FROM muster_item WHERE batch = ? AND item = ?")));
  MUSTER_ASSIGN_OR_RETURN(
      rows.delete_, connection->Prepare("DELETE FROM muster_item WHERE batch = ? AND item = ?"));
  MUSTER_ASSIGN_OR_RETURN(
      rows.insert_rejection_,
      connection->Prepare("INSERT INTO muster_rejection (batch, item, ordinal, line, reason) "
                          "VALUES (?, ?, ?, ?, ?)"));
  return rows;
}

absl::Status ItemRows::Write(Statement* statement, const report::ItemFacts& item,
                             absl::Time counted) {
  const std::string content = item.content.ToBytes();
  const std::string result = item.result.ToBytes();
  return statement->Run(item.batch, item.index, static_cast<int>(item.outcome), item.transactions,
                        item.aggregated, item.rejected, Blob{content}, Blob{result}, item.attempts,
                        item.handler_version, item.worker, item.cause, absl::ToUnixMicros(counted));
}

absl::StatusOr<bool> ItemRows::Insert(const report::ItemFacts& item, absl::Time counted) {
  MUSTER_RETURN_IF_ERROR(Write(&insert_, item, counted));
  return connection_->Changes() == 1;
}

absl::StatusOr<report::ItemRow> ItemRows::Get(uint64_t batch, uint64_t index) {
  MUSTER_ASSIGN_OR_RETURN(const bool found, get_.Bind(batch, index).Step());
  absl::StatusOr<report::ItemRow> item =
      absl::NotFoundError(absl::StrCat("item ", batch, "/", index, " has no row"));
  if (found) item = ItemRowOf(get_);
  get_.Reset();
  return item;
}

absl::Status ItemRows::Replace(const report::ItemFacts& item, absl::Time counted) {
  return Write(&replace_, item, counted);
}

absl::Status ItemRows::Delete(uint64_t batch, uint64_t index) { return delete_.Run(batch, index); }

absl::Status ItemRows::InsertRejections(const report::CountedItem& item) {
  int64_t ordinal = 0;
  for (const report::Rejection& rejection : item.rejections) {
    MUSTER_RETURN_IF_ERROR(
        insert_rejection_.Run(item.batch, item.index, ordinal++, rejection.line, rejection.reason));
  }
  return absl::OkStatus();
}

}  // namespace muster::report::sqlite
