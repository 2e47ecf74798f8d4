// SPDX-License-Identifier: Apache-2.0
#include "muster/report/sqlite/retries.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/report/sqlite/retry_claims.h"
#include "muster/report/sqlite/schema.h"

namespace muster::report::sqlite {
namespace {

using report::RejectionPosition;

// Where rejections are freed, or come anew. Parameter: batch.
constexpr char kForgetThrough[] = "UPDATE muster_retry SET through = 0 WHERE through > 0 AND ";

// Sets where the transactions stand in the batch that retries them.
absl::Status Place(Connection* connection, uint64_t batch, int64_t retry,
                   absl::Span<const report::RetriedTransaction> transactions) {
  // A transaction of an item that is claimed as a whole gets its row now.
  MUSTER_ASSIGN_OR_RETURN(
      Statement place,
      connection->Prepare("INSERT INTO muster_retried_line SELECT ?1, ?2, ?3, ?4, ?5 WHERE EXISTS "
                          "(SELECT 1 FROM muster_retried_line WHERE batch = ?1 AND item = ?2 AND "
                          "line IN (0, ?3) AND retry = ?4) ON CONFLICT DO UPDATE SET retried_line "
                          "= excluded.retried_line WHERE muster_retried_line.retry = ?4"));
  MUSTER_ASSIGN_OR_RETURN(
      Statement free,
      connection->Prepare("DELETE FROM muster_retried_line WHERE batch = ?1 AND item = ?2 AND "
                          "(line = ?3 OR ?3 = 0) AND retry = ?4"));
  MUSTER_ASSIGN_OR_RETURN(Statement forget,
                          connection->Prepare(absl::StrCat(kForgetThrough, "batch = ?")));
  for (const report::RetriedTransaction& one : transactions) {
    if (one.retried_line == 0) MUSTER_RETURN_IF_ERROR(forget.Run(batch));
    MUSTER_RETURN_IF_ERROR(one.retried_line == 0
                               ? free.Run(batch, one.item, one.line, retry)
                               : place.Run(batch, one.item, one.line, retry, one.retried_line));
  }
  return absl::OkStatus();
}

// Parameters: batch, rows at most.
std::string DeleteSql(absl::string_view table, absl::string_view key, absl::string_view where) {
  return absl::StrCat("DELETE FROM ", table, " WHERE (", key, ") IN (SELECT ", key, " FROM ", table,
                      " WHERE ", where, " LIMIT ?2)");
}

}  // namespace

absl::StatusOr<int64_t> RecordRetry(Connection* connection, uint64_t batch, int64_t retry,
                                    absl::Span<const report::RetriedTransaction> transactions,
                                    uint64_t retried_in) {
  MUSTER_ASSIGN_OR_RETURN(Statement query,
                          connection->Prepare("SELECT retried_in FROM muster_retry WHERE batch = ? "
                                              "AND retry = ?"));
  MUSTER_ASSIGN_OR_RETURN(const bool found, query.Bind(batch, retry).Step());
  if (!found) {
    return absl::NotFoundError(absl::StrCat("the report has no retry ", retry, " of batch ", batch,
                                            ": one of its batches was deleted"));
  }
  const auto known = static_cast<uint64_t>(query.Int(0));
  query.Reset();
  if (known != 0 && retried_in != 0 && known != retried_in) {
    return absl::FailedPreconditionError(
        absl::StrCat("batch ", known, " has the transactions of this retry, not ", retried_in));
  }
  MUSTER_RETURN_IF_ERROR(Place(connection, batch, retry, transactions));
  MUSTER_ASSIGN_OR_RETURN(const int64_t left, CountClaimed(connection, retry));
  if (left == 0) {
    MUSTER_ASSIGN_OR_RETURN(Statement end,
                            connection->Prepare("DELETE FROM muster_retry WHERE retry = ?"));
    MUSTER_RETURN_IF_ERROR(end.Run(retry));
  } else if (retried_in != 0) {
    MUSTER_ASSIGN_OR_RETURN(
        Statement update,
        connection->Prepare("UPDATE muster_retry SET retried_in = ? WHERE retry = ?"));
    MUSTER_RETURN_IF_ERROR(update.Run(retried_in, retry));
  }
  return left;
}

absl::StatusOr<std::vector<RejectionPosition>> LoadClaimed(Connection* connection, uint64_t batch,
                                                           int64_t retry,
                                                           const RejectionPosition& after,
                                                           size_t max) {
  MUSTER_ASSIGN_OR_RETURN(const bool is_there, HasTable(connection, "main", "muster_retried_line"));
  if (!is_there) return std::vector<RejectionPosition>();
  MUSTER_ASSIGN_OR_RETURN(
      Statement query,
      // Not what an earlier call has recorded of an item that is claimed as a whole.
      connection->Prepare("SELECT item, line FROM muster_retried_line l WHERE batch = ?1 AND retry "
                          "= ?2 AND item >= ?3 AND (item > ?3 OR line > ?4) AND (line = 0 OR NOT "
                          "EXISTS (SELECT 1 FROM muster_retried_line w WHERE w.batch = ?1 AND "
                          "w.item = l.item AND w.line = 0)) ORDER BY item, line LIMIT ?5"));
  query.Bind(batch, retry, after.item, after.line, static_cast<int64_t>(max));
  return query.Collect([&]() -> RejectionPosition {
    return {static_cast<uint64_t>(query.Int(0)), query.Int(1)};
  });
}

absl::StatusOr<std::map<uint64_t, uint64_t>> LoadRetriedItems(Connection* connection,
                                                              uint64_t batch,
                                                              absl::Span<const uint64_t> items) {
  std::map<uint64_t, uint64_t> retried;
  MUSTER_ASSIGN_OR_RETURN(const bool is_there, HasTable(connection, "main", "muster_retried_line"));
  if (!is_there) return retried;
  MUSTER_ASSIGN_OR_RETURN(
      Statement query,
      connection->Prepare("SELECT t.retried_in FROM muster_retried_line l JOIN muster_retry t ON "
                          "t.retry = l.retry WHERE l.batch = ? AND l.item = ? AND l.line = 0"));
  for (const uint64_t item : items) {
    MUSTER_ASSIGN_OR_RETURN(const bool found, query.Bind(batch, item).Step());
    if (found) retried[item] = static_cast<uint64_t>(query.Int(0));
  }
  return retried;
}

absl::Status LoadRetries(Connection* connection, report::Progress* progress) {
  MUSTER_ASSIGN_OR_RETURN(const bool is_there, HasTable(connection, "main", "muster_retry"));
  if (!is_there) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(
      Statement of, connection->Prepare("SELECT batch FROM muster_retry WHERE retried_in = ?"));
  MUSTER_ASSIGN_OR_RETURN(const bool is_retry, of.Bind(progress->batch).Step());
  if (is_retry) progress->retry_of = static_cast<uint64_t>(of.Int(0));
  MUSTER_ASSIGN_OR_RETURN(
      Statement in, connection->Prepare("SELECT retried_in FROM muster_retry WHERE batch = ? AND "
                                        "retried_in > 0 ORDER BY retried_in DESC LIMIT ?"));
  in.Bind(progress->batch, static_cast<int64_t>(report::kMaxShownRetries));
  MUSTER_ASSIGN_OR_RETURN(progress->retried_in,
                          in.Collect([&] { return static_cast<uint64_t>(in.Int(0)); }));
  std::reverse(progress->retried_in.begin(), progress->retried_in.end());
  return absl::OkStatus();
}

absl::Status NoteNewRejections(Connection* connection, uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(Statement forget,
                          connection->Prepare(absl::StrCat(kForgetThrough, "batch = ?")));
  return forget.Run(batch);
}

absl::StatusOr<bool> ForgetRetries(Connection* connection, uint64_t batch, int64_t max) {
  MUSTER_ASSIGN_OR_RETURN(
      Statement forget, connection->Prepare(absl::StrCat(kForgetThrough,
                                                         "batch IN (SELECT batch FROM muster_retry "
                                                         "WHERE retried_in = ?)")));
  MUSTER_RETURN_IF_ERROR(forget.Run(batch));
  const auto lines = [](absl::string_view where) {
    return DeleteSql("muster_retried_line", "batch, item, line", where);
  };
  // The lines of a retry go first: by its row a further call finds them.
  const std::string steps[] = {
      lines("batch = ?1"),
      lines("retry IN (SELECT retry FROM muster_retry WHERE retried_in = ?1)"),
      DeleteSql("muster_retry", "retry", "batch = ?1 OR retried_in = ?1"),
  };
  for (const std::string& sql : steps) {
    MUSTER_ASSIGN_OR_RETURN(Statement statement, connection->Prepare(sql));
    MUSTER_RETURN_IF_ERROR(statement.Run(batch, max));
    max -= connection->Changes();
    if (max <= 0) return false;
  }
  return true;
}

}  // namespace muster::report::sqlite
