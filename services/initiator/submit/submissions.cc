#include "services/initiator/submit/submissions.h"

#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/rpc/status.h"

namespace muster::initiator::submit {
namespace {

constexpr size_t kMaxRequestIdBytes = 512;
constexpr size_t kMaxVersionBytes = 256;
constexpr size_t kMaxTenantBytes = 256;
// Between two looks at all batches of the ledger: submitters may ask for jobs that never were.
constexpr absl::Duration kListInterval = absl::Seconds(5);
constexpr size_t kListedAtATime = 1000;

absl::Status Validate(const v1::SubmitHeader& header) {
  if (header.job().empty()) return rpc::BadField("header.job", "must not be empty");
  if (header.request_id().empty() || header.request_id().size() > kMaxRequestIdBytes) {
    return rpc::BadField("header.request_id",
                         absl::StrCat("must have 1 to ", kMaxRequestIdBytes, " bytes"));
  }
  if (header.has_handler_version() &&
      (header.handler_version().empty() || header.handler_version().size() > kMaxVersionBytes)) {
    return rpc::BadField("header.handler_version",
                         absl::StrCat("must have 1 to ", kMaxVersionBytes, " bytes"));
  }
  if (header.tenant().size() > kMaxTenantBytes) {
    return rpc::BadField("header.tenant",
                         absl::StrCat("must have at most ", kMaxTenantBytes, " bytes"));
  }
  return absl::OkStatus();
}

// nullopt: the submitter sent no trace. Errors are BadField's.
absl::StatusOr<std::optional<base::TraceContext>> TraceOf(const v1::SubmitHeader& header) {
  if (header.traceparent().empty()) {
    if (header.tracestate().empty()) return std::nullopt;
    return rpc::BadField("header.tracestate", "must not be there without a traceparent");
  }
  absl::StatusOr<base::TraceContext> trace =
      base::TraceContext::FromTraceparent(header.traceparent());
  if (!trace.ok()) return rpc::BadField("header.traceparent", trace.status().message());
  if (const absl::Status state = base::CheckTraceState(header.tracestate()); !state.ok()) {
    return rpc::BadField("header.tracestate", state.message());
  }
  trace->state = header.tracestate();
  return *std::move(trace);
}

}  // namespace

absl::Status RequestIdReused(uint64_t batch, absl::string_view with_what) {
  return rpc::WithReason(
      absl::FailedPreconditionError(absl::StrCat("this request id belongs to batch ", batch, " ",
                                                 with_what, ": choose another one")),
      {"REQUEST_ID_REUSED", {{"batch", absl::StrCat(batch)}}});
}

absl::StatusOr<ledger::Batch> Submissions::Begin(const v1::SubmitHeader& header,
                                                 const std::optional<batch::InlineContent>& whole) {
  MUSTER_RETURN_IF_ERROR(Validate(header));
  MUSTER_ASSIGN_OR_RETURN(const std::optional<base::TraceContext> trace, TraceOf(header));
  for (bool admitted = false;; admitted = true) {
    job::JobDefinition job;
    {
      const base::KeyedMutex::Lock lock(&requests_, header.request_id());
      MUSTER_ASSIGN_OR_RETURN(const std::optional<ledger::Batch> known, Find(header, &job));
      if (known.has_value()) {
        // The call that recorded the batch may not have synced it yet.
        MUSTER_RETURN_IF_ERROR(deps_.ledger->Sync());
        return *known;
      }
      if (admitted || !job.queue.max_drain.has_value()) {
        return Record(header, job, trace, whole);
      }
    }
    // The lock is released while Admit asks the mesh, so another call may begin this batch
    // meanwhile: the next turn looks for it again.
    MUSTER_RETURN_IF_ERROR(deps_.admit(job));
  }
}

absl::StatusOr<std::optional<ledger::Batch>> Submissions::Find(const v1::SubmitHeader& header,
                                                               job::JobDefinition* job) {
  const absl::StatusOr<ledger::Batch> known = deps_.ledger->FindByRequestId(header.request_id());
  const bool is_new = absl::IsNotFound(known.status()) ||
                      (known.ok() && known->state == ledger::BatchState::kCancelled);
  if (!is_new) MUSTER_RETURN_IF_ERROR(known.status());
  // An upload that was cut off continues even if its job was changed or deleted: the batch is bound
  // to the job as it was.
  if (!is_new && known->state == ledger::BatchState::kOpen && !HasAllContent(*known)) {
    MUSTER_RETURN_IF_ERROR(CheckSame(header, known->job_revision, *known));
    return *known;
  }
  MUSTER_ASSIGN_OR_RETURN(*job, FindJob(header.job()));
  if (is_new) return std::nullopt;
  if (header.always_new()) return RequestIdReused(known->number, "already");
  MUSTER_RETURN_IF_ERROR(CheckSame(header, job->revision, *known));
  return *known;
}

// A store that was lost is empty: it has neither the job nor the revision of any batch of it, while
// a job that was deleted leaves its revisions, so that Restore changes nothing.
absl::StatusOr<job::JobDefinition> Submissions::FindJob(const std::string& name) {
  absl::StatusOr<job::JobDefinition> found = deps_.jobs->GetDefinition(name);
  if (!absl::IsNotFound(found.status())) return found;
  MUSTER_ASSIGN_OR_RETURN(const std::optional<uint64_t> newest, NewestBatchOf(name));
  if (!newest.has_value()) return found;
  MUSTER_ASSIGN_OR_RETURN(const ledger::Batch batch, deps_.ledger->Get(*newest));
  MUSTER_ASSIGN_OR_RETURN(const bool restored,
                          deps_.jobs->Restore({.name = batch.job,
                                               .definition = batch.job_definition,
                                               .revision = batch.job_revision,
                                               .updated = batch.created}));
  if (restored) {
    base::Log(base::kWarning, "put back a job that was lost, for a submit",
              {{"job", batch.job}, {"revision", batch.job_revision}, {"batch", batch.number}});
  }
  return deps_.jobs->GetDefinition(name);
}

absl::StatusOr<std::optional<uint64_t>> Submissions::NewestBatchOf(const std::string& job) {
  base::MutexLock lock(&mu_);
  const absl::Duration now = deps_.clock->Monotonic();
  if (now >= listed_at_ + kListInterval) {
    newest_batches_.clear();
    for (uint64_t below = std::numeric_limits<uint64_t>::max(); below != 0;) {
      MUSTER_ASSIGN_OR_RETURN(const ledger::BatchPage page,
                              deps_.ledger->ListBelow(below, kListedAtATime));
      for (const ledger::Batch& batch : page.batches) {
        newest_batches_.try_emplace(batch.job, batch.number);
      }
      below = page.next_below;
    }
    listed_at_ = now;
  }
  const auto newest = newest_batches_.find(job);
  if (newest == newest_batches_.end()) return std::nullopt;
  return newest->second;
}

absl::StatusOr<uint64_t> Submissions::FindBegun(const std::string& request_id) {
  const base::KeyedMutex::Lock lock(&requests_, request_id);
  MUSTER_ASSIGN_OR_RETURN(const ledger::Batch batch, deps_.ledger->FindByRequestId(request_id));
  if (batch.state != ledger::BatchState::kCancelled) return batch.number;
  return absl::NotFoundError(absl::StrCat("batch ", batch.number, " is cancelled"));
}

absl::Status Submissions::MakePlace(ledger::Batch* batch) {
  batch->source_path = deps_.uploads->PathOf(batch->number);
  batch->content_path = deps_.uploads->ContentPathOf(batch->number);
  if (deps_.claims != nullptr) {
    MUSTER_RETURN_IF_ERROR(deps_.claims->Claim(*batch));
    batch->request_claimed = true;
  }
  return ClearPlace(batch->number);
}

// Deletes what an earlier installation may have left under `number`, but only if no batch has the
// number: it may turn out to be taken.
absl::Status Submissions::ClearPlace(uint64_t number) {
  const absl::Status owner = deps_.ledger->Get(number).status();
  return absl::IsNotFound(owner) ? deps_.uploads->Delete(number) : absl::OkStatus();
}

bool Submissions::HasAllContent(const ledger::Batch& batch) const {
  return !batch.content.empty() || deps_.uploads->IsSealed(batch.number);
}

absl::Status Submissions::CheckSame(const v1::SubmitHeader& header, const std::string& revision,
                                    const ledger::Batch& batch) {
  if (batch.job != header.job()) {
    return RequestIdReused(batch.number, absl::StrCat("of job '", batch.job, "'"));
  }
  if (batch.job_revision != revision) {
    return RequestIdReused(batch.number, absl::StrCat("of job revision ", batch.job_revision));
  }
  if (header.has_handler_version() && header.handler_version() != batch.handler_version) {
    return RequestIdReused(batch.number,
                           batch.handler_version.empty()
                               ? "of no handler version"
                               : absl::StrCat("of handler version ", batch.handler_version));
  }
  if (header.tenant() != batch.tenant) return RequestIdReused(batch.number, "of another tenant");
  return absl::OkStatus();
}

absl::StatusOr<ledger::Batch> Submissions::Record(
    const v1::SubmitHeader& header, const job::JobDefinition& job,
    const std::optional<base::TraceContext>& trace,
    const std::optional<batch::InlineContent>& whole) {
  ledger::Batch batch;
  batch.request_id = header.request_id();
  batch.job = job.name;
  batch.job_revision = job.revision;
  batch.job_definition = job.text;
  batch.handler_version = header.handler_version();
  if (!header.has_handler_version()) {
    MUSTER_ASSIGN_OR_RETURN(batch.handler_version, deps_.current_version(job));
  }
  batch.tenant = header.tenant();
  batch.created = deps_.clock->Now();
  batch.sla = job.sla_max;
  batch.retention = job.retention;
  batch.trace = trace.has_value() ? *trace : base::NewTrace(deps_.trace_sample);
  batch.owner = deps_.owner;
  std::vector<ledger::ItemBoundary> items;
  if (whole.has_value()) {
    batch.content = std::string(whole->data);
    batch.source_size = whole->data.size();
    batch.source_content = whole->hash;
    items = batch::SplitInline(job, whole->data);
  }
  MUSTER_RETURN_IF_ERROR(
      batch::RecordUnderNewNumber(deps_.ledger, deps_.numbers, &batch, items,
                                  [this](ledger::Batch* numbered) { return MakePlace(numbered); }));
  return batch;
}

}  // namespace muster::initiator::submit
