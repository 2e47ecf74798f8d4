// SPDX-License-Identifier: Apache-2.0
#include "muster/report/sqlite/retry_claims.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/report/sqlite/batch_rows.h"

namespace muster::report::sqlite {
namespace {

using report::kWholeItem;
using report::RejectionPosition;
using report::RetryClaim;
using report::RetryClaims;
using report::RetrySelection;

constexpr int kDead = static_cast<int>(report::ItemOutcome::kDeadLettered);

// From the item ?2 on.
constexpr char kUnclaimed[] =
    " FROM muster_rejection r WHERE r.batch = ?1 AND r.item >= ?2 AND NOT EXISTS (SELECT 1 FROM "
    "muster_retried_line l WHERE l.batch = r.batch AND l.item = r.item AND l.line = r.line)";

absl::StatusOr<report::Progress> CheckComplete(Connection* connection, uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(report::Progress progress, LoadProgress(connection, batch));
  if (progress.receipt_revision > 0) return progress;
  return absl::FailedPreconditionError(
      absl::StrCat("batch ", batch, " is not complete: what fails of it is retried once it is"));
}

// In order, each once.
template <typename T>
std::vector<T> Sorted(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

// Also after a clock that was set back, higher than all there are.
absl::StatusOr<int64_t> NewRetryId(Connection* connection, absl::Time now) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t highest,
                          connection->QueryInt("SELECT coalesce(max(retry), 0) FROM muster_retry"));
  return std::max(absl::ToUnixMicros(now), highest + 1);
}

absl::StatusOr<RetryClaim> LoadClaim(Connection* connection, int64_t retry) {
  MUSTER_ASSIGN_OR_RETURN(
      Statement query, connection->Prepare("SELECT retried_in FROM muster_retry WHERE retry = ?"));
  MUSTER_ASSIGN_OR_RETURN(const bool found, query.Bind(retry).Step());
  if (!found) return absl::DataLossError(absl::StrCat("the row of retry ", retry, " is missing"));
  RetryClaim claim{retry, 0, static_cast<uint64_t>(query.Int(0))};
  MUSTER_ASSIGN_OR_RETURN(claim.transactions, CountClaimed(connection, retry));
  return claim;
}

absl::Status InsertRetry(Connection* connection, uint64_t batch, int64_t retry, absl::Time now) {
  MUSTER_ASSIGN_OR_RETURN(Statement insert,
                          connection->Prepare("INSERT INTO muster_retry VALUES (?, ?, 0, 0, ?)"));
  return insert.Run(retry, batch, absl::ToUnixMicros(now));
}

// Where the rejections at `lines`, sorted, stand. Reads all rejections of the batch: none has an
// index by line.
absl::StatusOr<std::vector<RejectionPosition>> FindLines(Connection* connection, uint64_t batch,
                                                         const std::vector<int64_t>& lines) {
  MUSTER_ASSIGN_OR_RETURN(
      Statement query,
      connection->Prepare("SELECT item, line FROM muster_rejection WHERE batch = ?"));
  query.Bind(batch);
  std::map<int64_t, uint64_t> items;
  MUSTER_RETURN_IF_ERROR(query.ForEach([&] {
    const int64_t line = query.Int(1);
    if (std::binary_search(lines.begin(), lines.end(), line)) {
      items[line] = static_cast<uint64_t>(query.Int(0));
    }
  }));
  std::vector<RejectionPosition> positions;
  for (const int64_t line : lines) {
    const auto item = items.find(line);
    if (item == items.end()) {
      return absl::NotFoundError(
          absl::StrCat("batch ", batch, " has rejected no transaction at line ", line,
                       "; `muster batch rejections ", batch, "` shows those that it has"));
    }
    positions.push_back({item->second, line});
  }
  return positions;
}

// Where these items stand, which were all given up.
absl::StatusOr<std::vector<RejectionPosition>> FindItems(Connection* connection, uint64_t batch,
                                                         const std::vector<uint64_t>& items) {
  MUSTER_ASSIGN_OR_RETURN(Statement query,
                          connection->Prepare("SELECT 1 FROM muster_item WHERE batch = ? AND item "
                                              "= ? AND outcome = ?"));
  std::vector<RejectionPosition> positions;
  for (const uint64_t item : items) {
    MUSTER_ASSIGN_OR_RETURN(const bool found, query.Bind(batch, item, kDead).Step());
    if (!found) {
      return absl::NotFoundError(absl::StrCat("batch ", batch, " has given up no item ", item,
                                              "; `muster batch dead-letters ", batch,
                                              "` shows those that it has"));
    }
    positions.push_back({item, kWholeItem});
  }
  return positions;
}

// Unclaimed items that were given up, until they have `max` transactions, and one more.
absl::StatusOr<std::vector<RejectionPosition>> FindDead(Connection* connection, uint64_t batch,
                                                        int64_t max) {
  MUSTER_ASSIGN_OR_RETURN(
      Statement query,
      connection->Prepare("SELECT item, transactions FROM muster_item i WHERE batch = ?1 AND "
                          "outcome = ?2 AND NOT EXISTS (SELECT 1 FROM muster_retried_line l WHERE "
                          "l.batch = i.batch AND l.item = i.item AND l.line = 0) ORDER BY item"));
  query.Bind(batch, kDead);
  std::vector<RejectionPosition> positions;
  for (int64_t transactions = 0;;) {
    MUSTER_ASSIGN_OR_RETURN(const bool found, query.Step());
    if (!found) return positions;
    positions.push_back({static_cast<uint64_t>(query.Int(0)), kWholeItem});
    if (transactions >= max) return positions;
    transactions += query.Int(1);
  }
}

// nullopt: it is not claimed.
absl::StatusOr<std::optional<int64_t>> RetryOf(Statement* query, uint64_t batch,
                                               const RejectionPosition& position) {
  MUSTER_ASSIGN_OR_RETURN(const bool found,
                          query->Bind(batch, position.item, position.line).Step());
  if (!found) return std::nullopt;
  return query->Int(0);
}

// Claims an item that is not claimed, and answers how many transactions it has; 0: it is not given
// up any more.
absl::StatusOr<int64_t> ClaimItem(Connection* connection, uint64_t batch, uint64_t item,
                                  int64_t retry) {
  MUSTER_ASSIGN_OR_RETURN(Statement query,
                          connection->Prepare("SELECT transactions FROM muster_item WHERE batch = "
                                              "? AND item = ? AND outcome = ?"));
  MUSTER_ASSIGN_OR_RETURN(const bool is_dead, query.Bind(batch, item, kDead).Step());
  if (!is_dead) return 0;
  MUSTER_ASSIGN_OR_RETURN(
      Statement insert,
      connection->Prepare("INSERT INTO muster_retried_line VALUES (?, ?, ?, ?, 0)"));
  MUSTER_RETURN_IF_ERROR(insert.Run(batch, item, kWholeItem, retry));
  return query.Int(0);
}

absl::StatusOr<RetryClaims> ClaimPositions(Connection* connection, uint64_t batch,
                                           absl::Span<const RejectionPosition> positions,
                                           absl::Time now) {
  MUSTER_ASSIGN_OR_RETURN(Statement query,
                          connection->Prepare("SELECT retry FROM muster_retried_line WHERE batch = "
                                              "? AND item = ? AND line = ?"));
  MUSTER_ASSIGN_OR_RETURN(
      Statement insert,
      connection->Prepare("INSERT INTO muster_retried_line VALUES (?, ?, ?, ?, 0)"));
  MUSTER_ASSIGN_OR_RETURN(const int64_t new_retry, NewRetryId(connection, now));
  std::set<int64_t> retries;
  for (const RejectionPosition& position : positions) {
    MUSTER_ASSIGN_OR_RETURN(const std::optional<int64_t> known, RetryOf(&query, batch, position));
    retries.insert(known.value_or(new_retry));
    if (known.has_value()) continue;
    if (position.line != kWholeItem) {
      MUSTER_RETURN_IF_ERROR(insert.Run(batch, position.item, position.line, new_retry));
      continue;
    }
    MUSTER_ASSIGN_OR_RETURN(const int64_t transactions,
                            ClaimItem(connection, batch, position.item, new_retry));
    if (transactions == 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("item ", batch, "/", position.item, " was redriven: its batch counts it"));
    }
  }
  if (retries.contains(new_retry)) {
    MUSTER_RETURN_IF_ERROR(InsertRetry(connection, batch, new_retry, now));
  }
  RetryClaims claimed;
  for (const int64_t retry : retries) {
    MUSTER_ASSIGN_OR_RETURN(claimed.claims.emplace_back(), LoadClaim(connection, retry));
  }
  return claimed;
}

