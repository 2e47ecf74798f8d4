// SPDX-License-Identifier: Apache-2.0

// The balancer: what a member does next so that partitions spread evenly. A pure function of what
// the member has seen: it reads no clock and no store, so a simulator decides as a service does.
//
// With P partitions, n live members and q = ⌊P/n⌋, every member ends with q or q + 1 partitions.
// Every step goes towards that: a member takes free partitions first, asks only an owner that has
// at least two more than it has, and an owner agrees only on the same condition, by its own view.
//
// A partition that an administrator pinned to a live member goes to that member: its owner grants
// it unasked, and no other takes it or asks for it. It counts as that member's, and the others
// spread evenly around it: a member with more pinned partitions than its share has these and no
// other. A pin to a member that is not live counts for nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/partition/records.h"

namespace muster::partition {

// A partition as the deciding member sees it.
struct PartitionView {
  Ownership record = {};
  bool known = false;      // read at least once
  bool claimable = false;  // free, expired, or handed over to this member: it may claim it now
  bool inherited = false;  // its owner is a predecessor of this member
  bool running = false;    // this member works on it and has not agreed to hand it over
};

struct GroupView {
  std::string self = "";
  std::vector<std::string> live = {};          // sorted; includes self
  std::vector<PartitionView> partitions = {};  // by number
};

struct Action {
  enum class Kind {
    kNone,
    kGrant,   // agree to hand the partition over to the member it is pinned to, or that wants it
    kRefuse,  // keep it, and clear the request
    kClaim,   // take the partition, with the next epoch
    kAsk,     // ask the owner for the partition
  };

  Kind kind = Kind::kNone;
  int partition = 0;

  bool operator==(const Action&) const = default;
};

// The first thing to do: answer a request, else claim what is due to self (handed over to it, or
// recorded as its own or its predecessor's although it does not run it), else claim what is free,
// else ask. `draw` chooses among equals, so that members seldom pick the same partition.
Action DecideNext(const GroupView& view, uint64_t draw);

// The same without new partitions: what a member does that has just joined, or has taken enough.
Action DecideDuty(const GroupView& view, uint64_t draw);

// What to do in one write: the action of DecideNext, or of DecideDuty, and what follows of the same
// kind on partitions of the same page, each as if the ones before were carried out. At most `most`
// actions; none: nothing is left to do. Takes time in the order of partitions + actions × (members
// + page_rows).
std::vector<Action> DecideBatch(const GroupView& view, uint64_t draw, int page_rows, int most);
std::vector<Action> DecideDutyBatch(const GroupView& view, uint64_t draw, int page_rows);

}  // namespace muster::partition
