// The bounds of what role instances know of each other, each with its reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/v1/heartbeat.pb.h"

namespace muster::bus {

// Often enough that a dead instance is missed within seconds, seldom enough that a hundred of them
// are no load.
inline constexpr absl::Duration kHeartbeatInterval = absl::Seconds(2);
// Between two heartbeats of which the second greets newcomers: when a fleet starts, each answers
// all of them at once.
inline constexpr absl::Duration kGreetInterval = absl::Milliseconds(100);
// So many in a row must be missing before an instance counts as leaving.
inline constexpr int kMissingHeartbeats = 3;
// Whoever looks every half a minute sees that one has left; later it is only noise.
inline constexpr absl::Duration kForgetAfter = absl::Minutes(1);

// Of instances' names, addresses and versions: what is longer was made up.
inline constexpr size_t kMaxInfoBytes = 256;
// A mesh has hundreds of instances; thousands mean that somebody makes them up. With the most that
// a heartbeat may have (heartbeat/limits.h) they take 64 MiB.
inline constexpr size_t kMaxInstances = 1000;
// Of the heartbeats in one answer, so that no answer is larger than gRPC takes by default.
inline constexpr size_t kMaxLoadBytes = size_t{3} << 20;

// Roster: which role instances there are, by the heartbeats that were heard.
//
//   heard ──► there ──kMissingHeartbeats missing──► leaving ──kForgetAfter──► forgotten
//               │                                       ▲
//               └───────── it says that it leaves ──────┘
//
// The intervals of senders and rosters are the same, or the senders' is the shorter one.

struct RosterOptions {
  absl::Duration interval = kHeartbeatInterval;
  absl::Duration forget_after = kForgetAfter;  // of silence, or since it said that it leaves
  size_t max_instances = kMaxInstances;
};

// A role instance as it was heard last.
struct RosterEntry {
  v1::Heartbeat heartbeat;
  absl::Time heard;  // by this process's clock
  bool leaving = false;
};

// Thread-safe. Keeps nothing of what nobody could have sent: heartbeats without a role or a name,
// or larger than they may be.
class Roster {
 public:
  // `clock` is not owned.
  explicit Roster(base::Clock* clock, RosterOptions options = RosterOptions());

  // A heartbeat came. One that was overtaken by a later one of its instance is ignored. When the
  // roster is full those that are leaving give way, those first that were heard longest ago; when
  // nobody is leaving a new instance is not taken up.
  void OnHeartbeat(const v1::Heartbeat& heartbeat);

  // In order of role and instance; nullopt: of all roles.
  std::vector<RosterEntry> List(std::optional<v1::Role> role = std::nullopt);

  // Heartbeats that were ignored: overtaken, malformed, or no room for them.
  int64_t ignored() const;

 private:
  using Key = std::pair<int, std::string>;  // role and instance

  struct Instance {
    v1::Heartbeat heartbeat;
    absl::Time heard;
    absl::Duration heard_monotonic;
  };
  using Instances = std::map<Key, Instance>;

  bool Take(const v1::Heartbeat& heartbeat);
  bool IsLeaving(const Instance& instance, absl::Duration now) const;
  void ForgetLocked(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MakeRoomLocked(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Clock* const clock_;  // not owned
  const RosterOptions options_;

  mutable base::Mutex mu_;
  Instances instances_ ABSL_GUARDED_BY(mu_);
  int64_t ignored_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace muster::bus
