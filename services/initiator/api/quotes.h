// Quotes: what would become of a batch. The initiator knows how it would be split, the scaling
// agent that leads how its items would be worked on.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/client/leading_agent.h"
#include "muster/job/job_registry.h"
#include "muster/v1/batch_service.pb.h"

namespace muster::initiator::api {

// Thread-safe.
class Quotes {
 public:
  // What is pointed to is not owned. `account` is that of the jobs' queues.
  Quotes(job::JobRegistry* jobs, client::ScalingLeaderClient* agent, std::string account)
      : jobs_(jobs), agent_(agent), account_(std::move(account)) {}

  // Errors are those of BatchService.Quote, and what else the agent says. The items are as many as
  // the job's number of transactions makes; records so large that its bytes cut first make more.
  absl::StatusOr<v1::QuoteResponse> Quote(const v1::QuoteRequest& request, absl::Duration timeout);

 private:
  job::JobRegistry* const jobs_;              // not owned
  client::ScalingLeaderClient* const agent_;  // not owned
  const std::string account_;
};

}  // namespace muster::initiator::api
