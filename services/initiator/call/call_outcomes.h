// SPDX-License-Identifier: Apache-2.0

// CallOutcomes: reads from the report what became of the records of a complete batch.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/instance_client.h"
#include "muster/v1/call_service.pb.h"
#include "muster/v1/ledger_service.pb.h"
#include "muster/v1/report_service.grpc.pb.h"
#include "services/initiator/batch/record_reader.h"

namespace muster::initiator::call {

// Output records of one call, in one answer.
inline constexpr size_t kMaxCallOutputBytes = size_t{3} << 20;

// The outcome of the record at `line`: an answer without its batch and line, or OUTPUT_TOO_LARGE.
using VisitOutcome = std::function<void(int64_t line, absl::StatusOr<v1::CallResponse> outcome)>;

// Visits the records of a complete batch that were rejected or gave output records, as `outcome`
// tells. Answers the outcome of all others, which is `bare` (CallPlace).
v1::CallAccepted VisitOutcomes(uint64_t batch, const v1::BatchOutcome& outcome,
                               const v1::CallAccepted& bare, const VisitOutcome& visit);

// Thread-safe. Holds a page of records and one answer at a time for each Read.
class CallOutcomes {
 public:
  // `ledger` is not owned. `open_content` is for the lines of items that were given up.
  CallOutcomes(rpc::InstanceAddresses controllers, rpc::ChannelOptions channel_options,
               absl::Duration timeout, ledger::BatchLedger* ledger,
               batch::RecordReader::OpenContent open_content);

  // Visits the records of a complete batch that were rejected, dead-lettered, or gave output
  // records. Answers the outcome of all others. An error, such as Unavailable or, after a redrive,
  // FailedPrecondition, leaves some unvisited: read again.
  absl::StatusOr<v1::CallAccepted> Read(uint64_t batch, const VisitOutcome& visit);

 private:
  using Stub = v1::ReportService::Stub;

  template <typename Request, typename Response>
  absl::Status Ask(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                   const Request& request, Response* response);
  absl::Status ReadRejections(uint64_t batch, const VisitOutcome& visit);
  absl::Status ReadDeadLetters(uint64_t batch, const VisitOutcome& visit);
  absl::StatusOr<v1::CallAccepted> ReadOutputs(uint64_t batch, const VisitOutcome& visit);

  rpc::InstanceClient<v1::ReportService> controllers_;
  const absl::Duration timeout_;
  ledger::BatchLedger* const ledger_;  // not owned
  const batch::RecordReader::OpenContent open_content_;
};

}  // namespace muster::initiator::call
