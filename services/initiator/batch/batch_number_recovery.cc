#include "services/initiator/batch/batch_number_recovery.h"

#include <algorithm>

#include "absl/time/civil_time.h"
#include "muster/base/log.h"
#include "muster/base/status.h"

namespace muster::initiator::batch {
namespace {

int64_t SecondsSince2020(absl::Time now) {
  const absl::Time begin = absl::FromCivil(absl::CivilSecond(2020), absl::UTCTimeZone());
  return absl::ToInt64Seconds(now - begin);
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
  if (may_be_new && !counted.ok() && up < kHeartbeatWarmup) {
    return base::Annotate(absl::UnavailableError(counted.status().message()),
                          "it is not known yet whether there were batches before");
  }
  highest = std::max(highest, counted.value_or(0));
  const int64_t first =
      std::max(static_cast<int64_t>(highest) + kNumbersInHand, SecondsSince2020(clock->Now()));
  base::Log(base::kWarning, "the next batch number is lost; new numbers begin far behind",
            {{"next", first}, {"highest_known", highest}, {"report", counted.status().ToString()}});
  return first;
}

}  // namespace muster::initiator::batch
