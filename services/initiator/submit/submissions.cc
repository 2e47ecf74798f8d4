// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/submit/submissions.h"

#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/base/log.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/input/byte_source.h"
#include "muster/item/batch_trace.h"
#include "muster/item/labels.h"
#include "muster/job/limits.h"
#include "muster/rpc/status.h"
#include "muster/schedule/occurrence.h"
#include "services/initiator/batch/batch_spans.h"

namespace muster::initiator::submit {
namespace {

constexpr size_t kMaxRequestIdBytes = 512;
constexpr size_t kMaxVersionBytes = 256;
constexpr size_t kMaxTenantBytes = 256;

item::Labels LabelsOf(const v1::SubmitHeader& header) {
  return {header.labels().begin(), header.labels().end()};
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

// Whether the batch leaves its request id to another one. A schedule never submits an occurrence
// again.
bool IsIdFree(const ledger::Batch& batch) {
  return batch.state == ledger::BatchState::kCancelled &&
         !schedule::IsOfSchedule(batch.request_id, batch.labels);
}

// The key of requests_. The tenant's length comes first: otherwise two pairs could make one text.
std::string HeldAs(const RequestName& request) {
  return absl::StrCat(request.tenant.size(), " ", request.tenant, request.id);
}

constexpr char kJobChanged[] = "muster.initiator/job_changed";

absl::Status JobChanged(const job::JobDefinition& job) {
  absl::Status status = absl::AbortedError(
      absl::StrCat("job '", job.name, "' is at revision ", job.revision, " now"));
  status.SetPayload(kJobChanged, absl::Cord());
  return status;
}

// Whether the items are all of a source of so many bytes.
bool ReachesTo(const std::vector<ledger::ItemBoundary>& items, uint64_t bytes) {
  return !items.empty() && items.back().offset + items.back().length == bytes;
}

}  // namespace

bool IsJobChanged(const absl::Status& status) { return status.GetPayload(kJobChanged).has_value(); }

absl::Status CheckHeader(const v1::SubmitHeader& header, absl::string_view name) {
  const auto bad = [name](absl::string_view field, absl::string_view why) {
    return rpc::BadField(absl::StrCat(name, ".", field), why);
  };
  if (header.job().empty()) return bad("job", "must not be empty");
  if (header.request_id().empty() || header.request_id().size() > kMaxRequestIdBytes) {
    return bad("request_id", absl::StrCat("must have 1 to ", kMaxRequestIdBytes, " bytes"));
  }
  if (header.has_handler_version() &&
      (header.handler_version().empty() || header.handler_version().size() > kMaxVersionBytes)) {
    return bad("handler_version", absl::StrCat("must have 1 to ", kMaxVersionBytes, " bytes"));
  }
  if (header.tenant().size() > kMaxTenantBytes) {
    return bad("tenant", absl::StrCat("must have at most ", kMaxTenantBytes, " bytes"));
  }
  if (header.has_sla()) {
    const absl::Duration sla = base::FromProto(header.sla());
    if (sla < job::kMinSla || sla > job::kMaxSla) {
      return bad("sla", "must be from 1 ms to 365 days");
    }
  }
  if (const absl::Status fault = item::CheckLabels(LabelsOf(header)); !fault.ok()) {
    return bad("labels", fault.message());
  }
  return absl::OkStatus();
}

absl::Status CheckChosenId(absl::string_view request_id, absl::string_view field) {
  if (absl::StartsWith(request_id, batch::kRetryRequest)) {
    return rpc::BadField(field, "must not be that of a retry, which muster gives");
  }
  if (muster::schedule::IsScheduleRequest(request_id)) {
    return rpc::BadField(field, "must not be that of a schedule, which muster gives");
  }
  return absl::OkStatus();
}

absl::Status CheckChosen(const v1::SubmitHeader& header) {
  MUSTER_RETURN_IF_ERROR(CheckChosenId(header.request_id(), "header.request_id"));
  const absl::Status fault = item::CheckChosenLabels(LabelsOf(header));
  return fault.ok() ? fault : rpc::BadField("header.labels", fault.message());
}

absl::Status RequestIdReused(uint64_t batch, absl::string_view with_what) {
  return rpc::WithReason(
      absl::FailedPreconditionError(absl::StrCat("this request id belongs to batch ", batch, " ",
                                                 with_what, ": choose another one")),
      {"REQUEST_ID_REUSED", {{"batch", absl::StrCat(batch)}}});
}

absl::StatusOr<ledger::Batch> Submissions::Begin(const v1::SubmitHeader& header,
                                                 const std::optional<batch::InlineContent>& whole,
                                                 const BeginOptions& options) {
  MUSTER_RETURN_IF_ERROR(CheckHeader(header));
  MUSTER_ASSIGN_OR_RETURN(const std::optional<base::TraceContext> trace, TraceOf(header));
  // Alone, an initiator has the registry in its own process: to ask it costs nothing.
  bool recall = deps_.claims != nullptr;
  for (bool admitted = false;;) {
    NewBatch begun;
    {
      const base::KeyedMutex::Lock lock(&requests_, HeldAs({header.tenant(), header.request_id()}));
      MUSTER_ASSIGN_OR_RETURN(const std::optional<ledger::Batch> known,
                              Find(header, recall, &begun));
      if (known.has_value()) {
        // The call that recorded the batch may not have synced it yet.
        MUSTER_RETURN_IF_ERROR(deps_.ledger->Sync());
        return *known;
      }
      recall = false;
      if (!options.revision.empty() && begun.job.revision != options.revision) {
        if (!begun.certain) continue;
        return JobChanged(begun.job);
      }
      if (!options.content.empty()) {
        const absl::Status fits =
            batch::CheckNewContent(input::TextSource(options.content), begun.job.input);
        if (!fits.ok() && !begun.certain) continue;
        MUSTER_RETURN_IF_ERROR(fits);
      }
      if (!whole.has_value() && deps_.check_uploads) MUSTER_RETURN_IF_ERROR(deps_.check_uploads());
      if (admitted || !begun.job.queue.max_drain.has_value()) {
        absl::StatusOr<ledger::Batch> draft = Draft(header, begun.job, trace, whole);
        if (!draft.ok() && !begun.certain)
          continue;  // perhaps the job as it is now has no such fault
        MUSTER_RETURN_IF_ERROR(draft.status());
        if (options.retention) draft->retention = options.retention(begun.job.retention);
        MUSTER_ASSIGN_OR_RETURN(const std::optional<ledger::Batch> recorded,
                                Record(*std::move(draft), begun, whole, options.seal));
        if (recorded.has_value()) return *recorded;
        continue;
      }
    }
    if (!begun.certain) continue;
    // The lock is released while Admit asks the mesh, so another call may begin this batch
    // meanwhile: the next turn looks for it again.
    MUSTER_RETURN_IF_ERROR(deps_.admit(begun.job));
    admitted = true;
  }
}

absl::StatusOr<ledger::Batch> Submissions::FindDecided(const RequestName& request) {
  absl::StatusOr<ledger::Batch> known = deps_.ledger->FindByRequest(request.tenant, request.id);
  if (!known.ok() || !known->undecided) return known;
  MUSTER_ASSIGN_OR_RETURN(const bool stays, DecideHeld(*known));
  if (stays) return deps_.ledger->Get(known->number);
  return absl::NotFoundError("its batch was withdrawn");
}

absl::StatusOr<std::optional<ledger::Batch>> Submissions::Find(const v1::SubmitHeader& header,
                                                               bool recall, NewBatch* begun) {
  const absl::StatusOr<ledger::Batch> known = FindDecided({header.tenant(), header.request_id()});
  const bool is_new = absl::IsNotFound(known.status()) || (known.ok() && IsIdFree(*known));
  if (!is_new) MUSTER_RETURN_IF_ERROR(known.status());
  // An upload that was cut off continues even if its job was changed or deleted: the batch is bound
  // to the job as it was.
  if (!is_new && known->state == ledger::BatchState::kOpen && !HasAllContent(*known)) {
    MUSTER_RETURN_IF_ERROR(CheckSame(header, known->job_revision, *known));
    return *known;
  }
  if (is_new && recall) {
    if (auto recalled = deps_.jobs->Recall(header.job()); recalled.has_value()) {
      *begun = {*std::move(recalled), false};
      return std::nullopt;
    }
  }
  MUSTER_ASSIGN_OR_RETURN(begun->job, FindJob(header.job()));
  begun->certain = true;
  if (is_new) return std::nullopt;
  if (header.always_new()) return RequestIdReused(known->number, "already");
  MUSTER_RETURN_IF_ERROR(CheckSame(header, begun->job.revision, *known));
  return *known;
}

// A store that was lost is empty: it has neither the job nor the revision of any batch of it. A job
// that was deleted Restore leaves so.
absl::StatusOr<job::JobDefinition> Submissions::FindJob(const std::string& name) {
  absl::StatusOr<job::JobDefinition> found = deps_.jobs->GetDefinition(name);
  if (!absl::IsNotFound(found.status())) return found;
  const absl::StatusOr<ledger::Batch> batch = deps_.ledger->FindNewestOfJob(name);
  if (absl::IsNotFound(batch.status())) return found;
  MUSTER_RETURN_IF_ERROR(batch.status());
  MUSTER_ASSIGN_OR_RETURN(const bool restored,
                          deps_.jobs->Restore({.name = batch->job,
                                               .definition = batch->job_definition,
                                               .revision = batch->job_revision,
                                               .updated = batch->created}));
  found = deps_.jobs->GetDefinition(name);
  if (restored && found.ok()) {
    base::Log(base::kWarning, "put back a job that was lost, for a submit",
              {{"job", batch->job}, {"revision", batch->job_revision}, {"batch", batch->number}});
  }
  return found;
}

absl::StatusOr<uint64_t> Submissions::FindBegunOfAny(const std::string& request_id) {
  const absl::StatusOr<ledger::Batch> newest = deps_.ledger->FindByRequestId(request_id);
  if (!newest.ok() && !absl::IsNotFound(newest.status())) return newest.status();
  // Where there is none yet, one of no tenant may be about to be recorded.
  return FindBegun({newest.ok() ? newest->tenant : "", request_id});
}

absl::StatusOr<uint64_t> Submissions::FindBegun(const RequestName& request) {
  const base::KeyedMutex::Lock lock(&requests_, HeldAs(request));
  MUSTER_ASSIGN_OR_RETURN(const ledger::Batch batch, FindDecided(request));
  if (!IsIdFree(batch)) return batch.number;
  return absl::NotFoundError(absl::StrCat("batch ", batch.number, " is cancelled"));
}

absl::Status Submissions::MakePlace(ledger::Batch* batch) {
  batch->source_path = deps_.uploads->PathOf(batch->number);
  batch->content_path = deps_.uploads->ContentPathOf(batch->number);
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
  return absl::OkStatus();
}

absl::StatusOr<ledger::Batch> Submissions::Draft(const v1::SubmitHeader& header,
                                                 const job::JobDefinition& job,
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
  batch.sla = header.has_sla() ? base::FromProto(header.sla()) : job.sla_max;
  batch.retention = job.retention;
  batch.trace = trace.has_value() ? *trace : item::BeginTrace(deps_.trace_sample);
  batch.owner = deps_.owner;
  batch.labels = LabelsOf(header);
  if (whole.has_value()) {
    batch.content = std::string(whole->data);
    batch.source_size = whole->data.size();
    batch.source_content = whole->hash;
  }
  return batch;
}

template <typename Result>
std::future<Result> Submissions::Beside(std::function<Result()> call) {
  const auto task = std::make_shared<std::packaged_task<Result()>>(std::move(call));
  std::future<Result> result = task->get_future();
  if (calls_beside_.fetch_add(1) < kCallsBeside) {
    beside_.Add([this, task] {
      (*task)();
      --calls_beside_;
    });
  } else {
    (*task)();
    --calls_beside_;
  }
  return result;
}

absl::StatusOr<std::optional<ledger::Batch>> Submissions::Record(
    ledger::Batch batch, const NewBatch& begun, const std::optional<batch::InlineContent>& whole,
    bool seal) {
  const bool must_claim = deps_.claims != nullptr;
  // While the caller holds the request id, nothing else can take it where no claim does.
  if (!must_claim) MUSTER_RETURN_IF_ERROR(Confirm(batch));
  batch.undecided = must_claim || !begun.certain;
  batch.request_claimed = must_claim;
  std::future<absl::StatusOr<bool>> current;
  if (!begun.certain) {
    current = Beside<absl::StatusOr<bool>>(
        [jobs = deps_.jobs, job = begun.job] { return jobs->IsCurrent(job); });
  }
  std::future<absl::Status> claimed;
  const auto on_number = [&](ledger::Batch* numbered) -> absl::Status {
    MUSTER_RETURN_IF_ERROR(MakePlace(numbered));
    if (!must_claim) return absl::OkStatus();
    if (claimed.valid()) claimed.wait();  // of a number that was taken: each call claims in turn
    ledger::Batch request;
    request.number = numbered->number;
    request.request_id = numbered->request_id;
    request.tenant = numbered->tenant;
    claimed =
        Beside<absl::Status>([claims = deps_.claims, request] { return claims->Claim(request); });
    return absl::OkStatus();
  };
  std::vector<ledger::ItemBoundary> items;
  if (whole.has_value()) items = batch::SplitInline(begun.job, whole->data);
  seal = seal && ReachesTo(items, batch.source_size);
  if (seal && !batch.undecided) batch.state = ledger::BatchState::kSealed;
  const absl::Status recorded =
      batch::RecordUnderNewNumber(deps_.ledger, deps_.numbers, &batch, items, on_number);
  absl::Status decided = claimed.valid() ? claimed.get() : absl::OkStatus();
  bool is_current = true;
  if (current.valid()) {
    const absl::StatusOr<bool> answer = current.get();
    decided.Update(answer.status());
    is_current = answer.value_or(false);
  }
  MUSTER_RETURN_IF_ERROR(recorded);
  if (must_claim && decided.ok() && is_current) decided = Confirm(batch);
  if (decided.ok() && is_current) {
    if (seal && batch.undecided) {
      MUSTER_RETURN_IF_ERROR(deps_.ledger->Seal(batch.number, batch.source_size));
      batch.state = ledger::BatchState::kSealed;
    } else {
      MUSTER_RETURN_IF_ERROR(deps_.ledger->NoteDecided(batch.number));
    }
    batch.undecided = false;
    batch::RecordSubmit(deps_.spans, batch, batch.created, deps_.clock->Now());
    return batch;
  }
  MUSTER_RETURN_IF_ERROR(deps_.ledger->Withdraw(batch.number));
  MUSTER_RETURN_IF_ERROR(decided);
  return std::nullopt;
}

absl::StatusOr<bool> Submissions::Decide(uint64_t number) {
  absl::StatusOr<ledger::Batch> batch = deps_.ledger->Get(number);
  if (batch.ok() && batch->undecided) {
    const base::KeyedMutex::Lock lock(&requests_, HeldAs({batch->tenant, batch->request_id}));
    batch = deps_.ledger->Get(number);  // a submit may have decided it meanwhile
    if (batch.ok() && batch->undecided) return DecideHeld(*batch);
  }
  if (absl::IsNotFound(batch.status())) return false;
  MUSTER_RETURN_IF_ERROR(batch.status());
  return true;
}

absl::StatusOr<bool> Submissions::DecideHeld(const ledger::Batch& batch) {
  const absl::StatusOr<job::JobDefinition> job = FindJob(batch.job);
  if (!absl::IsNotFound(job.status())) MUSTER_RETURN_IF_ERROR(job.status());
  absl::Status decided = job.status();
  if (job.ok() && job->text != batch.job_definition) {
    decided = absl::FailedPreconditionError("its job was changed before it was submitted");
  }
  if (decided.ok() && deps_.claims != nullptr) decided = deps_.claims->Claim(batch);
  if (decided.ok()) decided = Confirm(batch);
  if (decided.ok()) {
    MUSTER_RETURN_IF_ERROR(deps_.ledger->NoteDecided(batch.number));
    return true;
  }
  if (!absl::IsFailedPrecondition(decided) && !absl::IsNotFound(decided)) return decided;
  base::Log(base::kInfo, "withdraws a batch that its submitter was never told of",
            {{"batch", batch.number}, {"why", decided.message()}});
  MUSTER_RETURN_IF_ERROR(deps_.ledger->Withdraw(batch.number));
  return false;
}

// A claim that stays does no harm, but for its bytes: the next to ask takes it over.
absl::Status Submissions::Confirm(const ledger::Batch& batch) const {
  if (!deps_.confirm) return absl::OkStatus();
  const absl::Status confirmed = deps_.confirm(batch);
  if (absl::IsFailedPrecondition(confirmed) && deps_.claims != nullptr) {
    base::LogUnlessOk(base::kWarning, "the claim of a batch that is withdrawn stays",
                      deps_.claims->Release(batch), {{"batch", batch.number}});
  }
  return confirmed;
}

}  // namespace muster::initiator::submit
