// What the rules of a target mean by the name of a queue.
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

// Of the names in the rules, the one that means `queue`; the exact one first, "" if none does.
absl::string_view NameOf(absl::string_view queue, const std::vector<std::string>& names);

// "retail-in" of "retail-in-0"; a name that ends in no number is itself.
absl::string_view WithoutPartition(absl::string_view name);

// The job whose input queue this name in the rules means, or all its partitions: "retail" for
// "retail-in-0" and for "retail-in". It is one of `jobs`, or else one that is yet to be applied.
// nullopt: it is no job's input queue, or that of none of `jobs` as muster named it.
std::optional<std::string> JobOf(absl::string_view name, const std::vector<std::string>& jobs);

// "account/retail-in-0" → "retail-in-0"; "" where it is another account's.
absl::string_view WithinAccount(absl::string_view queue, absl::string_view account);

// QueueWatch: what the queues of one target said of themselves last.

// Thread-safe; one Look at a time. Look blocks for as long as the store does; nothing else waits.
class QueueWatch {
 public:
  // Names of all jobs that there are; may wait for a store. Nobody asks while each name has a
  // queue.
  using Jobs = std::function<std::vector<std::string>()>;

  // `names`: as the rules have them (queue_names.h). `store` and `clock` are not owned. `jobs` may
  // be empty: none is known.
  QueueWatch(std::string account, std::vector<std::string> names, queue::QueueStore* store,
             base::Clock* clock, Jobs jobs = {});

  // Reads all queues of the target; nothing of what could not be read whole is taken over. A name
  // for which there is no queue yet has no work; one with more than kMaxPartitions is a trouble.
  void Look();

  // One for each name, its partitions summed up. Empty: the last look that succeeded is too long
  // ago.
  std::vector<scaling::policy::QueueReading> readings() const;
  // Why the last look failed, or how long it has been going on.
  absl::Status trouble() const;
  // NotFound: for kUnknownNameGrace there has been neither a queue nor a job for some name. It says
  // which, and what there is instead.
  absl::Status unknown() const;

  // A trigger named this queue: if it is not known, the next look searches for it.
  void OnTrigger(absl::string_view queue);

 private:
  using Partitions = std::map<std::string, std::vector<queue::QueueId>>;  // by name

  absl::StatusOr<Partitions> List();
  absl::StatusOr<std::vector<queue::QueueId>> PartitionsOf(const std::string& name);
  absl::StatusOr<std::string> UnknownIn(const Partitions& partitions);
  void NoteUnknown(std::string text);
  absl::StatusOr<std::vector<std::string>> NamesThereAre(const std::vector<std::string>& jobs);
  absl::StatusOr<std::vector<scaling::policy::QueueReading>> Read();
  absl::StatusOr<scaling::policy::QueueReading> ReadOne(
      const std::string& name, const std::vector<queue::QueueId>& partitions);

  const std::string account_;
  const std::vector<std::string> names_;
  queue::QueueStore* const store_;  // not owned
  base::Clock* const clock_;        // not owned
  const Jobs jobs_;

  // Of the thread that looks.
  absl::Duration listed_at_ = -absl::InfiniteDuration();

  mutable base::Mutex mu_;
  Partitions partitions_ ABSL_GUARDED_BY(mu_);
  bool shall_list_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<scaling::policy::QueueReading> readings_ ABSL_GUARDED_BY(mu_);
  absl::Duration read_at_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  absl::Duration looking_since_ ABSL_GUARDED_BY(mu_) = absl::InfiniteDuration();
  absl::Status trouble_ ABSL_GUARDED_BY(mu_);
  absl::Duration unknown_since_ ABSL_GUARDED_BY(mu_) = absl::InfiniteDuration();
  std::string unknown_ ABSL_GUARDED_BY(mu_);  // names, and what there is instead
};

}  // namespace muster::scaling_agent
