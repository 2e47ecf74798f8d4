// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch/batch_number_recovery.h"

#include <algorithm>
#include <limits>

#include "absl/time/civil_time.h"
#include "muster/base/log.h"
#include "muster/base/status.h"

namespace muster::initiator::batch {
namespace {

int64_t SecondsSince2020(absl::Time now) {
  const absl::Time begin = absl::FromCivil(absl::CivilSecond(2020), absl::UTCTimeZone());
  return absl::ToInt64Seconds(now - begin);
}

// A report that has not been heard of yet.
absl::Status NotKnownYet(const absl::Status& report) {
  return base::Annotate(absl::UnavailableError(report.message()),
                        "it is not known yet whether there were batches before");
}

}  // namespace

absl::StatusOr<int64_t> FirstBatchNumber(ledger::BatchLedger* ledger,
                                         report::ReportClient* report_client, base::Clock* clock,
                                         bool lost, absl::Duration up) {
  MUSTER_ASSIGN_OR_RETURN(uint64_t highest, ledger->HighestNumber());
  // While the report does not answer, it may know batches of other initiators.
  const absl::StatusOr<uint64_t> counted = report_client->HighestBatch();
  const bool may_be_new = !lost && highest == 0;
  if (may_be_new && counted.ok() && *counted == 0) return 1;
  if (may_be_new && !counted.ok() && up < kHeartbeatWarmup) return NotKnownYet(counted.status());
  highest = std::max(highest, counted.value_or(0));
  const int64_t first =
      std::max(static_cast<int64_t>(highest) + kNumbersInHand, SecondsSince2020(clock->Now()));
  base::Log(base::kWarning, "the next batch number is lost; new numbers begin far behind",
            {{"next", first}, {"highest_known", highest}, {"report", counted.status().ToString()}});
  return first;
}

absl::StatusOr<std::optional<int64_t>> HighestBatchNumber(ledger::BatchLedger* ledger,
                                                          report::ReportClient* report_client,
                                                          absl::Duration up) {
  MUSTER_ASSIGN_OR_RETURN(const uint64_t recorded, ledger->HighestNumber());
  const absl::StatusOr<uint64_t> counted = report_client->HighestBatch();
  if (!counted.ok()) {
    if (up < kHeartbeatWarmup) return NotKnownYet(counted.status());
    base::Log(base::kWarning, "whether the counter of batch numbers is up to date is not known",
              {{"report", counted.status().ToString()}});
    return std::nullopt;
  }
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::min(std::max(recorded, *counted), kMost));
}

}  // namespace muster::initiator::batch
