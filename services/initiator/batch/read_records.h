// SPDX-License-Identifier: Apache-2.0

// BatchService.ReadRecords: records of a batch as they were submitted.
#pragma once

#include "absl/status/status.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/v1/batch_service.pb.h"
#include "services/initiator/batch/record_reader.h"

namespace muster::initiator::batch {

// The most items of one request, and the most lines.
inline constexpr int kMaxRecordsToRead = 1000;

// Fills `response` as the request says (proto/muster/v1/batch_service.proto), with what one answer
// holds. Errors are those of ReadRecords. `ledger` is not owned.
absl::Status ReadRecords(const v1::ReadRecordsRequest& request, ledger::BatchLedger* ledger,
                         const RecordReader::OpenContent& open, v1::ReadRecordsResponse* response);

}  // namespace muster::initiator::batch
