// SPDX-License-Identifier: Apache-2.0

// Submissions: finds the batch that a submission continues or repeats, or records a new one.
//
// Where other initiators take batches in, too, what the mesh must agree to and what the disk must
// keep go side by side:
//
//   header ─┬─ claim on the request id ──────────────────────────┬─ both agree ─► NoteDecided
//           ├─ is the job still defined as this process knows it? ┤               ─► answer
//           └─ record in the ledger, undecided; fsync ────────────┴─ one does not ─► Withdraw
//
// So a submit sees every definition that was applied before it began, at whichever initiator: one
// that was recorded by an older definition is withdrawn, and recorded again by the new one. Until
// it is decided, no caller hears of the batch, and no item of it is put. A process that dies before
// that leaves an undecided batch; the next one decides it before it puts anything (Decide).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/trace_context.h"
#include "muster/base/worker_pool.h"
#include "muster/job/job.h"
#include "muster/job/job_registry.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/sync/unique_id_generator.h"
#include "muster/telemetry/span.h"
#include "muster/v1/batch_service.pb.h"
#include "services/initiator/batch/opener.h"
#include "services/initiator/batch/source.h"
#include "services/initiator/submit/request_claims.h"
#include "services/initiator/submit/uploads.h"

namespace muster::initiator::submit {

// The version of the job's handler that a batch is bound to when its submitter does not say; as
// HandlerVersions::Current.
using CurrentVersion = std::function<absl::StatusOr<std::string>(const job::JobDefinition& job)>;

// Decides whether the initiator takes in a new batch of the job now; as Admission::Admit.
using Admit = std::function<absl::Status(const job::JobDefinition& job)>;

// How long a new batch is kept after its end, where `jobs` is what its job says; null: so long.
using ChooseRetention = std::function<ledger::Retention(const ledger::Retention& jobs)>;

// Of a new batch; a batch that is there already stays as it is.
struct BeginOptions {
  ChooseRetention retention = nullptr;
  // The revision of the job by which its content was written; empty: it is not known. A batch of
  // another one is not begun (IsJobChanged).
  std::string revision = "";
  // It is sealed as it is recorded, or decided, if its items reach to the end of the content that
  // comes with the header. So the first result of it may complete it.
  bool seal = false;
  // All of the content, where it has come with the header: no batch begins of content that
  // batch::CheckNewContent refuses. Empty: it comes later.
  absl::string_view content = {};
};

// Whether the batch was not begun because its job is at another revision than BeginOptions names.
bool IsJobChanged(const absl::Status& status);

// The error for a submission whose request id already belongs to `batch`. `with_what` says how
// `batch` differs or stands: "of job 'x'", "already".
absl::Status RequestIdReused(uint64_t batch, absl::string_view with_what);

// InvalidArgument: no batch can have such a header. BadRequest names the field, as one of `name`.
absl::Status CheckHeader(const v1::SubmitHeader& header, absl::string_view name = "header");

// InvalidArgument, which names the field: the id is one of those that muster gives, of a retry or
// of a schedule. Under them it looks for batches of its own, and takes what it finds for them: with
// a client's batch there, records would count as retried that are in no batch, and an occurrence as
// submitted that is not. Of ids that clients choose.
absl::Status CheckChosenId(absl::string_view request_id, absl::string_view field);

// InvalidArgument, which names the field: the header has what only muster gives, an id as of
// CheckChosenId or a label as of item::CheckChosenLabels. Of headers that clients send.
absl::Status CheckChosen(const v1::SubmitHeader& header);

// Calls that go beside a submit. When all of them are taken, as while the store does not answer,
// the calls of a submit are made one after the other, on its own thread.
inline constexpr int kCallsBeside = 8;

// Thread-safe.
class Submissions {
 public:
  struct Dependencies {
    job::JobRegistry* jobs = nullptr;
    ledger::BatchLedger* ledger = nullptr;
    sync::UniqueIdGenerator* numbers = nullptr;
    Uploads* uploads = nullptr;
    CurrentVersion current_version;
    Admit admit;
    base::Clock* clock = nullptr;
    double trace_sample = batch::kDefaultTraceSample;  // as BatchOpener
    RequestClaims* claims = nullptr;                   // null: no other initiator takes batches in
    std::string owner = "";                            // of new batches (Batch::owner)
    telemetry::SpanSink* spans = nullptr;              // null: batches are not traced
    // Asked of a new batch when no ledger has its request id and this initiator has claimed it, and
    // before it is decided. An error withdraws the batch, and is the submit's; after one other than
    // FailedPrecondition and NotFound, Decide leaves it undecided. Empty: all are fine.
    std::function<absl::Status(const ledger::Batch&)> confirm = nullptr;
    // Asked before a new batch begins whose content is to be uploaded; as
    // BatchScheduler::CheckUploads. Empty: any number may be.
    std::function<absl::Status()> check_uploads = nullptr;
  };

