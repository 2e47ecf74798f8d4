// SPDX-License-Identifier: Apache-2.0

// OrderedPartitions: the partitions of a job with order_by that this process owns. It tells the
// job's listener of each that comes and goes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/listener/ordered_listener.h"
#include "muster/partition/partition_member.h"
#include "muster/sync/optimistic_sync_store.h"
#include "muster/telemetry/registry.h"

namespace muster::processor {

// A partition whose owner has died is another one's after the lease, and half a cycle.
inline constexpr absl::Duration kOwnerCycle = absl::Seconds(2);
inline constexpr absl::Duration kOwnerLease = absl::Seconds(10);
// How long an owner may finish what runs when a partition is to go to another one; what then still
// runs is done again there.
inline constexpr absl::Duration kOwnerGrace = absl::Seconds(5);

// The group that shares the input partitions of a job.
std::string OwnerGroupOf(absl::string_view account, absl::string_view job, int partitions);

// Thread-safe.
class OrderedPartitions final : public partition::PartitionWork {
 public:
  // Nothing is owned. `sync` null: no other process has the queues, so all partitions are this
  // process's. `metrics` may be null.
  OrderedPartitions(listener::OrderedListener* listener, sync::OptimisticSyncStore* sync,
                    base::Clock* clock, telemetry::Registry* metrics)
      : listener_(listener), sync_(sync), clock_(clock), metrics_(metrics) {}
  ~OrderedPartitions() override { Stop(); }

  // `instance`: for people, in the names of members.
  absl::Status Start(const std::string& group, const std::string& instance, int partitions)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Lets others have the partitions. The listener has stopped, or what it runs is done again.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

  void OnAssigned(int partition, int64_t epoch) override;
  void OnDraining(int partition, int64_t epoch, absl::Duration deadline) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void OnRevoked(int partition, int64_t epoch) override;

 private:
  // nullptr: there is none.
  partition::PartitionMember* MemberIfAny() ABSL_LOCKS_EXCLUDED(mu_);

  listener::OrderedListener* const listener_;  // not owned
  sync::OptimisticSyncStore* const sync_;      // not owned; may be null
  base::Clock* const clock_;                   // not owned
  telemetry::Registry* const metrics_;         // not owned; may be null

  base::Mutex mu_;  // held while the member starts: what it calls may need it
  std::unique_ptr<partition::PartitionMember> member_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::processor
