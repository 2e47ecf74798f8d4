// SPDX-License-Identifier: Apache-2.0
#include "muster/ledger/rocksdb/ledger_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/ledger/rocksdb/batch_codec.h"
#include "muster/ledger/rocksdb/rocksdb_batch_ledger.h"
#include "muster/rocksdb/checked_value.h"
#include "muster/rocksdb/repair_session.h"

namespace muster::ledger::rocksdb {
namespace {

using ledger::Batch;
using ledger::BatchState;
using ledger::ItemBoundary;
using os::Damage;

// All that the ledger holds of one batch. What was damaged is there as it is stored.
struct StoredBatch {
  Batch batch;
  std::optional<std::string> record;
  std::optional<std::string> progress;
  std::optional<std::string> copy;  // of the record
  bool copy_says_cancelled = false;
  // Why; "" where it is sound, or not there.
  std::string record_damage, progress_damage, copy_damage;

  // Up to the first run that is damaged or does not follow.
  uint64_t items = 0;
  uint64_t transactions = 0;
  uint64_t source_bytes = 0;
  std::string items_damage;
};

class Check {
 public:
  Check(muster::rocksdb::RepairSession* session, base::Clock* clock)
      : session_(session), clock_(clock) {}

  absl::Status Run() {
    MUSTER_RETURN_IF_ERROR(ReadBatches());
    MUSTER_RETURN_IF_ERROR(ReadCopies());
    MUSTER_RETURN_IF_ERROR(ReadItems());
    for (auto& [number, stored] : batches_) MUSTER_RETURN_IF_ERROR(CheckBatch(number, &stored));
    AddMissingCopies();
    return CheckRequests();
  }

  std::vector<CheckedBatch> batches() const {
    std::vector<CheckedBatch> known;
    for (const auto& [number, stored] : batches_) {
      if (!IsKnown(stored)) continue;
      known.push_back({number, stored.batch.items, stored.batch.state == BatchState::kComplete,
                       stored.batch.items_deleted});
    }
    return known;
  }
  uint64_t last_batch() const { return batches_.empty() ? 0 : batches_.rbegin()->first; }

 private:
  absl::Status ReadBatches();
  // nullopt, and the record is taken away, when the key cannot be a batch's.
  absl::StatusOr<std::optional<uint64_t>> NumberIn(size_t family, absl::string_view key,
                                                   absl::string_view value, size_t key_bytes);
  absl::Status ReadCopies();
  absl::Status ReadItems();
  static void ReadRun(absl::string_view key, absl::string_view value, uint64_t number,
                      StoredBatch* stored);
  absl::Status CheckBatch(uint64_t number, StoredBatch* stored);
  // Its record is sound, or was made again.
  static bool IsKnown(const StoredBatch& stored) {
    return stored.record.has_value() && stored.record_damage.empty();
  }
  static bool IsProgressSound(const StoredBatch& stored) {
    return stored.progress.has_value() && stored.progress_damage.empty();
  }
  absl::Status MendRecord(uint64_t number, StoredBatch* stored);
  absl::Status MendCopy(uint64_t number, const StoredBatch& stored);
  // Of batches that an older muster began, or cancelled.
  void AddMissingCopies();
  // Takes away all records of a batch without its batch record.
  absl::Status ForgetBatch(uint64_t number, const StoredBatch& stored);
  // Of a cancelled batch, whose copy has it.
  absl::Status RestoreProgress(uint64_t number, StoredBatch* stored);
  absl::Status MendProgress(uint64_t number, StoredBatch* stored);
  // The runs of items that begin at `first` or later, to `runs`.
  absl::Status AddRunsFrom(uint64_t number, uint64_t first,
                           std::vector<os::StoredRecord>* runs) const;
  absl::Status CheckRequests();
  // `newest` of its batches; 0: there is none.
  absl::Status CheckRequest(absl::string_view id, absl::string_view value, uint64_t newest);
  // Without its request's record, a batch would not be found by the run that goes on with it.
  absl::Status AddMissingRequest(const std::string& request_id, uint64_t newest);
  // As CheckRequest, of a record that another tenant's newer batch made necessary.
  absl::Status CheckTenantRequest(absl::string_view key, absl::string_view value);
  // The newest batch of each request id.
  std::map<std::string, uint64_t> BatchesByRequest() const;

