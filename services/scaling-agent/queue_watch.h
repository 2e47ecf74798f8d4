// QueueWatch: what the queues of one target said of themselves last.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/queue/queue_store.h"
#include "muster/scaling/observation.h"

namespace muster::scaling_agent {

// Thread-safe; one Look at a time. Look blocks for as long as the store does; nothing else waits.
class QueueWatch {
 public:
  // `names`: as the rules have them (queue_names.h). `store` and `clock` are not owned.
  QueueWatch(std::string account, std::vector<std::string> names, queue::QueueStore* store,
             base::Clock* clock);

  // Reads all queues of the target; nothing of what could not be read whole is taken over. A name
  // for which there is no queue yet has no work; one with more than kMaxPartitions is a trouble.
  void Look();

  // One for each name, its partitions summed up. Empty: the last look that succeeded is too long
  // ago.
  std::vector<scaling::QueueReading> readings() const;
  // Why the last look failed, or how long it has been going on.
  absl::Status trouble() const;

  // A trigger named this queue: if it is not known, the next look searches for it.
  void Heard(absl::string_view queue);

 private:
  using Partitions = std::map<std::string, std::vector<queue::QueueId>>;  // by name

  absl::StatusOr<Partitions> List();
  absl::StatusOr<std::vector<queue::QueueId>> PartitionsOf(const std::string& name);
  absl::StatusOr<std::vector<scaling::QueueReading>> Read();
  absl::StatusOr<scaling::QueueReading> ReadOne(const std::string& name,
                                                const std::vector<queue::QueueId>& partitions);

  const std::string account_;
  const std::vector<std::string> names_;
  queue::QueueStore* const store_;  // not owned
  base::Clock* const clock_;        // not owned

  // Of the thread that looks.
  absl::Duration listed_at_ = -absl::InfiniteDuration();

  mutable base::Mutex mu_;
  Partitions partitions_ ABSL_GUARDED_BY(mu_);
  bool shall_list_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<scaling::QueueReading> readings_ ABSL_GUARDED_BY(mu_);
  absl::Duration read_at_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  absl::Duration looking_since_ ABSL_GUARDED_BY(mu_) = absl::InfiniteDuration();
  absl::Status trouble_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::scaling_agent
