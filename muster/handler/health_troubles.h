// SPDX-License-Identifier: Apache-2.0

// HealthTroubles: what keeps a job's handlers from working, as the handlers report it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "muster/base/mutex.h"

namespace muster::handler {

// Enough for the last words on a stderr; a trouble is one line in a table, and part of each
// heartbeat.
inline constexpr size_t kMaxTroubleBytes = 512;

// How the trouble of handlers begins that take items, and have failed with the last of them: one
// may have an item in hand now that it works through. In heartbeats, this is the only mark of it,
// and an older instance has none.
inline constexpr absl::string_view kItemsFailed = "its last items failed: ";

inline bool TakesItems(absl::string_view trouble) {
  return absl::StartsWith(trouble, kItemsFailed);
}

// Shared by all handlers of a job. Thread-safe.
class HealthTroubles {
 public:
  // Returns what is wrong; empty: nothing.
  using Probe = std::function<std::string()>;

  // Notes that the handlers cannot work, until one of them calls Works. `why` is made printable,
  // and cut.
  void Note(absl::string_view why) ABSL_LOCKS_EXCLUDED(mu_);
  // The same, but they take items, and fail with them: see kItemsFailed.
  void NoteItems(absl::string_view why) ABSL_LOCKS_EXCLUDED(mu_);
  // A handler has done its work.
  void Works() ABSL_LOCKS_EXCLUDED(mu_);
  // A call of a handler takes long, until EndSlow(call): a number that no other call has. At most
  // one entry for each call that runs. why() tells of the oldest of them while nothing is noted.
  void NoteSlow(uint64_t call, absl::string_view why) ABSL_LOCKS_EXCLUDED(mu_);
  // The call has ended. Does nothing for a call that was never slow.
  void EndSlow(uint64_t call) ABSL_LOCKS_EXCLUDED(mu_);
  // The handlers answer, but work on no item, until EndFailing. why() tells of it while nothing is
  // noted.
  void NoteFailing(absl::string_view why) ABSL_LOCKS_EXCLUDED(mu_);
  void EndFailing() ABSL_LOCKS_EXCLUDED(mu_);
  bool is_failing() const ABSL_LOCKS_EXCLUDED(mu_);
  // why() calls `probe` while nothing else is known. `probe` returns at once, from any thread.
  void SetProbe(Probe probe) ABSL_LOCKS_EXCLUDED(mu_);

  // Empty: nothing is known to be wrong.
  std::string why() const ABSL_LOCKS_EXCLUDED(mu_);
  // Whether Works was ever called.
  bool has_worked() const ABSL_LOCKS_EXCLUDED(mu_);
  // Whether the last report came from Works.
  bool works() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable base::Mutex mu_;
  std::string why_ ABSL_GUARDED_BY(mu_);
  std::string failing_ ABSL_GUARDED_BY(mu_);
  bool works_ ABSL_GUARDED_BY(mu_) = false;
  bool has_worked_ ABSL_GUARDED_BY(mu_) = false;
  std::map<uint64_t, std::string> slow_ ABSL_GUARDED_BY(mu_);
  Probe probe_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::handler