  muster::rocksdb::RepairSession* const session_;  // not owned
  base::Clock* const clock_;                       // not owned
  std::map<uint64_t, StoredBatch> batches_;
  std::set<uint64_t> by_tenant_;  // batches that the records of their tenants name
};

absl::StatusOr<std::optional<uint64_t>> Check::NumberIn(size_t family, absl::string_view key,
                                                        absl::string_view value, size_t key_bytes) {
  session_->Count(1);
  if (key.size() == key_bytes) return muster::rocksdb::KeyNumber(key);
  Damage damage{.kind = "key",
                .name = absl::StrCat("key ", absl::BytesToHexString(key)),
                .why = "no record has such a key",
                .remedy = "the record is taken away"};
  damage.records = {session_->Stored(family, key, value)};
  MUSTER_RETURN_IF_ERROR(session_->Found(std::move(damage)));
  return std::nullopt;
}

absl::Status Check::ReadBatches() {
  using absl::string_view;
  const auto read_record = [&](string_view key, string_view value) -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const auto number, NumberIn(kBatches, key, value, 8));
    if (!number.has_value()) return absl::OkStatus();
    StoredBatch& stored = batches_[*number];
    stored.record = std::string(value);
    stored.record_damage = std::string(DecodeRecord(value, *number, &stored.batch).message());
    return absl::OkStatus();
  };
  const auto read_progress = [&](string_view key, string_view value) -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const auto number, NumberIn(kProgress, key, value, 8));
    if (!number.has_value()) return absl::OkStatus();
    StoredBatch& stored = batches_[*number];
    stored.progress = std::string(value);
    stored.progress_damage = std::string(DecodeProgress(value, *number, &stored.batch).message());
    return absl::OkStatus();
  };
  MUSTER_RETURN_IF_ERROR(session_->ForEach(kBatches, read_record));
  return session_->ForEach(kProgress, read_progress);
}

absl::Status Check::ReadCopies() {
  const auto read = [&](absl::string_view key, absl::string_view value) {
    const std::optional<uint64_t> number = NumberOfCopy(key);
    if (!number.has_value()) return absl::OkStatus();
    session_->Count(1);
    StoredBatch& stored = batches_[*number];
    stored.copy = std::string(value);
    Batch batch;
    stored.copy_damage = std::string(DecodeCopy(value, *number, &batch).message());
    stored.copy_says_cancelled =
        stored.copy_damage.empty() && batch.state == BatchState::kCancelled;
    return absl::OkStatus();
  };
  return session_->ForEach(kRequests, read);
}

absl::Status Check::ReadItems() {
  const auto read = [&](absl::string_view key, absl::string_view value) -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const auto number, NumberIn(kItems, key, value, 16));
    if (number.has_value()) ReadRun(key, value, *number, &batches_[*number]);
    return absl::OkStatus();
  };
  return session_->ForEach(kItems, read);
}

void Check::ReadRun(absl::string_view key, absl::string_view value, uint64_t number,
                    StoredBatch* stored) {
  if (!stored->items_damage.empty()) return;
  const uint64_t first = muster::rocksdb::KeyNumber(key.substr(8));
  const absl::StatusOr<std::vector<ItemBoundary>> run = DecodeItems(value, number);
  if (!run.ok()) {
    stored->items_damage = std::string(run.status().message());
  } else if (first != stored->items) {
    stored->items_damage = absl::StrCat("items ", stored->items, " to ", first, " of batch ",
                                        number, " are not there");
  } else if (!run->empty()) {
    for (const ItemBoundary& item : *run) stored->transactions += item.transactions;
    stored->items += run->size();
    stored->source_bytes = run->back().offset + run->back().length;
  }
}

