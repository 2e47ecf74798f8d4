// SPDX-License-Identifier: Apache-2.0

// Overrides: replica numbers that people demand for a limited time. One record of the sync store:
//
//   {"version":1,"overrides":[{"target":"billing","replicas":7,"until_ns":1321009200000000000,
//    "by":"ops"}]}
//
// To change it: keep reading what has been written; add members with a default that means what
// their absence did; raise kOverridesVersion where an old reader would go wrong.
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
#include "muster/sync/optimistic_sync_store.h"

namespace muster::scaling_agent {

inline constexpr char kOverridesKey[] = "scaling/overrides";
inline constexpr int kOverridesVersion = 1;

struct Override {
  std::string target;
  int replicas = 0;
  absl::Time until;
  std::string by;  // the name of the requester; empty: not known

  bool operator==(const Override&) const = default;
};

std::string Encode(const std::vector<Override>& overrides);
// DataLoss: `text` is not a record of overrides. FailedPrecondition: its version is later than this
// code's.
absl::StatusOr<std::vector<Override>> DecodeOverrides(absl::string_view text);

// Thread-safe. `Of` answers from memory.
class Overrides {
 public:
  // `store` and `clock` are not owned.
  Overrides(sync::OptimisticSyncStore* store, base::Clock* clock) : store_(store), clock_(clock) {}

  // Reads the overrides from the store; blocks as long as the store does.
  absl::Status Refresh() ABSL_LOCKS_EXCLUDED(changing_, mu_);
  // Drops the overrides in memory, because other agents may have changed the record. Nothing is
  // known until the next Refresh.
  void Forget() ABSL_LOCKS_EXCLUDED(mu_);
  bool is_known() const ABSL_LOCKS_EXCLUDED(mu_);

  // The override that is in force now. nullopt: there is none, or nothing is known.
  std::optional<Override> Of(const std::string& target) const ABSL_LOCKS_EXCLUDED(mu_);

  // The change is durable when they return OK. After an error the outcome is unknown; repeating the
  // call does no harm. Aborted: other writers changed the record first, kMaxOverrideTries times.
  absl::Status Set(const Override& override) ABSL_LOCKS_EXCLUDED(changing_, mu_);
  absl::Status Clear(const std::string& target) ABSL_LOCKS_EXCLUDED(changing_, mu_);

 private:
  using ByTarget = std::map<std::string, Override>;

  absl::Status Change(const std::function<void(ByTarget*)>& change)
      ABSL_LOCKS_EXCLUDED(changing_, mu_);
  absl::StatusOr<ByTarget> Read(uint64_t* version) const ABSL_LOCKS_EXCLUDED(mu_);
  void Know(ByTarget overrides) ABSL_LOCKS_EXCLUDED(mu_);

  sync::OptimisticSyncStore* const store_;  // not owned
  base::Clock* const clock_;                // not owned

  base::Mutex changing_;  // held while reading or writing the record, so that memory changes in the
                          // same order
  mutable base::Mutex mu_;
  std::optional<ByTarget> known_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::scaling_agent
