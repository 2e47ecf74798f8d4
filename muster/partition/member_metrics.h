// SPDX-License-Identifier: Apache-2.0

// MemberMetrics: what a PartitionMember shows of its group to Prometheus (muster/telemetry).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "muster/partition/member_protocol.h"
#include "muster/partition/records.h"
#include "muster/telemetry/registry.h"

namespace muster::partition {

// What a member sees of its group at one moment.
struct GroupSight {
  int owned = 0;    // partitions that this member may work on
  int unowned = 0;  // partitions of which it sees no owner that lives, itself included
};

// Thread-safe.
class MemberMetrics {
 public:
  // `registry` is not owned and outlives this; null: nothing is recorded. `look` is called at each
  // scrape, until the destructor returns; nullopt: the member has left.
  MemberMetrics(telemetry::Registry* registry, absl::string_view group,
                std::function<std::optional<GroupSight>()> look);

  void NoteEvent(const WorkEvent& event) const;
  void NoteReply(const RecordReply& reply) const;
  void NoteCycle(bool failed) const;

 private:
  telemetry::Counter claimed_, taken_over_, given_, lost_;
  telemetry::Counter requests_ok_, requests_raced_, requests_failed_;
  telemetry::Counter cycles_ok_, cycles_failed_;
  std::unique_ptr<telemetry::Reading> reading_;
};

// Has a scrape show the types of these metrics before the first member is there.
void ShowMemberMetrics(telemetry::Registry* registry);

}  // namespace muster::partition