absl::Status Check::CheckBatch(uint64_t number, StoredBatch* stored) {
  if (!IsKnown(*stored)) {
    if (!stored->copy.has_value() || !stored->copy_damage.empty()) {
      return ForgetBatch(number, *stored);
    }
    MUSTER_RETURN_IF_ERROR(MendRecord(number, stored));
  } else if (!stored->copy_damage.empty()) {
    MUSTER_RETURN_IF_ERROR(MendCopy(number, *stored));
  }
  if (!IsProgressSound(*stored) && stored->copy_says_cancelled) {
    MUSTER_RETURN_IF_ERROR(RestoreProgress(number, stored));
  }
  const bool progress_sound = IsProgressSound(*stored);
  // The retention of an ended batch deletes its items.
  if (progress_sound && stored->batch.items_deleted) return absl::OkStatus();
  if (progress_sound && stored->items_damage.empty() && stored->batch.items != stored->items) {
    stored->items_damage = absl::StrCat("its progress speaks of ", stored->batch.items,
                                        " items, and ", stored->items, " are there");
  }
  if (progress_sound && stored->items_damage.empty()) return absl::OkStatus();
  return MendProgress(number, stored);
}

absl::Status Check::MendRecord(uint64_t number, StoredBatch* stored) {
  Damage damage{.kind = "batch", .name = absl::StrCat("batch ", number)};
  damage.why = stored->record.has_value() ? stored->record_damage : "its record is not there";
  damage.remedy = "its record is made again of its copy";
  if (stored->record.has_value()) {
    damage.records = {session_->Stored(kBatches, BatchKey(number), *stored->record)};
  }
  MUSTER_RETURN_IF_ERROR(session_->Found(std::move(damage)));
  MUSTER_RETURN_IF_ERROR(DecodeRecord(*stored->copy, number, &stored->batch));
  stored->record = stored->copy;
  stored->record_damage.clear();
  session_->Put(kBatches, BatchKey(number), *stored->record);
  return absl::OkStatus();
}

absl::Status Check::MendCopy(uint64_t number, const StoredBatch& stored) {
  Damage damage{.kind = "copy",
                .name = absl::StrCat("batch ", number),
                .why = stored.copy_damage,
                .remedy = "is made again of the batch's record"};
  damage.records = {session_->Stored(kRequests, CopyKey(number), *stored.copy)};
  MUSTER_RETURN_IF_ERROR(session_->Found(std::move(damage)));
  session_->Put(kRequests, CopyKey(number), EncodeCopy(stored.batch));
  return absl::OkStatus();
}

void Check::AddMissingCopies() {
  size_t missing = 0;
  for (const auto& [number, stored] : batches_) {
    const bool is_cancelled = stored.batch.state == BatchState::kCancelled;
    const bool is_whole = stored.copy.has_value() && stored.copy_says_cancelled == is_cancelled;
    // One that was damaged is made again already.
    if (!IsKnown(stored) || is_whole || !stored.copy_damage.empty()) continue;
    session_->Improve(kRequests, CopyKey(number), EncodeCopy(stored.batch));
    ++missing;
  }
  if (missing == 0) return;
  session_->Note(
      absl::StrCat(missing, " batches have no copies of what nothing else says of them"));
}

absl::Status Check::ForgetBatch(uint64_t number, const StoredBatch& stored) {
  Damage damage{.kind = "batch", .name = absl::StrCat("batch ", number)};
  damage.why = stored.record.has_value() ? stored.record_damage : "its record is not there";
  damage.remedy = "the batch is taken away; running its input again makes a new one";
  if (stored.record.has_value()) {
    damage.records.push_back(session_->Stored(kBatches, BatchKey(number), *stored.record));
  }
  if (stored.progress.has_value()) {
    damage.records.push_back(session_->Stored(kProgress, BatchKey(number), *stored.progress));
  }
  if (stored.copy.has_value()) {
    damage.records.push_back(session_->Stored(kRequests, CopyKey(number), *stored.copy));
  }
  MUSTER_RETURN_IF_ERROR(AddRunsFrom(number, 0, &damage.records));
  return session_->Found(std::move(damage));
}

