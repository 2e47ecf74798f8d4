// SPDX-License-Identifier: Apache-2.0

// Quotes: forecasts a batch before it is submitted. The initiator knows how it would split the
// batch; the leading scaling agent knows how processors would work on its items.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/client/scaling_client.h"
#include "muster/job/job_registry.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/v1/batch_service.pb.h"

namespace muster::initiator::api {

// Thread-safe.
class Quotes {
 public:
  // Not owned. Where no agent answers, the ledger's last batches say how fast the job is.
  struct Sources {
    job::JobRegistry* jobs = nullptr;
    client::ScalingLeaderClient* agent = nullptr;
    ledger::BatchLedger* ledger = nullptr;
    base::Clock* clock = nullptr;
  };

  // `account` is that of the jobs' queues.
  Quotes(const Sources& sources, std::string account)
      : sources_(sources), account_(std::move(account)) {}

  // Errors are those of BatchService.Quote and those of the agent. The item count follows from the
  // job's limit of transactions per item; records so large that the byte limit cuts first make more
  // items than the quote says.
  absl::StatusOr<v1::QuoteResponse> Quote(const v1::QuoteRequest& request, absl::Duration timeout);

 private:
  const Sources sources_;
  const std::string account_;
};

}  // namespace muster::initiator::api
