// SPDX-License-Identifier: Apache-2.0
#include "services/controller/switched_report.h"

#include <utility>

#include "muster/base/status.h"

namespace muster::controller {

void SwitchedReport::Open(std::unique_ptr<report::ReportStore> store) {
  base::MutexLock lock(&mu_);
  store_ = std::move(store);
  writable_ = true;
}

void SwitchedReport::RefuseChanges() {
  base::MutexLock lock(&mu_);
  writable_ = false;
}

// Who has lost its ownership need not have lost it to another controller.
absl::Status DoesNotCount() {
  return absl::UnavailableError(
      "this controller does not count now: another one does, or NATS does not answer it, or stores "
      "nothing: a nats-server whose disk was full does so until it is restarted");
}

void SwitchedReport::Close() {
  Store closed;  // destroyed without the lock
  base::MutexLock lock(&mu_);
  writable_ = false;
  closed.swap(store_);
}

absl::StatusOr<SwitchedReport::Store> SwitchedReport::Writable() const {
  base::MutexLock lock(&mu_);
  if (writable_) return store_;
  return DoesNotCount();
}

uint64_t SwitchedReport::epoch() const {
  base::MutexLock lock(&mu_);
  return store_ == nullptr ? 0 : store_->epoch();
}

absl::StatusOr<report::Progress> SwitchedReport::RegisterBatch(const report::BatchShape& shape) {
  MUSTER_ASSIGN_OR_RETURN(const Store store, Writable());
  return store->RegisterBatch(shape);
}

absl::StatusOr<report::CommitSummary> SwitchedReport::Commit(const report::CommitRequest& request) {
  MUSTER_ASSIGN_OR_RETURN(const Store store, Writable());
  return store->Commit(request);
}

absl::Status SwitchedReport::ReopenDeadLettered(uint64_t batch, absl::Span<const uint64_t> items) {
  MUSTER_ASSIGN_OR_RETURN(const Store store, Writable());
  return store->ReopenDeadLettered(batch, items);
}

absl::StatusOr<report::Receipt> SwitchedReport::Complete(const report::BatchFacts& facts) {
  MUSTER_ASSIGN_OR_RETURN(const Store store, Writable());
  return store->Complete(facts);
}

absl::Status SwitchedReport::CancelBatch(uint64_t batch, const report::Cancellation& cancellation) {
  MUSTER_ASSIGN_OR_RETURN(const Store store, Writable());
  return store->CancelBatch(batch, cancellation);
}

absl::StatusOr<report::RetryClaims> SwitchedReport::ClaimRejections(
    uint64_t batch, const report::RetrySelection& which, int64_t max) {
  MUSTER_ASSIGN_OR_RETURN(const Store store, Writable());
  return store->ClaimRejections(batch, which, max);
}

absl::StatusOr<int64_t> SwitchedReport::RecordRetry(
    uint64_t batch, int64_t retry, absl::Span<const report::RetriedTransaction> transactions,
    uint64_t retried_in) {
  MUSTER_ASSIGN_OR_RETURN(const Store store, Writable());
  return store->RecordRetry(batch, retry, transactions, retried_in);
}

absl::StatusOr<bool> SwitchedReport::ForgetBatch(uint64_t batch, int64_t max_rows) {
  MUSTER_ASSIGN_OR_RETURN(const Store store, Writable());
  return store->ForgetBatch(batch, max_rows);
}

absl::Status SwitchedReport::ForgetJob(const std::string& job) {
  MUSTER_ASSIGN_OR_RETURN(const Store store, Writable());
  return store->ForgetJob(job);
}

absl::StatusOr<std::unique_ptr<report::ReportReader>> SwitchedReport::Read() {
  Store store;
  {
    base::MutexLock lock(&mu_);
    store = store_;
  }
  if (store != nullptr) return store->Read();
  return DoesNotCount();
}

}  // namespace muster::controller