// The claims of the batch whose own batch was never told.
absl::StatusOr<std::vector<RetryClaim>> LoadUntold(Connection* connection, uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(Statement query,
                          connection->Prepare("SELECT retry FROM muster_retry WHERE batch = ? AND "
                                              "retried_in = 0 ORDER BY retry LIMIT ?"));
  query.Bind(batch, static_cast<int64_t>(report::kMaxShownRetries));
  std::vector<RetryClaim> claims;
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(const bool found, query.Step());
    if (!found) return claims;
    MUSTER_ASSIGN_OR_RETURN(claims.emplace_back(), LoadClaim(connection, query.Int(0)));
  }
}

// All rejections of items below this one are claimed, so that a claim need not look at them.
absl::StatusOr<int64_t> ClaimedThrough(Connection* connection, uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(
      Statement query,
      connection->Prepare("SELECT coalesce(max(through), 0) FROM muster_retry WHERE batch = ?"));
  MUSTER_RETURN_IF_ERROR(query.Bind(batch).Step().status());
  return query.Int(0);
}

// After a claim of all there are, which goes in the order of items.
absl::Status NoteThrough(Connection* connection, int64_t retry) {
  MUSTER_ASSIGN_OR_RETURN(
      Statement update,
      connection->Prepare("UPDATE muster_retry SET through = (SELECT coalesce(max(item), 0) FROM "
                          "muster_retried_line WHERE retry = ?1 AND line > 0) WHERE retry = ?1"));
  return update.Run(retry);
}

