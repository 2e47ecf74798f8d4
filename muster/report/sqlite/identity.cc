// SPDX-License-Identifier: Apache-2.0
#include "muster/report/sqlite/identity.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/base/random.h"
#include "muster/base/status.h"
#include "muster/report/sqlite/schema.h"

namespace muster::report::sqlite {
namespace {

constexpr char kBegin[] = "BEGIN IMMEDIATE";
constexpr char kTable[] = "muster_identity";

absl::Status IsAnothers(const report::ReportIdentity& identity, const report::ReportOwner& owner) {
  return absl::FailedPreconditionError(
      absl::StrCat("the report is written by ", identity.owner, " now, since epoch ",
                   identity.epoch, ", and no more by ", owner.instance, " of epoch ", owner.epoch));
}

}  // namespace

absl::Status EnsureIdentity(Connection* connection) {
  MUSTER_ASSIGN_OR_RETURN(
      Statement insert,
      connection->Prepare("INSERT OR IGNORE INTO muster_identity VALUES (1, ?, 0, '')"));
  return insert.Run(absl::StrFormat("%016x", base::RandomSeed()));
}

absl::StatusOr<report::ReportIdentity> LoadIdentity(Connection* connection) {
  MUSTER_ASSIGN_OR_RETURN(const bool is_there, HasTable(connection, "main", kTable));
  if (!is_there) return absl::NotFoundError("the report has no id yet");
  MUSTER_ASSIGN_OR_RETURN(Statement query,
                          connection->Prepare("SELECT report, epoch, owner FROM muster_identity"));
  MUSTER_ASSIGN_OR_RETURN(const bool found, query.Step());
  if (!found) return absl::NotFoundError("the report has no id yet");
  return report::ReportIdentity{.report = std::string(query.Text(0)),
                                .epoch = static_cast<uint64_t>(query.Int(1)),
                                .owner = std::string(query.Text(2))};
}

absl::Status ClaimReport(Connection* connection, const report::ReportOwner& owner) {
  MUSTER_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection, kBegin));
  MUSTER_ASSIGN_OR_RETURN(const report::ReportIdentity identity, LoadIdentity(connection));
  const bool is_later = identity.epoch > owner.epoch;
  const bool is_other = identity.epoch == owner.epoch && identity.owner != owner.instance;
  if (is_later || is_other) return IsAnothers(identity, owner);
  MUSTER_ASSIGN_OR_RETURN(
      Statement update,
      connection->Prepare("UPDATE muster_identity SET epoch = ?, owner = ? WHERE one = 1"));
  MUSTER_RETURN_IF_ERROR(update.Run(owner.epoch, owner.instance));
  return transaction.Commit();
}

absl::Status CheckOwner(Connection* connection, const report::ReportOwner& owner) {
  MUSTER_ASSIGN_OR_RETURN(const report::ReportIdentity identity, LoadIdentity(connection));
  const bool is_mine = identity.epoch == owner.epoch && identity.owner == owner.instance;
  return is_mine ? absl::OkStatus() : IsAnothers(identity, owner);
}

absl::Status CopyIdentity(Connection* connection, const std::string& from) {
  const auto damaged = Connection::Open(from, OpenMode::kReadOnly);
  if (!damaged.ok()) return absl::OkStatus();
  const absl::StatusOr<report::ReportIdentity> identity = LoadIdentity(damaged->get());
  if (!identity.ok()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(
      Statement update,
      connection->Prepare("UPDATE muster_identity SET report = ?, epoch = ?, owner = ?"));
  return update.Run(identity->report, identity->epoch, identity->owner);
}

}  // namespace muster::report::sqlite
