// SPDX-License-Identifier: Apache-2.0

// BatchAdmin: reads batches, from a data directory or from a server.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/batch/batch_view.h"
#include "cli/output/environment.h"
#include "muster/item/batch_filter.h"
#include "muster/report/receipt.h"
#include "muster/report/report_store.h"
#include "muster/v1/batch_service.pb.h"

namespace muster::cli {

// The most batches that a command lists at a time.
inline constexpr size_t kMaxListedBatches = 1000;

// Statuses are the stores', or the services'. Not thread-safe.
class BatchAdmin {
 public:
  virtual ~BatchAdmin() = default;

  // Up to `max` of the batches with numbers below `below` that the filter lets through; at most
  // kMaxListedBatches.
  virtual absl::StatusOr<BatchViews> List(const item::BatchFilter& filter, uint64_t below,
                                          size_t max) = 0;
  virtual absl::StatusOr<BatchView> Get(uint64_t batch) = 0;
  // The first rejections, in the order of item and line; `max` at most.
  virtual absl::StatusOr<std::vector<report::RejectionRow>> Rejections(uint64_t batch, int max) = 0;
  // Those behind a position, likewise.
  virtual absl::StatusOr<std::vector<report::RejectionRow>> RejectionsAfter(
      uint64_t batch, const report::RejectionPosition& after, int max) = 0;
  // Items that were given up, from index `from` on; of each its index, transactions, attempts and
  // cause.
  virtual absl::StatusOr<std::vector<report::ItemRow>> DeadLetters(uint64_t batch, uint64_t from,
                                                                   int max) = 0;
  // As BatchService.ReadRecords.
  virtual absl::StatusOr<v1::ReadRecordsResponse> ReadRecords(
      const v1::ReadRecordsRequest& request) = 0;
  virtual absl::StatusOr<report::StoredReceipt> Receipt(uint64_t batch) = 0;
  // Checks the receipt, as CheckReceipt (receipt_check.h) does. FailedPrecondition: a server's
  // receipt cannot be checked from here.
  virtual absl::StatusOr<std::vector<std::string>> Check(uint64_t batch) = 0;
};

// The batches of the data directory, or of the server, that `options` name.
absl::StatusOr<std::unique_ptr<BatchAdmin>> OpenBatchAdmin(const CommonOptions& options,
                                                           const Environment& environment);

}  // namespace muster::cli
