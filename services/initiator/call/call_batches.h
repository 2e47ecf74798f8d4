// SPDX-License-Identifier: Apache-2.0

// CallBatches: makes durable batches of the records of calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/ledger/retention.h"
#include "muster/v1/call_service.pb.h"
#include "services/initiator/call/record_form.h"
#include "services/initiator/submit/submissions.h"

namespace muster::initiator::call {

// The values of item::kCallLabel: of several calls, or of one with a request id.
inline constexpr char kGathered[] = "gathered";
inline constexpr char kOwn[] = "own";

// After the end of a batch of several calls, nothing is kept of it longer than this: its callers
// have their answers by then. That of a request id is kept as long as its retries may come.
inline constexpr absl::Duration kGatheredRetention = absl::Minutes(10);
inline constexpr absl::Duration kOwnRetention = absl::Hours(1);

// Where the record of a call lies.
struct CallPlace {
  uint64_t batch = 0;
  int64_t line = 0;
  // The outcome of a record without output records: the columns of its job. Shared by the calls of
  // a batch; never null.
  std::shared_ptr<const v1::CallAccepted> bare = std::make_shared<const v1::CallAccepted>();
};

// Thread-safe.
class CallBatches {
 public:
  // Nothing is owned.
  CallBatches(submit::Submissions* submissions, job::JobRegistry* jobs)
      : submissions_(submissions), jobs_(jobs) {}

  // Makes the records of `calls`, which are of one job, durable as few batches, and answers the
  // place of each, in their order. A call with a request id is alone. Each batch is of the revision
  // of the job by which its records were checked and written. Errors are those of CallService.Call.
  // Blocks for as long as a submit does.
  std::vector<absl::StatusOr<CallPlace>> Make(absl::Span<const v1::CallRequest* const> calls);

 private:
  using Places = std::vector<absl::StatusOr<CallPlace>>;

  // Sets the places of those calls that `which` names. Answers those whose job has changed
  // meanwhile. `recall`: the job may be as this process knows it.
  std::vector<size_t> MakeOnce(absl::Span<const v1::CallRequest* const> calls,
                               const std::vector<size_t>& which, bool recall, Places* places);
  absl::StatusOr<uint64_t> Begin(const v1::CallRequest& call, const std::string& revision,
                                 const std::string& content);

  submit::Submissions* const submissions_;  // not owned
  job::JobRegistry* const jobs_;            // not owned
};

}  // namespace muster::initiator::call
