// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/rocksdb/dedup_ids.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "muster/base/status.h"
#include "muster/rocksdb/database.h"
#include "rocksdb/db.h"

namespace muster::queue::rocksdb {

namespace {

// A sweep reads twice as many records as were put since the last sweep. So it catches up with any
// backlog, and the records on disk stay within a small multiple of the records that still matter.
constexpr size_t kPutsPerSweep = 4096;
constexpr size_t kRecordsPerSweep = 2 * kPutsPerSweep;

}  // namespace

DedupIds::Reservation::Reservation(DedupIds* ids, std::vector<std::string> wanted)
    : ids_(ids), wanted_(std::move(wanted)) {
  const auto is_reserved = [&](const std::string& id) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return !id.empty() && ids_->reserved_.contains(id);
  };
  base::MutexLock lock(&ids_->mu_);
  while (std::any_of(wanted_.begin(), wanted_.end(), is_reserved)) {
    ids_->released_.Wait(&ids_->mu_);
  }
  for (const std::string& id : wanted_) {
    if (!id.empty()) ids_->reserved_.insert(id);
  }
}

DedupIds::Reservation::~Reservation() {
  base::MutexLock lock(&ids_->mu_);
  bool any = false;
  for (const std::string& id : wanted_) any |= ids_->reserved_.erase(id) > 0;
  if (any) ids_->released_.NotifyAll();
}

absl::StatusOr<std::vector<std::optional<DedupRecord>>> DedupIds::Reservation::LookUp() const {
  std::vector<std::optional<DedupRecord>> known(wanted_.size());
  for (size_t i = 0; i < wanted_.size(); ++i) {
    if (wanted_[i].empty()) continue;
    const std::string key = DedupKey(ids_->queue_, wanted_[i]);
    const ReadResult read = ids_->storage_->Read(kDedup, key);
    if (read.status.ok()) {
      known[i] = DecodeDedup(read.value, key);
    } else if (!absl::IsNotFound(read.status) && !absl::IsDataLoss(read.status)) {
      return read.status;
    }
  }
  return known;
}

void DedupIds::Write(::rocksdb::WriteBatch* batch, const std::string& id,
                     const DedupRecord& record) const {
  const std::string key = DedupKey(queue_, id);
  batch->Put(storage_->family(kDedup), key, EncodeDedup(record, key));
}

bool DedupIds::SweepIsDue(size_t ids_put) {
  base::MutexLock lock(&mu_);
  put_since_sweep_ += ids_put;
  return put_since_sweep_ >= kPutsPerSweep;
}

void DedupIds::Sweep(const std::function<bool(const DedupRecord&)>& forget) {
  base::MutexLock lock(&mu_);
  if (put_since_sweep_ < kPutsPerSweep) return;  // another put swept first
  put_since_sweep_ = 0;
  const std::string prefix = DedupKey(queue_, "");
  ::rocksdb::WriteBatch batch;
  const std::unique_ptr<::rocksdb::Iterator> it(
      storage_->db()->NewIterator(::rocksdb::ReadOptions(), storage_->family(kDedup)));
  it->Seek(sweep_from_.empty() ? prefix : sweep_from_);
  std::string key;
  const auto in_queue = [&] {
    if (!it->Valid()) return false;
    key = muster::rocksdb::Copy(it->key());
    return absl::StartsWith(key, prefix);
  };
  bool more = in_queue();
  for (size_t n = 0; more && n < kRecordsPerSweep; ++n) {
    const auto record = DecodeDedup(muster::rocksdb::Copy(it->value()), key);
    if (!record.has_value() || forget(*record)) batch.Delete(storage_->family(kDedup), key);
    it->Next();
    more = in_queue();
  }
  sweep_from_ = more ? key : "";
  // No sync: if these deletes are lost, a later sweep finds the records again.
  storage_->Write(&batch, muster::rocksdb::Durability::kProcess).IgnoreError();
}

}  // namespace muster::queue::rocksdb
