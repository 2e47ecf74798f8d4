// SPDX-License-Identifier: Apache-2.0

// QueueWatch reads the statistics of a target's queues. The functions before it match the names in
// the rules with queues and jobs.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/queue/queue_store.h"
#include "muster/scaling/policy/policy.h"
#include "muster/scaling/rules/rules.h"

namespace muster::scaling_agent {

using scaling::rules::MatchesQueue;

// The name among `names` (from the rules) that means `queue`. An exact match wins; "" if no name
// matches.
absl::string_view NameOf(absl::string_view queue, const std::vector<std::string>& names);

// "retail-in" of "retail-in-0"; a name that does not end in a number stays unchanged.
absl::string_view WithoutPartition(absl::string_view name);

// The job whose input queue this name in the rules means, or all its partitions: "retail" for
// "retail-in-0" and for "retail-in". The result is one of `jobs`, or a job that is not applied yet.
// nullopt: the name is not that of an input queue, or muster derived the queue's name from a job
// that is not in `jobs`.
std::optional<std::string> JobOf(absl::string_view name, const std::vector<std::string>& jobs);

// "account/retail-in-0" → "retail-in-0"; "" if the queue belongs to another account.
absl::string_view WithinAccount(absl::string_view queue, absl::string_view account);

// QueueWatch: the last statistics of one target's queues.

// Thread-safe; one Look at a time. Look blocks for as long as the store does; no other call blocks.
class QueueWatch {
 public:
  // Returns the names of all jobs; may block on a store. QueueWatch calls it only while a name has
  // no queue.
  using Jobs = std::function<std::vector<std::string>()>;

  // `names`: the queue names in the rules (see MatchesQueue). `store` and `clock` are not owned.
  // `jobs` may be empty: no job is known.
  QueueWatch(std::string account, std::vector<std::string> names, queue::QueueStore* store,
             base::Clock* clock, Jobs jobs = {});

  // Reads all queues of the target. If one read fails, the previous readings stay. A name without a
  // queue has no work; a name with more than kMaxPartitions partitions is an error (see trouble).
  void Look() ABSL_LOCKS_EXCLUDED(mu_);

  // One reading for each name, its partitions summed up. Empty: the last successful Look is too
  // old.
  std::vector<scaling::policy::QueueReading> readings() const ABSL_LOCKS_EXCLUDED(mu_);
  // Why the last Look failed, or how long the present one has been running.
  absl::Status trouble() const ABSL_LOCKS_EXCLUDED(mu_);
  // NotFound: for kUnknownNameGrace a name has had neither a queue nor a job. The message tells the
  // name and the names that exist.
  absl::Status unknown() const ABSL_LOCKS_EXCLUDED(mu_);

  // A trigger named this queue: if the watch does not know it, the next Look lists the queues
  // again.
  void OnTrigger(absl::string_view queue) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Partitions = std::map<std::string, std::vector<queue::QueueId>>;  // by name

  absl::StatusOr<Partitions> List() ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::vector<queue::QueueId>> PartitionsOf(const std::string& name)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::string> UnknownIn(const Partitions& partitions) ABSL_LOCKS_EXCLUDED(mu_);
  void NoteUnknown(std::string text) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::vector<std::string>> NamesThereAre(const std::vector<std::string>& jobs)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::vector<scaling::policy::QueueReading>> Read() ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<scaling::policy::QueueReading> ReadOne(
      const std::string& name, const std::vector<queue::QueueId>& partitions)
      ABSL_LOCKS_EXCLUDED(mu_);

  const std::string account_;
  const std::vector<std::string> names_;
  queue::QueueStore* const store_;  // not owned
  base::Clock* const clock_;        // not owned
  const Jobs jobs_;

  // Used only by the thread that calls Look.
  absl::Duration listed_at_ = -absl::InfiniteDuration();

  mutable base::Mutex mu_;
  Partitions partitions_ ABSL_GUARDED_BY(mu_);
  bool shall_list_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<scaling::policy::QueueReading> readings_ ABSL_GUARDED_BY(mu_);
  absl::Duration read_at_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  absl::Duration looking_since_ ABSL_GUARDED_BY(mu_) = absl::InfiniteDuration();
  absl::Status trouble_ ABSL_GUARDED_BY(mu_);
  absl::Duration unknown_since_ ABSL_GUARDED_BY(mu_) = absl::InfiniteDuration();
  std::string unknown_ ABSL_GUARDED_BY(mu_);  // the unknown names, and the names that exist
};

}  // namespace muster::scaling_agent
