// SPDX-License-Identifier: Apache-2.0

// Observations: what a member has read of its group, and since when each record has been as it is.
// Expiry is judged by the reader's own monotonic clock only: a record that has not changed while
// the reader looked on for a lease has lost its writer.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/partition/balancer.h"
#include "muster/partition/options.h"
#include "muster/partition/records.h"

namespace muster::partition {

// Not thread-safe. Copyable, so that a search over states can branch. Bounded: a record for each
// partition and each listed member. All times are of the member's monotonic clock.
class Observations {
 public:
  explicit Observations(const MemberOptions& options);

  // What was read at `now`.
  void SeeOwnership(int partition, const Ownership& record, absl::Duration now);
  void SeeMembers(const std::vector<std::string>& members, absl::Duration now);
  void SeeBeat(const std::string& member, int64_t beat, absl::Duration now);

  const Ownership& record(int partition) const;
  // The highest epoch that the partition was seen with, even if the store has lost its record.
  int64_t highest_epoch(int partition) const;

  // Members that own no partition: only their presence shows that they live.
  std::vector<std::string> MembersToLookAt() const;
  // A member that has been dead for so long that its entry may go; empty: none.
  std::string LongDead(absl::Duration now) const;

  // Whether an owner is recorded whose lease is not over. False of a record that was never read.
  bool HasOwner(int partition, absl::Duration now) const;
  bool IsLive(const std::string& member, absl::Duration now) const;
  // Whether the partition is recorded as that of a predecessor of this member.
  bool IsInherited(int partition) const;
  // Whether the record permits this member to claim the partition. `stopped`: this member does no
  // work on it, so what is recorded as its own is claimable at once.
  bool IsClaimable(int partition, bool stopped, absl::Duration now) const;
  // Without `running` and `claimable`, which depend on the member's own state.
  GroupView View(absl::Duration now) const;

  std::strong_ordering operator<=>(const Observations&) const = default;
  bool operator==(const Observations&) const = default;

 private:
  struct Seen {
    Ownership record = {};
    bool known = false;
    absl::Duration since = absl::ZeroDuration();  // when (epoch, renewal) was first read as it is
    int64_t highest_epoch = 0;

    std::strong_ordering operator<=>(const Seen&) const = default;
    bool operator==(const Seen&) const = default;
  };
  struct Member {
    absl::Duration last_sign =
        absl::ZeroDuration();  // of life: the entry, a changed beat, or a changed ownership
    bool beat_known = false;
    int64_t beat = 0;
    absl::Duration beat_read = absl::ZeroDuration();

    std::strong_ordering operator<=>(const Member&) const = default;
    bool operator==(const Member&) const = default;
  };

  bool IsPredecessor(const std::string& member) const;
  const Seen& At(int partition) const { return partitions_[static_cast<size_t>(partition)]; }

  std::string self_;
  std::vector<std::string> predecessors_;
  absl::Duration lease_;
  absl::Duration grace_;
  std::vector<Seen> partitions_;
  std::map<std::string, Member> members_;
};

}  // namespace muster::partition
