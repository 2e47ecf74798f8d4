// SPDX-License-Identifier: Apache-2.0

// What becomes of an upload that its client leaves before it is whole: it waits, and then expires.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/quantity.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/job/job_file.h"
#include "muster/rpc/status.h"
#include "services/initiator/batch/scheduler.h"

namespace muster::initiator::batch {
namespace {

constexpr size_t kExpiredAtATime = 20;
// Before an upload that could not be given up is tried again.
constexpr absl::Duration kExpiryPause = absl::Minutes(1);
constexpr size_t kMaxLoggedBytes = 512;

}  // namespace

absl::Status BatchScheduler::CheckUploads() { return stopped_uploads_.CheckRoom(); }

bool BatchScheduler::AwaitsContent(const ledger::Batch& batch) const {
  return tools_.content != nullptr && batch.state == ledger::BatchState::kOpen &&
         batch.content.empty() && !batch.sealed_content.has_value() &&
         tools_.content->Stores(batch);
}

// The batch has the definition that it began with: its job may be gone.
absl::Duration BatchScheduler::UploadExpiryOf(const ledger::Batch& batch) const {
  const absl::StatusOr<job::JobDefinition> job =
      tools_.jobs == nullptr ? job::ParseJob(batch.job_definition, batch.job)
                             : tools_.jobs->Parse(batch.job_definition, batch.job);
  return job.ok() ? job->upload_expires : job::JobDefinition().upload_expires;
}

void BatchScheduler::NoteStopped(const ledger::Batch& batch) {
  if (!AwaitsContent(batch)) return;
  const std::optional<content::ContentStore::Arrived> arrived =
      tools_.content->ArrivedOf(batch.number);
  if (!arrived.has_value()) return;
  base::Clock* const clock = tools_.stores.clock;
  const absl::Duration idle = clock->Now() - std::max(arrived->last, batch.created);
  const absl::Duration expiry = UploadExpiryOf(batch);
  // A client that still runs comes back within the grace, also to an initiator that was away.
  const absl::Duration left =
      std::max(expiry - std::max(idle, absl::ZeroDuration()), options_.sender_grace);
  base::MutexLock lock(&mu_);
  const auto entry = entries_.find(batch.number);
  // The batch has ended meanwhile, or a client sends it again.
  if (entry == entries_.end() || entry->second.senders > 0) return;
  stopped_uploads_.Add(batch.number, arrived->bytes, clock->Monotonic() + left);
}

bool BatchScheduler::ExpireUploads() {
  const std::vector<uint64_t> expired = stopped_uploads_.Expired(kExpiredAtATime);
  for (const uint64_t batch : expired) {
    const absl::Status given_up = ExpireUpload(batch);
    base::LogUnlessOk(base::kWarning, "an upload that has expired stays for now", given_up,
                      {{"batch", batch}});
    if (!stopped_uploads_.HasExpired(batch)) continue;
    if (given_up.ok()) {
      stopped_uploads_.Remove(batch);
    } else {
      stopped_uploads_.Postpone(batch, kExpiryPause);
    }
  }
  return !expired.empty();
}

absl::Status BatchScheduler::ExpireUpload(uint64_t number) {
  const absl::StatusOr<ledger::Batch> batch = tools_.stores.ledger->Get(number);
  if (absl::IsNotFound(batch.status())) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(batch.status());
  if (!AwaitsContent(*batch)) return absl::OkStatus();
  const std::string why =
      absl::StrCat("its upload has expired, for nothing of it arrived for ",
                   base::DurationToString(UploadExpiryOf(*batch)),
                   ": submit it again from its beginning, the same request id begins a new batch");
  // A client may have come back since Expired.
  if (!stopped_uploads_.HasExpired(number)) return absl::OkStatus();
  // Held until the ledger knows: a client that comes back in between finds the upload refused.
  MUSTER_ASSIGN_OR_RETURN(
      const std::shared_ptr<const input::ByteSource> held,
      tools_.content->EndArrival(
          number,
          rpc::WithReason(absl::FailedPreconditionError(absl::StrCat("batch ", number, ": ", why)),
                          {"UPLOAD_EXPIRED", {{"batch", absl::StrCat(number)}}})));
  if (held == nullptr) return absl::OkStatus();  // it is whole by now
  MUSTER_RETURN_IF_ERROR(
      tools_.stores.ledger->ExpireUpload(number, tools_.stores.clock->Now(), why));
  base::Log(base::kWarning, "an upload has expired: its client did not go on with it",
            {{"batch", number},
             {"request_id", base::Printable(batch->request_id, kMaxLoggedBytes)},
             {"job", batch->job}});
  if (batch->items > 0) PublishCancellation(number);
  Advance(number);
  base::LogUnlessOk(base::kWarning, "what has arrived of an expired upload stays for now",
                    remover_.DeleteContent(number), {{"batch", number}});
  return absl::OkStatus();
}

}  // namespace muster::initiator::batch
