#include "muster/ledger_rocksdb/check.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/ledger_rocksdb/batch_codec.h"
#include "muster/ledger_rocksdb/rocksdb_batch_ledger.h"
#include "muster/rocks/checked_value.h"
#include "muster/rocks/workbench.h"

namespace muster::ledger_rocksdb {
namespace {

using damage::Damage;
using ledger::Batch;
using ledger::BatchState;
using ledger::ItemBoundary;

// All that the ledger holds of one batch. What was damaged is there as it is stored.
struct Pages {
  Batch batch;
  std::optional<std::string> record;
  std::optional<std::string> progress;
  std::string record_damage, progress_damage;  // why; "" where it is sound, or not there

  // Up to the first run that is damaged or does not follow.
  uint64_t items = 0;
  uint64_t transactions = 0;
  uint64_t source_bytes = 0;
  std::string items_damage;
};

class Check {
 public:
  Check(rocks::Workbench* bench, base::Clock* clock) : bench_(bench), clock_(clock) {}

  absl::Status Run() {
    MUSTER_RETURN_IF_ERROR(ReadBatches());
    MUSTER_RETURN_IF_ERROR(ReadItems());
    for (auto& [number, pages] : pages_) MUSTER_RETURN_IF_ERROR(CheckBatch(number, &pages));
    return CheckRequests();
  }

  uint64_t last_batch() const { return pages_.empty() ? 0 : pages_.rbegin()->first; }

 private:
  absl::Status ReadBatches();
  // nullopt, and the record is taken away, when the key cannot be a batch's.
  absl::StatusOr<std::optional<uint64_t>> NumberIn(size_t family, absl::string_view key,
                                                   absl::string_view value, size_t key_bytes);
  absl::Status ReadItems();
  static void ReadRun(absl::string_view key, absl::string_view value, uint64_t number,
                      Pages* pages);
  absl::Status CheckBatch(uint64_t number, Pages* pages);
  // Takes away all of a batch whose record is lost.
  absl::Status ForgetBatch(uint64_t number, const Pages& pages);
  absl::Status MendProgress(uint64_t number, Pages* pages);
  // The runs of items that begin at `first` or later, to `runs`.
  absl::Status AddRunsFrom(uint64_t number, uint64_t first,
                           std::vector<damage::StoredRecord>* runs) const;
  absl::Status CheckRequests();
  // `newest` of its batches; 0: there is none.
  absl::Status CheckRequest(absl::string_view id, absl::string_view value, uint64_t newest);
  // Without its request's record, a batch would not be found by the run that goes on with it.
  absl::Status AddMissingRequest(const std::string& request_id, uint64_t newest);
  // The newest batch of each request id.
  std::map<std::string, uint64_t> BatchesByRequest() const;

  rocks::Workbench* const bench_;  // not owned
  base::Clock* const clock_;       // not owned
  std::map<uint64_t, Pages> pages_;
};

absl::StatusOr<std::optional<uint64_t>> Check::NumberIn(size_t family, absl::string_view key,
                                                        absl::string_view value, size_t key_bytes) {
  bench_->Count(1);
  if (key.size() == key_bytes) return rocks::KeyNumber(key);
  Damage damage{.kind = "key",
                .name = absl::StrCat("key ", absl::BytesToHexString(key)),
                .why = "no record has such a key",
                .remedy = "the record is taken away"};
  damage.records = {bench_->Stored(family, key, value)};
  MUSTER_RETURN_IF_ERROR(bench_->Found(std::move(damage)));
  return std::nullopt;
}

absl::Status Check::ReadBatches() {
  using absl::string_view;
  const auto read_record = [&](string_view key, string_view value) -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const auto number, NumberIn(kBatches, key, value, 8));
    if (!number.has_value()) return absl::OkStatus();
    Pages& pages = pages_[*number];
    pages.record = std::string(value);
    pages.record_damage = std::string(DecodeRecord(value, *number, &pages.batch).message());
    return absl::OkStatus();
  };
  const auto read_progress = [&](string_view key, string_view value) -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const auto number, NumberIn(kProgress, key, value, 8));
    if (!number.has_value()) return absl::OkStatus();
    Pages& pages = pages_[*number];
    pages.progress = std::string(value);
    pages.progress_damage = std::string(DecodeProgress(value, *number, &pages.batch).message());
    return absl::OkStatus();
  };
  MUSTER_RETURN_IF_ERROR(bench_->ForEach(kBatches, read_record));
  return bench_->ForEach(kProgress, read_progress);
}

