// SPDX-License-Identifier: Apache-2.0

// DedupIds: the dedup ids of the messages of one queue. They lie on disk, so that a million of them
// cost no memory; a bloom filter answers most look-ups of a new id.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "muster/base/mutex.h"
#include "muster/queue/rocksdb/codec.h"
#include "muster/queue/rocksdb/storage.h"

namespace muster::queue::rocksdb {

// Thread-safe.
class DedupIds {
 public:
  // `storage` is not owned.
  DedupIds(Storage* storage, uint64_t queue) : storage_(storage), queue_(queue) {}

  // While a Reservation exists no other put looks up or writes its ids: of two concurrent puts with
  // the same id the second waits and then finds the record of the first.
  class Reservation {
   public:
    // Skips empty ids. Waits until all ids are free and takes them together, so that two puts never
    // wait for each other.
    Reservation(DedupIds* ids, std::vector<std::string> wanted);
    ~Reservation();
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

    // Returns one result for each id of `wanted`, in order. A damaged record counts as none.
    absl::StatusOr<std::vector<std::optional<DedupRecord>>> LookUp() const;

   private:
    DedupIds* const ids_;  // not owned
    const std::vector<std::string> wanted_;
  };

  // Adds the record of `id` to a batch.
  void Write(::rocksdb::WriteBatch* batch, const std::string& id, const DedupRecord& record) const;

  // Counts ids that were put. Returns true when enough were put since the last sweep to start one.
  bool SweepIsDue(size_t ids_put) ABSL_LOCKS_EXCLUDED(mu_);
  // Reads a bounded number of records, starting where the last sweep ended, and deletes each record
  // for which `forget` returns true. No put may run meanwhile.
  void Sweep(const std::function<bool(const DedupRecord&)>& forget) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Storage* const storage_;  // not owned
  const uint64_t queue_;

  base::Mutex mu_;
  base::CondVar released_;
  absl::flat_hash_set<std::string> reserved_ ABSL_GUARDED_BY(mu_);
  size_t put_since_sweep_ ABSL_GUARDED_BY(mu_) = 0;
  std::string sweep_from_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::queue::rocksdb