absl::Status Check::RestoreProgress(uint64_t number, StoredBatch* stored) {
  Damage damage{.kind = "progress", .name = absl::StrCat("batch ", number)};
  damage.why = stored->progress.has_value() ? stored->progress_damage : "its progress is not there";
  damage.remedy = "the batch stays cancelled: its progress is made again of its copy";
  if (stored->progress.has_value()) {
    damage.records = {session_->Stored(kProgress, BatchKey(number), *stored->progress)};
  }
  MUSTER_RETURN_IF_ERROR(session_->Found(std::move(damage)));
  Batch copied;
  MUSTER_RETURN_IF_ERROR(DecodeCopy(*stored->copy, number, &copied));
  stored->progress = EncodeProgress(copied);
  stored->progress_damage.clear();
  session_->Put(kProgress, BatchKey(number), *stored->progress);
  return DecodeProgress(*stored->progress, number, &stored->batch);
}

absl::Status Check::MendProgress(uint64_t number, StoredBatch* stored) {
  const bool progress_sound = IsProgressSound(*stored);
  Damage damage{.kind = progress_sound ? "items" : "progress",
                .name = absl::StrCat("batch ", number)};
  damage.why = stored->progress.has_value() ? stored->progress_damage : "its progress is not there";
  if (progress_sound) damage.why = stored->items_damage;
  // Nothing goes on with a batch that is known to be cancelled.
  const bool is_cancelled = progress_sound && stored->batch.state == BatchState::kCancelled;
  damage.remedy = is_cancelled ? absl::StrCat("the batch stays cancelled, with its first ",
                                              stored->items, " items")
                               : absl::StrCat("the batch goes on behind its first ", stored->items,
                                              " items: run its input again");
  if (stored->progress.has_value()) {
    damage.records.push_back(session_->Stored(kProgress, BatchKey(number), *stored->progress));
  }
  MUSTER_RETURN_IF_ERROR(AddRunsFrom(number, stored->items, &damage.records));
  MUSTER_RETURN_IF_ERROR(session_->Found(std::move(damage)));
  Batch mended = stored->batch;
  if (!is_cancelled) {
    mended.state = BatchState::kOpen;
    mended.completed.reset();
  }
  mended.items = stored->items;
  mended.transactions = stored->transactions;
  mended.source_bytes = stored->source_bytes;
  // The missing results reveal items that were not enqueued, and a refill puts them again.
  mended.enqueued_items =
      progress_sound ? std::min(stored->batch.enqueued_items, stored->items) : stored->items;
  // An ordinal that no refill of this batch has had: the queue drops messages with a known one as
  // duplicates.
  if (!progress_sound) mended.refills = static_cast<uint32_t>(absl::ToUnixSeconds(clock_->Now()));
  session_->Put(kProgress, BatchKey(number), EncodeProgress(mended));
  stored->batch = std::move(mended);
  return absl::OkStatus();
}

absl::Status Check::AddRunsFrom(uint64_t number, uint64_t first,
                                std::vector<os::StoredRecord>* runs) const {
  const auto add = [&](absl::string_view key, absl::string_view value) {
    // A record with an invalid key was reported already.
    if (key.size() == 16) runs->push_back(session_->Stored(kItems, key, value));
    return absl::OkStatus();
  };
  return session_->ForEach(kItems, add, ItemsKey(number, first),
                           number == UINT64_MAX ? "" : BatchKey(number + 1));
}

std::map<std::string, uint64_t> Check::BatchesByRequest() const {
  std::map<std::string, uint64_t> batches;
  for (const auto& [number, stored] : batches_) {
    if (!IsKnown(stored)) continue;
    batches[stored.batch.request_id] = number;
  }
  return batches;
}

absl::Status Check::CheckRequests() {
  std::map<std::string, uint64_t> missing = BatchesByRequest();
  const auto check = [&](absl::string_view id, absl::string_view value) {
    if (NumberOfCopy(id).has_value()) return absl::OkStatus();
    if (IsTenantKey(id)) return CheckTenantRequest(id, value);
    const auto found = missing.extract(std::string(id));
    return CheckRequest(id, value, found.empty() ? 0 : found.mapped());
  };
  MUSTER_RETURN_IF_ERROR(session_->ForEach(kRequests, check));
  for (const auto& [id, newest] : missing) {
    // A newer one was deleted.
    if (by_tenant_.contains(newest)) continue;
    MUSTER_RETURN_IF_ERROR(AddMissingRequest(id, newest));
  }
  return absl::OkStatus();
}