  // What the dependencies point to is not owned.
  explicit Submissions(Dependencies dependencies) : deps_(std::move(dependencies)) {}

  // Answers the recorded batch of this header. A new batch is recorded together with the content
  // `whole`, if there is any. Errors are those of BatchService.Submit for a header.
  absl::StatusOr<ledger::Batch> Begin(
      const v1::SubmitHeader& header,
      const std::optional<batch::InlineContent>& whole = std::nullopt,
      const BeginOptions& options = BeginOptions());

  // The batch of the request, as AskOwner answers it for this initiator. Waits while a submission
  // of it is being recorded, and decides one that an earlier process left.
  absl::StatusOr<uint64_t> FindBegun(const RequestName& request);
  // The same of any tenant, for an initiator of an older muster, which does not say which: the
  // newest with the id, whose tenant may be another.
  absl::StatusOr<uint64_t> FindBegunOfAny(const std::string& request_id);

  // Decides a batch that an earlier process has left undecided. False: it was withdrawn, because
  // its request id is another initiator's, or its job has changed; its submitter was never told of
  // it, and submits again. Errors, such as Unavailable, leave it undecided.
  absl::StatusOr<bool> Decide(uint64_t batch);

  // As BatchLedger::RecordSealedContent.
  absl::Status RecordSealed(uint64_t batch, const ledger::SealedContent& content) {
    return deps_.ledger->RecordSealedContent(batch, content);
  }

 private:
  // The definition of a new batch's job.
  struct NewBatch {
    job::JobDefinition job;
    bool certain = false;  // false: as this process knew it, which must be confirmed
  };

  // The batch that `header` goes on with. nullopt: it begins a new one, `begun`. `recall`: the job
  // may be as this process knows it.
  absl::StatusOr<std::optional<ledger::Batch>> Find(const v1::SubmitHeader& header, bool recall,
                                                    NewBatch* begun);
  // The newest batch of the request, once it is decided; NotFound: none. The caller holds it.
  absl::StatusOr<ledger::Batch> FindDecided(const RequestName& request);
  // As Dependencies::confirm; releases the claim of a batch that is refused for good.
  absl::Status Confirm(const ledger::Batch& batch) const;
  // As Decide, of an undecided batch; the caller holds its request.
  absl::StatusOr<bool> DecideHeld(const ledger::Batch& batch);
  // The definition of the job. A job that the registry has lost with its store is put back from the
  // newest batch of the job in the ledger. NotFound: no such job.
  absl::StatusOr<job::JobDefinition> FindJob(const std::string& name);
  // OK: `batch` is what `header` began, or begins with the job at `revision`.
  static absl::Status CheckSame(const v1::SubmitHeader& header, const std::string& revision,
                                const ledger::Batch& batch);
  // Sets where the content of the numbered batch lies, and clears the place.
  absl::Status MakePlace(ledger::Batch* batch);
  absl::Status ClearPlace(uint64_t number);
  // Whether the initiator needs no more content of the batch from its submitter.
  bool HasAllContent(const ledger::Batch& batch) const;
  absl::StatusOr<ledger::Batch> Draft(const v1::SubmitHeader& header, const job::JobDefinition& job,
                                      const std::optional<base::TraceContext>& trace,
                                      const std::optional<batch::InlineContent>& whole);
  // Records the batch, and decides it meanwhile. nullopt: its job has changed, and nothing stays.
  absl::StatusOr<std::optional<ledger::Batch>> Record(
      ledger::Batch batch, const NewBatch& begun, const std::optional<batch::InlineContent>& whole,
      bool seal);
  // Makes the call beside the caller, or before it returns.
  template <typename Result>
  std::future<Result> Beside(std::function<Result()> call);

  const Dependencies deps_;
  // Held per request (HeldAs) from the search for its batch until the batch is recorded, so that
  // two headers of one request make one batch. Other submissions share syncs of the ledger
  // meanwhile.
  base::KeyedMutex requests_;

  std::atomic<int> calls_beside_ = 0;      // under way
  base::WorkerPool beside_{kCallsBeside};  // last: its calls use the others
};

}  // namespace muster::initiator::submit