absl::StatusOr<bool> AnyUnclaimed(Connection* connection, uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t from, ClaimedThrough(connection, batch));
  MUSTER_ASSIGN_OR_RETURN(Statement query,
                          connection->Prepare(absl::StrCat("SELECT 1", kUnclaimed, " LIMIT 1")));
  return query.Bind(batch, from).Step();
}

// Up to `max` of all unclaimed rejections. Answers how many.
absl::StatusOr<int64_t> ClaimAllRejections(Connection* connection, uint64_t batch, int64_t retry,
                                           int64_t max) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t from, ClaimedThrough(connection, batch));
  MUSTER_ASSIGN_OR_RETURN(
      Statement insert,
      connection->Prepare(absl::StrCat("INSERT INTO muster_retried_line SELECT r.batch, r.item, "
                                       "r.line, ?3, 0",
                                       kUnclaimed, " ORDER BY r.item, r.ordinal LIMIT ?4")));
  MUSTER_RETURN_IF_ERROR(insert.Run(batch, from, retry, max));
  return connection->Changes();
}

absl::StatusOr<RetryClaims> ClaimAll(Connection* connection, uint64_t batch,
                                     absl::Span<const RejectionPosition> dead, int64_t max,
                                     absl::Time now) {
  RetryClaims claimed;
  MUSTER_ASSIGN_OR_RETURN(claimed.claims, LoadUntold(connection, batch));
  if (claimed.claims.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const int64_t retry, NewRetryId(connection, now));
    MUSTER_ASSIGN_OR_RETURN(int64_t transactions,
                            ClaimAllRejections(connection, batch, retry, max));
    // The last item may go beyond `max`.
    for (; !dead.empty() && transactions < max; dead.remove_prefix(1)) {
      MUSTER_ASSIGN_OR_RETURN(const int64_t of_item,
                              ClaimItem(connection, batch, dead.front().item, retry));
      transactions += of_item;
    }
    if (transactions == 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("nothing is left to retry of batch ", batch,
                       ": it has rejected no transaction and given up no item, or each of them is "
                       "in a batch that retries it"));
    }
    MUSTER_RETURN_IF_ERROR(InsertRetry(connection, batch, retry, now));
    MUSTER_RETURN_IF_ERROR(NoteThrough(connection, retry));
    claimed.claims.push_back({retry, transactions, 0});
  }
  MUSTER_ASSIGN_OR_RETURN(claimed.more, AnyUnclaimed(connection, batch));
  if (claimed.claims.size() == report::kMaxShownRetries || !dead.empty()) claimed.more = true;
  return claimed;
}

}  // namespace

absl::StatusOr<std::vector<RejectionPosition>> FindSelected(Connection* connection, uint64_t batch,
                                                            const RetrySelection& which,
                                                            int64_t max) {
  MUSTER_ASSIGN_OR_RETURN(const report::Progress progress, CheckComplete(connection, batch));
  if (!which.lines.empty()) return FindLines(connection, batch, Sorted(which.lines));
  if (!which.items.empty()) return FindItems(connection, batch, Sorted(which.items));
  if (which.rejections_only || progress.items_dead == 0) return std::vector<RejectionPosition>();
  return FindDead(connection, batch, max);
}

absl::StatusOr<RetryClaims> ClaimRejections(Connection* connection, uint64_t batch,
                                            const RetrySelection& which,
                                            absl::Span<const RejectionPosition> found, int64_t max,
                                            absl::Time now) {
  MUSTER_RETURN_IF_ERROR(CheckComplete(connection, batch).status());
  if (!which.is_all()) return ClaimPositions(connection, batch, found, now);
  return ClaimAll(connection, batch, found, max, now);
}

absl::StatusOr<int64_t> CountClaimed(Connection* connection, int64_t retry) {
  MUSTER_ASSIGN_OR_RETURN(
      Statement query,
      connection->Prepare(
          "SELECT (SELECT count(*) FROM muster_retried_line WHERE retry = ?1 AND line > 0) + "
          "(SELECT coalesce(sum(i.transactions), 0) FROM muster_retried_line l JOIN muster_item i "
          "ON i.batch = l.batch AND i.item = l.item WHERE l.retry = ?1 AND l.retried_line = 0 AND "
          "l.line = 0)"));
  MUSTER_RETURN_IF_ERROR(query.Bind(retry).Step().status());
  return query.Int(0);
}

}  // namespace muster::report::sqlite
