// SPDX-License-Identifier: Apache-2.0
#include "muster/telemetry/catalogue.h"

namespace muster::telemetry {

absl::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kCounter:
      return "counter";
    case Kind::kHistogram:
      return "histogram";
    case Kind::kGauge:
      break;
  }
  return "gauge";
}

// NOLINTNEXTLINE(readability-function-size): a list
std::vector<Metric> Catalogue() {
  return {
      kTransactions.entry(),
      kItems.entry(),
      kItemLatency.entry(),
      kDuplicates.entry(),
      kRejected.entry(),
      kHandlerCall.entry(),
      kHandlerRestarts.entry(),
      kQueueBacklog.entry(),
      kQueueInFlight.entry(),
      kQueuePoison.entry(),
      kQueueOldestAge.entry(),
      kQueueDrainTime.entry(),
      kHeldBackItems.entry(),
      kHeldBackBatches.entry(),
      kHeldBackTime.entry(),
      kRedeliveries.entry(),
      kDeadLetters.entry(),
      kLeasesLost.entry(),
      kSuspects.entry(),
      kDeadHolders.entry(),
      kDeadHolderMessages.entry(),
      kRefilledItems.entry(),
      kDamage.entry(),
      kStorageTransactions.entry(),
      kWakeups.entry(),
      kMessagingOperation.entry(),
      kMessagingSent.entry(),
      kMessagingConsumed.entry(),
      kMessagingProcess.entry(),
      kDequeueTasks.entry(),
      kWorkerTime.entry(),
      kWorkers.entry(),
      kWorkerColdStart.entry(),
      kScaleDesired.entry(),
      kScaleActuated.entry(),
      kScaleForecast.entry(),
      kScaleDecisions.entry(),
      kSlaTarget.entry(),
      kSlaViolations.entry(),
      kBatchProgress.entry(),
      kBatchEta.entry(),
      kBatchDeadlineRemaining.entry(),
      kStoppedUploads.entry(),
      kStoppedUploadBytes.entry(),
      kPartitionsOwned.entry(),
      kPartitionsUnowned.entry(),
      kPartitionChanges.entry(),
      kPartitionCycles.entry(),
      kPartitionRequests.entry(),
      kCheckpointLag.entry(),
      kParkedProcessors.entry(),
      kSchedules.entry(),
      kSchedulesWithProblem.entry(),
      kScheduleOccurrences.entry(),
      kReleaseArmed.entry(),
      kReleasedEpoch.entry(),
      kRpcCallDuration.entry(),
      kNatsReconnects.entry(),
      kNatsErrors.entry(),
      kNatsInFlight.entry(),
      kNatsStreamMessages.entry(),
      kNatsStreamBytes.entry(),
      kNatsStreamFirstAge.entry(),
      kNatsStreamConsumers.entry(),
      kNatsStreamLimitUsed.entry(),
      kNatsStorage.entry(),
      kSqliteCommit.entry(),
      kSqliteWal.entry(),
      kRocksDbSync.entry(),
      kRocksDbMemtables.entry(),
      kRocksDbWal.entry(),
      kRocksDbStall.entry(),
      kGatewayRequests.entry(),
      kGatewayRequestDuration.entry(),
      kGatewayThrottled.entry(),
      kGatewayAuthFailures.entry(),
      kGatewayConnections.entry(),
      kProcessCpu.entry(),
      kProcessResident.entry(),
      kProcessOpenFds.entry(),
      kProcessMaxFds.entry(),
      kProcessThreads.entry(),
      kProcessStart.entry(),
      kCertificateExpiry.entry(),
      kCertificateLifetime.entry(),
      kBuildInfo.entry(),
      kOverLimit.entry(),
      kRefusedValues.entry(),
      kReadFailures.entry(),
      kTelemetryExports.entry(),
      kTelemetryDropped.entry(),
  };
}

}  // namespace muster::telemetry
