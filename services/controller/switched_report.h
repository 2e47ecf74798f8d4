// SPDX-License-Identifier: Apache-2.0

// SwitchedReport: the report of a controller whose ownership comes and goes. It stays where it is
// while the store behind it is opened anew for each ownership: services and counting point to it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "muster/base/mutex.h"
#include "muster/report/report_store.h"

namespace muster::controller {

// What a controller answers that does not own the counting of its mesh: Unavailable.
absl::Status DoesNotCount();

// Thread-safe. Changes are Unavailable while the report is not open for writing, and so are reads
// before it was opened first.
class SwitchedReport final : public report::ReportStore {
 public:
  // From now on `store` is the report.
  void Open(std::unique_ptr<report::ReportStore> store) ABSL_LOCKS_EXCLUDED(mu_);
  // Refuses changes from now on; reads go on. Calls that are under way may still end.
  void RefuseChanges() ABSL_LOCKS_EXCLUDED(mu_);
  // Closes the store, when the last call that is under way has ended.
  void Close() ABSL_LOCKS_EXCLUDED(mu_);

  uint64_t epoch() const override;
  absl::StatusOr<report::Progress> RegisterBatch(const report::BatchShape& shape) override;
  absl::StatusOr<report::CommitSummary> Commit(const report::CommitRequest& request) override;
  absl::Status ReopenDeadLettered(uint64_t batch, absl::Span<const uint64_t> items) override;
  absl::StatusOr<report::Receipt> Complete(const report::BatchFacts& facts) override;
  absl::Status CancelBatch(uint64_t batch, const report::Cancellation& cancellation) override;
  absl::StatusOr<report::RetryClaims> ClaimRejections(uint64_t batch,
                                                      const report::RetrySelection& which,
                                                      int64_t max) override;
  absl::StatusOr<int64_t> RecordRetry(uint64_t batch, int64_t retry,
                                      absl::Span<const report::RetriedTransaction> transactions,
                                      uint64_t retried_in) override;
  absl::StatusOr<bool> ForgetBatch(uint64_t batch, int64_t max_rows) override;
  absl::Status ForgetJob(const std::string& job) override;
  absl::StatusOr<std::unique_ptr<report::ReportReader>> Read() override;

 private:
  // Shared with the calls that are under way.
  using Store = std::shared_ptr<report::ReportStore>;

  absl::StatusOr<Store> Writable() const ABSL_LOCKS_EXCLUDED(mu_);

  mutable base::Mutex mu_;
  Store store_ ABSL_GUARDED_BY(mu_);
  bool writable_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace muster::controller
