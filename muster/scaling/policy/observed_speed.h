// ObservedSpeed: what a replica has done per second while work waited, by the queues' own totals.
// An estimate that is too high makes every deadline late, and no margin covers a fifth; the queues
// tell within seconds.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/scaling/policy/observation.h"
#include "muster/scaling/policy/reckoning.h"

namespace muster::scaling::policy {

// Not thread-safe.
class ObservedSpeed {
 public:
  void See(absl::Time now, const Fleet& fleet, absl::Span<const QueueReading> readings);

  // Items per second of one replica; 0: too few were done to tell.
  double ItemsPerSecond() const;

  // Time went backwards. What was learned stays.
  void StepBack();

 private:
  struct Reading {
    absl::Time at;
    int64_t waiting = 0;
    int64_t out = 0;
  };

  void Learn(const Reading& from, const Reading& to);

  CompletionEstimate replicas_;  // replica-seconds that were there to work
  std::optional<Reading> last_;
  int tasks_ = 0;
  double items_ = 0;
  double replica_seconds_ = 0;
};

}  // namespace muster::scaling::policy