absl::Status Check::ReadItems() {
  const auto read = [&](absl::string_view key, absl::string_view value) -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const auto number, NumberIn(kItems, key, value, 16));
    if (number.has_value()) ReadRun(key, value, *number, &pages_[*number]);
    return absl::OkStatus();
  };
  return bench_->ForEach(kItems, read);
}

void Check::ReadRun(absl::string_view key, absl::string_view value, uint64_t number, Pages* pages) {
  if (!pages->items_damage.empty()) return;
  const uint64_t first = rocks::KeyNumber(key.substr(8));
  const absl::StatusOr<std::vector<ItemBoundary>> run = DecodeItems(value, number);
  if (!run.ok()) {
    pages->items_damage = std::string(run.status().message());
  } else if (first != pages->items) {
    pages->items_damage =
        absl::StrCat("items ", pages->items, " to ", first, " of batch ", number, " are not there");
  } else if (!run->empty()) {
    for (const ItemBoundary& item : *run) pages->transactions += item.transactions;
    pages->items += run->size();
    pages->source_bytes = run->back().offset + run->back().length;
  }
}

absl::Status Check::CheckBatch(uint64_t number, Pages* pages) {
  if (!pages->record.has_value() || !pages->record_damage.empty()) {
    return ForgetBatch(number, *pages);
  }
  const bool progress_sound = pages->progress.has_value() && pages->progress_damage.empty();
  if (progress_sound && pages->items_damage.empty() && pages->batch.items != pages->items) {
    pages->items_damage = absl::StrCat("its progress speaks of ", pages->batch.items,
                                       " items, and ", pages->items, " are there");
  }
  if (progress_sound && pages->items_damage.empty()) return absl::OkStatus();
  return MendProgress(number, pages);
}

absl::Status Check::ForgetBatch(uint64_t number, const Pages& pages) {
  Damage damage{.kind = "batch", .name = absl::StrCat("batch ", number)};
  damage.why = pages.record.has_value() ? pages.record_damage : "its record is not there";
  damage.remedy = "the batch is taken away; running its input again makes a new one";
  if (pages.record.has_value()) {
    damage.records.push_back(bench_->Stored(kBatches, BatchKey(number), *pages.record));
  }
  if (pages.progress.has_value()) {
    damage.records.push_back(bench_->Stored(kProgress, BatchKey(number), *pages.progress));
  }
  MUSTER_RETURN_IF_ERROR(AddRunsFrom(number, 0, &damage.records));
  return bench_->Found(std::move(damage));
}

absl::Status Check::MendProgress(uint64_t number, Pages* pages) {
  const bool progress_sound = pages->progress.has_value() && pages->progress_damage.empty();
  Damage damage{.kind = progress_sound ? "items" : "progress",
                .name = absl::StrCat("batch ", number)};
  damage.why = pages->progress.has_value() ? pages->progress_damage : "its progress is not there";
  if (progress_sound) damage.why = pages->items_damage;
  damage.remedy = absl::StrCat("the batch goes on behind its first ", pages->items,
                               " items: run its input again");
  if (pages->progress.has_value()) {
    damage.records.push_back(bench_->Stored(kProgress, BatchKey(number), *pages->progress));
  }
  MUSTER_RETURN_IF_ERROR(AddRunsFrom(number, pages->items, &damage.records));
  MUSTER_RETURN_IF_ERROR(bench_->Found(std::move(damage)));
  Batch mended = pages->batch;
  mended.state = BatchState::kOpen;
  mended.completed.reset();
  mended.items = pages->items;
  mended.transactions = pages->transactions;
  mended.source_bytes = pages->source_bytes;
  // What was not enqueued is missed later, and put again then.
  mended.enqueued_items =
      progress_sound ? std::min(pages->batch.enqueued_items, pages->items) : pages->items;
  // An ordinal that no refill of this batch has had: the queue knows theirs as duplicates.
  if (!progress_sound) mended.refills = static_cast<uint32_t>(absl::ToUnixSeconds(clock_->Now()));
  bench_->Put(kProgress, BatchKey(number), EncodeProgress(mended));
  return absl::OkStatus();
}

