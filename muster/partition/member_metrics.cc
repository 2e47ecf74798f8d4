// SPDX-License-Identifier: Apache-2.0
#include "muster/partition/member_metrics.h"

#include <utility>

#include "muster/telemetry/catalogue.h"

namespace muster::partition {

MemberMetrics::MemberMetrics(telemetry::Registry* registry, absl::string_view group,
                             std::function<std::optional<GroupSight>()> look) {
  const telemetry::Counters<2> changes(registry, telemetry::kPartitionChanges);
  claimed_ = changes.With({group, "claimed"});
  taken_over_ = changes.With({group, "taken_over"});
  given_ = changes.With({group, "given"});
  lost_ = changes.With({group, "lost"});
  const telemetry::Counters<2> requests(registry, telemetry::kPartitionRequests);
  requests_ok_ = requests.With({group, "ok"});
  requests_raced_ = requests.With({group, "raced"});
  requests_failed_ = requests.With({group, "failed"});
  const telemetry::Counters<2> cycles(registry, telemetry::kPartitionCycles);
  cycles_ok_ = cycles.With({group, "ok"});
  cycles_failed_ = cycles.With({group, "failed"});
  reading_ = telemetry::ReadAtScrape(
      registry, "partitions",
      {telemetry::kPartitionsOwned.entry(), telemetry::kPartitionsUnowned.entry()},
      [group = std::string(group), look = std::move(look)](telemetry::Samples* samples) {
        const std::optional<GroupSight> sight = look();
        if (!sight.has_value()) return absl::OkStatus();
        samples->Set(telemetry::kPartitionsOwned, {group}, sight->owned);
        samples->Set(telemetry::kPartitionsUnowned, {group}, sight->unowned);
        return absl::OkStatus();
      });
}

void MemberMetrics::NoteEvent(const WorkEvent& event) const {
  switch (event.kind) {
    case WorkEvent::Kind::kAssigned:
      return (event.lost ? taken_over_ : claimed_).Add();
    case WorkEvent::Kind::kDraining:
      return;
    case WorkEvent::Kind::kRevoked:
      return (event.lost ? lost_ : given_).Add();
  }
}

void MemberMetrics::NoteReply(const RecordReply& reply) const {
  if (!reply.status.ok()) return requests_failed_.Add();
  (reply.done ? requests_ok_ : requests_raced_).Add();
}

void MemberMetrics::NoteCycle(bool failed) const { (failed ? cycles_failed_ : cycles_ok_).Add(); }

void ShowMemberMetrics(telemetry::Registry* registry) {
  for (const telemetry::Metric& metric :
       {telemetry::kPartitionsOwned.entry(), telemetry::kPartitionsUnowned.entry(),
        telemetry::kPartitionChanges.entry(), telemetry::kPartitionRequests.entry(),
        telemetry::kPartitionCycles.entry()}) {
    telemetry::FamilyOf(registry, metric);
  }
}

}  // namespace muster::partition
