// SPDX-License-Identifier: Apache-2.0

// CallGatherer: gathers the records of calls in batches, and gives each call its own answer.
//
//   call ─┐                  make durable            on its way             its outcome
//   call ─┼─► group of its job ─────────► batch ─────────────────► complete ────────────► answers
//   call ─┘        ▲
//                  └─ while others of the job are made durable, the next ones gather; and while
//                     several batches of it are on their way, for a short window
//
// So a single call waits for nothing, and many at a time share batches. A call with a request id
// has a batch of its own, which others with that id wait for, too.
//
// The outcome comes with the word that the batch is complete. Where it does not, as after the death
// of a controller or of items that were given up, it is read from the report.
//
// No call holds a thread: some make batches durable, some read outcomes, and one keeps the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/worker_pool.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/v1/call_service.pb.h"
#include "muster/v1/ledger_service.pb.h"
#include "services/initiator/call/call_batches.h"
#include "services/initiator/call/call_outcomes.h"

namespace muster::initiator::call {

struct GatherOptions {
  // Batches of a job on their way before the next calls wait for the window.
  int at_once = 2;
  absl::Duration window = absl::Milliseconds(10);
  // A group that is so large is made durable at once: it fills a batch with short content.
  size_t group_bytes = kMaxCallRecordBytes;
  // Bounds of all: calls that wait, some KiB each, and records that are not durable yet.
  size_t max_calls = 20'000;
  size_t max_bytes = size_t{64} << 20;
  int making_threads = 8;
  int reading_threads = 4;
  // A batch whose end was not heard is looked for at this interval.
  absl::Duration look_interval = absl::Seconds(1);
};

// Thread-safe.
class CallGatherer {
 public:
  // Called once, on any thread, with an answer or an error of CallService.Call.
  using Answer = std::function<void(absl::StatusOr<v1::CallResponse>)>;
  // What happens to batches. Thread-safe; all but `advance` may block.
  struct Steps {
    // As CallBatches::Make.
    std::function<std::vector<absl::StatusOr<CallPlace>>(absl::Span<const v1::CallRequest* const>)>
        make;
    // As BatchScheduler::Advance.
    std::function<void(uint64_t batch)> advance;
    // As BatchLedger::Get.
    std::function<absl::StatusOr<ledger::Batch>(uint64_t batch)> get;
    // As CallOutcomes::Read.
    std::function<absl::StatusOr<v1::CallAccepted>(uint64_t batch, const VisitOutcome&)> read;
    // Why nothing is done for the batch, for people; empty: something is, or it is not known.
    std::function<std::string(uint64_t batch)> why;
  };

  // `clock` is not owned.
  CallGatherer(Steps steps, base::Clock* clock, GatherOptions options = GatherOptions());
  ~CallGatherer();  // Drain()s
  CallGatherer(const CallGatherer&) = delete;
  CallGatherer& operator=(const CallGatherer&) = delete;

  // Takes a call, whose answer comes by `answer_by` of the monotonic clock. Answers its number.
  uint64_t Add(v1::CallRequest request, absl::Duration answer_by, Answer answer)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The caller has gone. True: its answer is dropped, and is not called any more.
  bool Leave(uint64_t call) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether calls wait for the batch.
  bool WaitFor(uint64_t batch) const ABSL_LOCKS_EXCLUDED(mu_);
  // The batch is complete or cancelled. Returns at once.
  void NoteOver(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);
  // The batch is complete, and `outcome` is all that became of its records: the calls that wait for
  // it are answered before it returns, and nothing is read for them.
  void NoteOutcome(uint64_t batch, const v1::BatchOutcome& outcome) ABSL_LOCKS_EXCLUDED(mu_);
  // Answers all calls, and those that come later, with Unavailable.
  void Drain() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Call {
    std::shared_ptr<const v1::CallRequest> request;  // null once it is durable
    absl::Duration answer_by;
    Answer answer;
    std::optional<CallPlace> place;  // once it is durable
  };
  // The calls of a job that are not being made durable yet.
  struct Group {
    std::vector<uint64_t> calls;  // some may have left
    size_t bytes = 0;
    absl::Duration begun;
    int making = 0;  // groups before it that are being made durable
    int on_way = 0;  // batches
  };
  // A batch that calls wait for.
  struct Waited {
    std::string job;
    std::shared_ptr<const v1::CallAccepted> bare;  // as CallPlace
    bool is_gathered = false;                      // counts in Group::on_way
    std::multimap<int64_t, uint64_t> calls;        // that wait, by line
    bool reading = false;
    bool ended = false;  // so it was said since the last look
    int failures = 0;    // to read, in a row
    absl::Duration look_at;
  };
  using Answers = std::vector<std::pair<Answer, absl::StatusOr<v1::CallResponse>>>;

  static void Give(Answers answers);

  // Whether a call with a record of so many bytes may wait.
  absl::Status CheckRoomLocked(size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void KeepTime() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Duration NextLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ExpireLocked(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // When the group is to be made durable.
  absl::Duration DueLocked(const Group& group) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MakeIfDueLocked(const std::string& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MakeLocked(const std::string& job, std::vector<uint64_t> calls, bool is_gathered)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Make(const std::string& job, const std::vector<uint64_t>& calls, bool is_gathered)
      ABSL_LOCKS_EXCLUDED(mu_);
  void SetLookLocked(uint64_t batch, absl::Duration at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LookLocked(uint64_t batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Looks whether the batch is over, and answers its calls if it is.
  void Look(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);
  // Answers the calls of the line.
  void Visit(uint64_t batch, int64_t line, const absl::StatusOr<v1::CallResponse>& outcome)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Answers those of `calls` that wait still, and ends the look. Others have come since it began,
  // perhaps after their line was visited: for them it looks again.
  void AnswerAll(uint64_t batch, const std::vector<uint64_t>& calls,
                 const absl::StatusOr<v1::CallResponse>& outcome) ABSL_LOCKS_EXCLUDED(mu_);
  void LookAgain(uint64_t batch, bool failed) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes the call away, unless it has gone, and adds its answer to `answers`.
  void AnswerLocked(uint64_t call, const absl::StatusOr<v1::CallResponse>& outcome,
                    Answers* answers) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes the call away. Null: it was answered, or has left.
  Answer TakeLocked(uint64_t call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetLocked(uint64_t batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetIfIdleLocked(const std::string& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Steps steps_;
  base::Clock* const clock_;  // not owned
  const GatherOptions options_;

  mutable base::Mutex mu_;
  base::CondVar changed_;
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t last_call_ ABSL_GUARDED_BY(mu_) = 0;
  size_t bytes_ ABSL_GUARDED_BY(mu_) = 0;    // of records that are not durable
  size_t late_ ABSL_GUARDED_BY(mu_) = 0;     // calls that have expired, and are to be told why
  size_t to_make_ ABSL_GUARDED_BY(mu_) = 0;  // tasks of making_ that have not begun
  std::map<uint64_t, Call> calls_ ABSL_GUARDED_BY(mu_);
  std::set<std::pair<absl::Duration, uint64_t>> deadlines_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, Group> groups_ ABSL_GUARDED_BY(mu_);  // by job
  std::map<uint64_t, Waited> batches_ ABSL_GUARDED_BY(mu_);
  std::set<std::pair<absl::Duration, uint64_t>> looks_ ABSL_GUARDED_BY(mu_);

  // Last: they use all of these, and end in the reverse order.
  base::WorkerPool explaining_;
  base::WorkerPool reading_;
  base::WorkerPool making_;
  std::thread time_;
};

}  // namespace muster::initiator::call