// A batch whose record is gone was another tenant's only in name: nothing is made of the key alone.
absl::Status Check::CheckTenantRequest(absl::string_view key, absl::string_view value) {
  session_->Count(1);
  const std::string name = absl::StrCat("request '", absl::CHexEscape(key), "'");
  const absl::StatusOr<absl::string_view> payload = muster::rocksdb::CheckedPayload(value, name);
  const auto may_name = [key](uint64_t number, const StoredBatch& stored) {
    const Batch& batch = stored.batch;
    return IsKnown(stored) && (key == TenantKey(batch.tenant, batch.request_id, number) ||
                               key == TenantKey(batch.tenant, batch.request_id));
  };
  if (payload.ok() && payload->size() == 8) {
    const auto found = batches_.find(muster::rocksdb::KeyNumber(*payload));
    if (found != batches_.end() && may_name(found->first, found->second)) {
      by_tenant_.insert(found->first);
      return absl::OkStatus();
    }
  }
  uint64_t newest = 0;
  for (const auto& [number, stored] : batches_) {
    if (may_name(number, stored)) newest = number;
  }
  Damage damage{.kind = "request", .name = name};
  damage.why = payload.ok() ? "it speaks of no batch of its tenant"
                            : std::string(payload.status().message());
  damage.remedy = newest == 0 ? "is taken away" : absl::StrCat("speaks of batch ", newest);
  damage.records = {session_->Stored(kRequests, key, value)};
  MUSTER_RETURN_IF_ERROR(session_->Found(std::move(damage)));
  if (newest != 0) session_->Put(kRequests, key, muster::rocksdb::CheckedValue(BatchKey(newest)));
  return absl::OkStatus();
}

absl::Status Check::CheckRequest(absl::string_view id, absl::string_view value, uint64_t newest) {
  session_->Count(1);
  const std::string name = absl::StrCat("request '", absl::CHexEscape(id), "'");
  const absl::StatusOr<absl::string_view> batch = muster::rocksdb::CheckedPayload(value, name);
  if (batch.ok() && newest != 0 && *batch == BatchKey(newest)) return absl::OkStatus();
  Damage damage{.kind = "request", .name = name};
  damage.why = batch.ok() ? absl::StrCat("it speaks of batch ", muster::rocksdb::KeyNumber(*batch),
                                         ", and not of its newest that is there")
                          : std::string(batch.status().message());
  damage.remedy = newest == 0 ? "is taken away" : absl::StrCat("speaks of batch ", newest);
  damage.records = {session_->Stored(kRequests, id, value)};
  MUSTER_RETURN_IF_ERROR(session_->Found(std::move(damage)));
  if (newest != 0) session_->Put(kRequests, id, muster::rocksdb::CheckedValue(BatchKey(newest)));
  return absl::OkStatus();
}

absl::Status Check::AddMissingRequest(const std::string& request_id, uint64_t newest) {
  MUSTER_RETURN_IF_ERROR(
      session_->Found({.kind = "request",
                       .name = absl::StrCat("request '", absl::CHexEscape(request_id), "'"),
                       .why = "it is not there",
                       .remedy = absl::StrCat("speaks of batch ", newest)}));
  session_->Put(kRequests, request_id, muster::rocksdb::CheckedValue(BatchKey(newest)));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LedgerSummary> CheckLedger(const std::string& dir,
                                          const LedgerCheckOptions& options) {
  Options files;
  files.env = options.env;
  MUSTER_ASSIGN_OR_RETURN(
      const auto session,
      muster::rocksdb::RepairSession::Open(dir, "ledger", LedgerDatabase(files), options.check,
                                           /*may_begin_anew=*/false));
  Check check(session.get(), options.clock);
  MUSTER_RETURN_IF_ERROR(check.Run());
  LedgerSummary summary;
  MUSTER_ASSIGN_OR_RETURN(static_cast<os::CheckSummary&>(summary), session->Finish());
  summary.last_batch = check.last_batch();
  summary.batches = check.batches();
  return summary;
}

}  // namespace muster::ledger::rocksdb
