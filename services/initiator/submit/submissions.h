// Submissions: finds the batch that a submission continues or repeats, or records a new one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/trace_context.h"
#include "muster/job/job.h"
#include "muster/job/job_registry.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/sync/unique_id_generator.h"
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

// The error for a submission whose request id already belongs to `batch`. `with_what` says how
// `batch` differs or stands: "of job 'x'", "already".
absl::Status RequestIdReused(uint64_t batch, absl::string_view with_what);

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
  };

  // What the dependencies point to is not owned.
  explicit Submissions(Dependencies dependencies) : deps_(std::move(dependencies)) {}

  // Answers the recorded batch of this header. A new batch is recorded together with the content
  // `whole`, if there is any. Errors are those of BatchService.Submit for a header.
  absl::StatusOr<ledger::Batch> Begin(
      const v1::SubmitHeader& header,
      const std::optional<batch::InlineContent>& whole = std::nullopt);

  // The batch of this request id, as AskOwner answers it for this initiator. Waits while a
  // submission with the id is being recorded.
  absl::StatusOr<uint64_t> FindBegun(const std::string& request_id);

  // As BatchLedger::RecordSealedContent.
  absl::Status RecordSealed(uint64_t batch, const ledger::SealedContent& content) {
    return deps_.ledger->RecordSealedContent(batch, content);
  }

 private:
  // The batch that `header` goes on with. nullopt: it begins a new one, of `job`.
  absl::StatusOr<std::optional<ledger::Batch>> Find(const v1::SubmitHeader& header,
                                                    job::JobDefinition* job);
  // The definition of the job. A job that the registry has lost with its store is put back from the
  // newest batch of the job in the ledger. NotFound: no such job.
  absl::StatusOr<job::JobDefinition> FindJob(const std::string& name) ABSL_LOCKS_EXCLUDED(mu_);
  // The number of the job's newest batch; nullopt: the ledger had none at its last look.
  absl::StatusOr<std::optional<uint64_t>> NewestBatchOf(const std::string& job)
      ABSL_LOCKS_EXCLUDED(mu_);
  // OK: `batch` is what `header` began, or begins with the job at `revision`.
  static absl::Status CheckSame(const v1::SubmitHeader& header, const std::string& revision,
                                const ledger::Batch& batch);
  // Prepares all but the ledger for the numbered batch.
  absl::Status MakePlace(ledger::Batch* batch);
  absl::Status ClearPlace(uint64_t number);
  // Whether the initiator needs no more content of the batch from its submitter.
  bool HasAllContent(const ledger::Batch& batch) const;
  absl::StatusOr<ledger::Batch> Record(const v1::SubmitHeader& header,
                                       const job::JobDefinition& job,
                                       const std::optional<base::TraceContext>& trace,
                                       const std::optional<batch::InlineContent>& whole);

  const Dependencies deps_;
  // Held per request id from the search for its batch until the batch is recorded, so that two
  // headers with one request id make one batch. Submissions with other request ids share syncs of
  // the ledger meanwhile.
  base::KeyedMutex requests_;

  base::Mutex mu_;
  // The newest batch of each job, as the ledger had them at listed_at_ (monotonic).
  std::map<std::string, uint64_t> newest_batches_ ABSL_GUARDED_BY(mu_);
  absl::Duration listed_at_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
};

}  // namespace muster::initiator::submit
