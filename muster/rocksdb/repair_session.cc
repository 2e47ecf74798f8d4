// SPDX-License-Identifier: Apache-2.0
#include "muster/rocksdb/repair_session.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/failpoint.h"
#include "muster/base/status.h"

namespace muster::rocksdb {

absl::StatusOr<std::unique_ptr<RepairSession>> RepairSession::Open(const std::string& dir,
                                                                   std::string part,
                                                                   const DatabaseOptions& options,
                                                                   const os::CheckOptions& check,
                                                                   bool may_begin_anew) {
  std::unique_ptr<RepairSession> session(new RepairSession(std::move(part), options, check));
  MUSTER_ASSIGN_OR_RETURN(session->database_,
                          OpenToSalvage(dir, options, session->Salvage(may_begin_anew)));
  return session;
}

SalvageOptions RepairSession::Salvage(bool may_begin_anew) {
  SalvageOptions salvage;
  salvage.may_begin_anew = may_begin_anew;
  salvage.on_damage = [this](const FileDamage& file) {
    os::Damage damage{.part = part_, .kind = file.kind, .name = absl::StrCat(part_, "/")};
    damage.why = file.why;
    damage.remedy = file.remedy;
    damage.mendable = file.mendable;
    return Tell(damage);
  };
  if (check_.quarantine != nullptr) {
    salvage.keep_in = [this] { return check_.quarantine->FolderOf(part_); };
  }
  return salvage;
}

RecordCursor RepairSession::Read(size_t family, absl::string_view from) const {
  return {database_.get(), family, from};
}

absl::Status RepairSession::ForEach(size_t family, Visit visit, absl::string_view from,
                                    absl::string_view end) const {
  RecordCursor record = Read(family, from);
  for (; record.valid() && (end.empty() || record.key() < end); record.Next()) {
    MUSTER_RETURN_IF_ERROR(visit(record.key(), record.value()));
  }
  return record.status();
}

os::StoredRecord RepairSession::Stored(size_t family, absl::string_view key,
                                       absl::string_view value) const {
  return {options_.families[family].name, std::string(key), std::string(value)};
}

absl::Status RepairSession::Tell(const os::Damage& damage) {
  ++summary_.damaged;
  if (check_.quarantine != nullptr) MUSTER_RETURN_IF_ERROR(check_.quarantine->Keep(damage));
  return check_.findings->Add(damage);
}

absl::Status RepairSession::Found(os::Damage damage) {
  damage.part = part_;
  for (const os::StoredRecord& record : damage.records) {
    size_t family = 0;
    while (family < options_.families.size() && options_.families[family].name != record.family) {
      ++family;
    }
    MUSTER_CHECK(family < options_.families.size(), "part '", part_, "', family '", record.family,
                 "'");
    mend_.Delete(database_->family(family), record.key);
  }
  return Tell(damage);
}

void RepairSession::Put(size_t family, absl::string_view key, absl::string_view value) {
  MUSTER_CHECK(summary_.damaged > 0, "part '", part_, "', family ", family);
  mend_.Put(database_->family(family), ToSlice(key), ToSlice(value));
}

void RepairSession::Improve(size_t family, absl::string_view key, absl::string_view value) {
  mend_.Put(database_->family(family), ToSlice(key), ToSlice(value));
}

void RepairSession::Note(absl::string_view line) {
  const bool is_repair = check_.quarantine != nullptr;
  check_.findings->Note(
      absl::StrCat(part_, ": ", line, is_repair ? "; they are added" : ": --repair adds them"));
}

absl::StatusOr<os::CheckSummary> RepairSession::Finish() {
  if (check_.quarantine == nullptr) return summary_;
  MUSTER_RETURN_IF_ERROR(check_.quarantine->Sync());
  MUSTER_FAILPOINT("repair.after_records_kept");
  if (mend_.Count() > 0) MUSTER_RETURN_IF_ERROR(database_->Write(&mend_, Durability::kPower));
  return summary_;
}

}  // namespace muster::rocksdb
