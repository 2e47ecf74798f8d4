// SPDX-License-Identifier: Apache-2.0

// Session: one call of HandlerService.Work, from `hello` to its end. A thread writes and a thread
// reads; workers hand in items and wait for their answers, several at a time.
//
//   hello ──► ready ──► items ⇄ answers ──End──► the handler ends, too
//                             └──Cancel, or the handler ends it, or it says what it must not──►
//                             over
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/sync_stream.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/v1/handler_service.grpc.pb.h"

namespace muster::handler::grpc {

// How a session ended.
struct SessionEnd {
  enum class Kind {
    kCancelled,  // by this side
    kStopped,    // the handler takes nothing more: it ended with OK, or said Unavailable
    kRefused,    // it said FailedPrecondition instead of ready: it cannot work on such a job
    kUnreached,  // no connection was made
    kNoThread,   // this process has no thread for the call
    kOther,      // what answers there has no such service
    kFailed,     // anything else: it died, or said what it must not
  };

  Kind kind = Kind::kFailed;
  std::string why;  // completes "the handler …"
};

// The fate of an item that was passed to Ask.
struct Reply {
  enum class Kind {
    kAnswered,
    kLate,          // no answer by the deadline
    kInterrupted,   // the stop token was set; the handler was asked to abandon the item
    kAskedAlready,  // an item of that name is unanswered
    kOver,          // the session is over: see end()
  };

  Kind kind = Kind::kOver;
  v1::HandlerAnswer answer;  // kAnswered
};

// Thread-safe. Deadlines are the clock's Monotonic().
class Session {
 public:
  // Begins the call with `hello`; it is over at once, with kNoThread, if it gets no threads.
  // `clock` is not owned.
  Session(std::shared_ptr<::grpc::Channel> channel, v1::WorkRequest hello, base::Clock* clock);
  // Cancels what is under way, and waits for the call's end.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Waits for the handler's `ready`. DeadlineExceeded: it did not come in time; Aborted: the
  // session is over; Cancelled: stopped.
  absl::StatusOr<v1::Ready> AwaitReady(absl::Duration deadline, const std::stop_token& stop)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Waits until fewer items are unanswered than the handler can take, and takes the free slot: Ask
  // or ReleaseSlot must follow. Only after AwaitReady. Statuses as AwaitReady's.
  absl::Status AcquireSlot(absl::Duration deadline, const std::stop_token& stop)
      ABSL_LOCKS_EXCLUDED(mu_);
  void ReleaseSlot() ABSL_LOCKS_EXCLUDED(mu_);

  // Sends an item, for which the caller holds a slot, and waits for its answer.
  Reply Ask(const v1::WorkRequest& item, absl::Duration deadline, const std::stop_token& stop)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Cancels the call and wakes all waiting threads. The first reason counts.
  void Cancel(std::string why) ABSL_LOCKS_EXCLUDED(mu_);

  // Sends nothing more; waits for the handler to end its side, and cancels the call when that takes
  // longer than `grace`. No thread may be in Ask.
  void End(absl::Duration grace) ABSL_LOCKS_EXCLUDED(mu_);

  bool over() const ABSL_LOCKS_EXCLUDED(mu_);
  // Valid once over() is true.
  SessionEnd end() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Stream = ::grpc::ClientReaderWriter<v1::WorkRequest, v1::WorkResponse>;

  // Of the constructor, where a thread cannot start: ends the call.
  void EndWithoutThread(const char* why) ABSL_LOCKS_EXCLUDED(mu_);
  void Read() ABSL_LOCKS_EXCLUDED(mu_);
  void Write() ABSL_LOCKS_EXCLUDED(mu_);
  // False: the response breaks the contract; the session is over.
  bool TakeLocked(v1::WorkResponse response) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool TakeReadyLocked(v1::Ready ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool TakeAnswerLocked(v1::HandlerAnswer answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RefuseLocked(std::string why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AbandonLocked(const std::string& item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  SessionEnd EndOfLocked(const ::grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Clock* const clock_;  // not owned
  const std::unique_ptr<v1::HandlerService::Stub> stub_;
  ::grpc::ClientContext context_;
  const std::unique_ptr<Stream> stream_;

  mutable base::Mutex mu_;
  base::CondVar changed_;  // for threads that wait for ready, slots, answers and the end
  base::CondVar outgoing_;
  std::deque<v1::WorkRequest> outbox_ ABSL_GUARDED_BY(mu_);
  bool closing_ ABSL_GUARDED_BY(mu_) = false;        // nothing follows the outbox
  bool reading_ended_ ABSL_GUARDED_BY(mu_) = false;  // writing has become useless
  std::unique_ptr<v1::Ready> ready_ ABSL_GUARDED_BY(mu_);
  int slots_taken_ ABSL_GUARDED_BY(mu_) = 0;
  // By the item's name; null until its answer has come.
  std::map<std::string, std::unique_ptr<v1::HandlerAnswer>> asked_ ABSL_GUARDED_BY(mu_);
  // Names of abandoned items with answers that may still come, the oldest first.
  std::deque<std::string> strays_ ABSL_GUARDED_BY(mu_);
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  std::string refusal_ ABSL_GUARDED_BY(mu_);  // how the handler broke the contract
  std::string cancel_why_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<SessionEnd> end_ ABSL_GUARDED_BY(mu_);
  std::thread writer_;
  std::thread reader_;  // last: it uses all of the above
};

}  // namespace muster::handler::grpc