absl::Status Check::AddRunsFrom(uint64_t number, uint64_t first,
                                std::vector<damage::StoredRecord>* runs) const {
  const auto add = [&](absl::string_view key, absl::string_view value) {
    // One with a key that no record has was told of already.
    if (key.size() == 16) runs->push_back(bench_->Stored(kItems, key, value));
    return absl::OkStatus();
  };
  return bench_->ForEach(kItems, add, ItemsKey(number, first),
                         number == UINT64_MAX ? "" : BatchKey(number + 1));
}

std::map<std::string, uint64_t> Check::BatchesByRequest() const {
  std::map<std::string, uint64_t> batches;
  for (const auto& [number, pages] : pages_) {
    if (!pages.record.has_value() || !pages.record_damage.empty()) continue;
    batches[pages.batch.request_id] = number;
  }
  return batches;
}

absl::Status Check::CheckRequests() {
  std::map<std::string, uint64_t> missing = BatchesByRequest();
  const auto check = [&](absl::string_view id, absl::string_view value) {
    const auto found = missing.extract(std::string(id));
    return CheckRequest(id, value, found.empty() ? 0 : found.mapped());
  };
  MUSTER_RETURN_IF_ERROR(bench_->ForEach(kRequests, check));
  for (const auto& [id, newest] : missing) MUSTER_RETURN_IF_ERROR(AddMissingRequest(id, newest));
  return absl::OkStatus();
}

absl::Status Check::CheckRequest(absl::string_view id, absl::string_view value, uint64_t newest) {
  bench_->Count(1);
  const std::string name = absl::StrCat("request '", absl::CHexEscape(id), "'");
  const absl::StatusOr<absl::string_view> batch = rocks::CheckedPayload(value, name);
  if (batch.ok() && newest != 0 && *batch == BatchKey(newest)) return absl::OkStatus();
  Damage damage{.kind = "request", .name = name};
  damage.why = batch.ok() ? absl::StrCat("it speaks of batch ", rocks::KeyNumber(*batch),
                                         ", and not of its newest that is there")
                          : std::string(batch.status().message());
  damage.remedy = newest == 0 ? "is taken away" : absl::StrCat("speaks of batch ", newest);
  damage.records = {bench_->Stored(kRequests, id, value)};
  MUSTER_RETURN_IF_ERROR(bench_->Found(std::move(damage)));
  if (newest != 0) bench_->Put(kRequests, id, rocks::CheckedValue(BatchKey(newest)));
  return absl::OkStatus();
}

absl::Status Check::AddMissingRequest(const std::string& request_id, uint64_t newest) {
  MUSTER_RETURN_IF_ERROR(
      bench_->Found({.kind = "request",
                     .name = absl::StrCat("request '", absl::CHexEscape(request_id), "'"),
                     .why = "it is not there",
                     .remedy = absl::StrCat("speaks of batch ", newest)}));
  bench_->Put(kRequests, request_id, rocks::CheckedValue(BatchKey(newest)));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LedgerSummary> CheckLedger(const std::string& dir,
                                          const LedgerCheckOptions& options) {
  Options files;
  files.env = options.env;
  MUSTER_ASSIGN_OR_RETURN(
      const auto bench, rocks::Workbench::Open(dir, "ledger", LedgerDatabase(files), options.check,
                                               /*may_begin_anew=*/false));
  Check check(bench.get(), options.clock);
  MUSTER_RETURN_IF_ERROR(check.Run());
  LedgerSummary summary;
  MUSTER_ASSIGN_OR_RETURN(static_cast<damage::Summary&>(summary), bench->Finish());
  summary.last_batch = check.last_batch();
  return summary;
}

}  // namespace muster::ledger_rocksdb
