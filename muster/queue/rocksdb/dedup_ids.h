// DedupIds: the ids under which a queue's messages were put, on disk, so that a million of them
// cost no memory; a bloom filter answers most look-ups of a new id.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "muster/base/mutex.h"
#include "muster/queue/rocksdb/storage.h"

namespace muster::queue::rocksdb {

// Thread-safe.
class DedupIds {
 public:
  // `storage` is not owned.
  DedupIds(Storage* storage, uint64_t queue) : storage_(storage), queue_(queue) {}

  // While it lives no other put looks up or writes the same ids: of two concurrent puts of one id
  // the second waits and then finds the first.
  class Reservation {
   public:
    // Empty ids are passed over. Waits until all can be had together, so that no two puts wait for
    // each other.
    Reservation(DedupIds* ids, std::vector<std::string> wanted);
    ~Reservation();
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

    // One answer for each id of `wanted`, in order. A damaged record counts as none.
    absl::StatusOr<std::vector<std::optional<DedupRecord>>> LookUp() const;

   private:
    DedupIds* const ids_;  // not owned
    const std::vector<std::string> wanted_;
  };

  // Adds the record of `id` to a batch.
  void Write(::rocksdb::WriteBatch* batch, const std::string& id, const DedupRecord& record) const;

  // Counts ids that were put; true when enough have come together for a sweep.
  bool SweepIsDue(size_t ids_put);
  // Looks at a bounded number of records, going on where the last sweep ended, and deletes those
  // that `forget` says no longer matter. Nobody else may put meanwhile.
  void Sweep(const std::function<bool(const DedupRecord&)>& forget);

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
