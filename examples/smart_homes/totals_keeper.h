// TotalsKeeper: counts readings exactly once, although events come at least once. It keeps the
// totals of each partition in one record with the offset up to which they count, so an event that
// comes again is known by its offset, and an earlier owner's write meets another version and is
// refused.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/smart_homes/readings.h"
#include "muster/base/mutex.h"
#include "muster/stream/processor/event_handler.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::example {

// Thread-safe.
class TotalsKeeper final : public stream::processor::EventHandler {
 public:
  // Writes the record and a checkpoint after so many events, and as it closes.
  static constexpr int64_t kSaveEvery = 500;

  // `store` is not owned.
  explicit TotalsKeeper(sync::OptimisticSyncStore* store) : store_(store) {}

  absl::Status OnEvent(stream::processor::PartitionContext& partition,
                       const stream::Event* event) override;
  void OnError(const stream::processor::ProcessorError& error) override;
  void OnPartitionInitializing(stream::processor::PartitionContext& partition) override;
  void OnPartitionClosing(stream::processor::PartitionContext& partition,
                          stream::processor::CloseReason reason) override;

  // What is recorded of a partition so far.
  static absl::StatusOr<Totals> Recorded(sync::OptimisticSyncStore* store, int partition);

 private:
  struct Partition {
    bool loaded = false;
    int64_t next = 1;  // the first offset that does not count yet
    int64_t saved = 1;
    Totals totals;
    uint64_t version = sync::kAbsent;
    std::string tried = "";  // the last write
  };

  // Of the calling partition; its calls never overlap.
  Partition* Of(int partition);
  absl::Status Load(int number, Partition* partition);
  absl::Status Save(stream::processor::PartitionContext& context, Partition* partition);

  sync::OptimisticSyncStore* const store_;  // not owned
  base::Mutex mu_;
  std::map<int, Partition> partitions_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::example
