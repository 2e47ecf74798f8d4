// SPDX-License-Identifier: Apache-2.0

// Roster: which role instances there are, by the heartbeats that were received.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/v1/heartbeat.pb.h"

namespace muster::bus {

// Short enough that a dead instance is noticed within seconds, long enough that a hundred instances
// are no load.
inline constexpr absl::Duration kHeartbeatInterval = absl::Seconds(2);
// The least time between a heartbeat and one that greets newcomers: when a fleet starts, one
// heartbeat answers all of them at once.
inline constexpr absl::Duration kGreetInterval = absl::Milliseconds(100);
// An instance counts as leaving after this many missing heartbeats in a row.
inline constexpr int kMissingHeartbeats = 3;
// An observer that looks every half minute still sees that an instance has left; later the entry is
// only noise.
inline constexpr absl::Duration kForgetAfter = absl::Minutes(1);

// Limit of names, addresses and versions of instances; longer ones are not genuine.
inline constexpr size_t kMaxInfoBytes = 256;
// A mesh has hundreds of instances; thousands mean that some sender invents them. With the largest
// heartbeats (kMaxHeartbeatSpace) this many take a gibibyte; usual ones have a kilobyte.
inline constexpr size_t kMaxInstances = 1000;
// Limit of the heartbeats in one answer, so that no answer is larger than gRPC accepts by default.
inline constexpr size_t kMaxLoadBytes = size_t{3} << 20;

// The states of an instance:
//
//   heard ──► there ──kMissingHeartbeats missing──► leaving ──kForgetAfter──► forgotten
//               │                                       ▲
//               └───────── it says that it leaves ──────┘
//
// Senders and rosters use the same interval, or senders the shorter one.

struct RosterOptions {
  absl::Duration interval = kHeartbeatInterval;
  absl::Duration forget_after = kForgetAfter;  // of silence, or since it said that it leaves
  size_t max_instances = kMaxInstances;
};

// A role instance as in its last heartbeat.
struct RosterEntry {
  v1::Heartbeat heartbeat;
  absl::Time heard;  // by this process's clock
  bool leaving = false;
};

// Which instances have not been heard for some time, whether they said that they leave or not.
struct Silence {
  struct Instance {
    std::string name;
    absl::Duration lasts;
  };
  std::vector<Instance> instances;
  // Until the next instance is silent for as long, if it is not heard; infinite: there is no other.
  absl::Duration next = absl::InfiniteDuration();
};

// Thread-safe. Ignores heartbeats that no instance sends: without a role or a name, or too large.
class Roster {
 public:
  // `clock` is not owned.
  explicit Roster(base::Clock* clock, RosterOptions options = RosterOptions());

  // A heartbeat came. Ignores it if a later one of the same instance came before. A full roster
  // drops leaving instances, those first that were silent for longest; if none is leaving, it
  // ignores a new instance.
  void OnHeartbeat(const v1::Heartbeat& heartbeat) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the instances in order of role and instance; nullopt: of all roles.
  std::vector<RosterEntry> List(std::optional<v1::Role> role = std::nullopt)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the instances that were not heard for `limit`.
  Silence SilentFor(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mu_);

  // The number of ignored heartbeats: overtaken, malformed, or without room.
  int64_t ignored() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Key = std::pair<int, std::string>;  // role and instance

  struct Instance {
    v1::Heartbeat heartbeat;
    absl::Time heard;
    absl::Duration heard_monotonic;
  };
  using Instances = std::map<Key, Instance>;

  bool Take(const v1::Heartbeat& heartbeat) ABSL_LOCKS_EXCLUDED(mu_);
  bool IsLeaving(const Instance& instance, absl::Duration now) const;
  void ForgetLocked(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MakeRoomLocked(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Clock* const clock_;  // not owned
  const RosterOptions options_;

  mutable base::Mutex mu_;
  Instances instances_ ABSL_GUARDED_BY(mu_);
  int64_t ignored_ ABSL_GUARDED_BY(mu_) = 0;
};

// The items that the initiators among `entries` hold back from those queues ("account/name" of the
// first partition) for which `matches` answers true. An initiator that is leaving, or silent, puts
// nothing, so it counts as holding nothing. Impossible figures count as none.
int64_t HeldBackItems(const std::vector<RosterEntry>& entries,
                      const std::function<bool(absl::string_view queue)>& matches);

}  // namespace muster::bus
