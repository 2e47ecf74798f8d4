// Overrides: the numbers that somebody demands for a while. One record of the sync store:
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
  std::string by;  // who asked for it; empty: not known

  bool operator==(const Override&) const = default;
};

std::string Encode(const std::vector<Override>& overrides);
// DataLoss: it is none. FailedPrecondition: of a later version.
absl::StatusOr<std::vector<Override>> DecodeOverrides(absl::string_view text);

// Thread-safe. What is asked is answered from memory.
class Overrides {
 public:
  // `store` and `clock` are not owned.
  Overrides(sync::OptimisticSyncStore* store, base::Clock* clock) : store_(store), clock_(clock) {}

  // Reads what is in force; blocks as long as the store does.
  absl::Status Refresh();
  // Others may have changed them: nothing is known until the next Refresh.
  void Forget();
  bool is_known() const;

  // In force now. nullopt: none is, or nothing is known.
  std::optional<Override> Of(const std::string& target) const;

  // Durable when they answer OK. Upon an error the outcome is unknown; again does no harm.
  // Aborted: others kept being first.
  absl::Status Set(const Override& override);
  absl::Status Clear(const std::string& target);

 private:
  using ByTarget = std::map<std::string, Override>;

  absl::Status Change(const std::function<void(ByTarget*)>& change);
  absl::StatusOr<ByTarget> Read(uint64_t* version) const;
  void Know(ByTarget overrides);

  sync::OptimisticSyncStore* const store_;  // not owned
  base::Clock* const clock_;                // not owned

  base::Mutex changing_;  // held while reading or changing the record: memory follows in its order
  mutable base::Mutex mu_;
  std::optional<ByTarget> known_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::scaling_agent
