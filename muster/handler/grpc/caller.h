// SPDX-License-Identifier: Apache-2.0

// Caller: makes the calls to one handler server for one job, one after the other; all workers of a
// process send their items on the current call.
//
//   no call ──an item──► opening ──ready──► call (Session) ──it is over──► no call
//                           └──trouble──► held back, twice as long after each failure in a row
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "muster/base/mutex.h"
#include "muster/handler/grpc/grpc_handler.h"
#include "muster/handler/grpc/session.h"
#include "muster/handler/handler.h"
#include "muster/handler/restarts.h"
#include "muster/v1/handler_service.pb.h"

namespace muster::handler::grpc {

// Thread-safe. Only Process waits, as long as the item's deadline lets it.
class Caller {
 public:
  // Makes no call: the first item does.
  Caller(handler::JobSchema schema, GrpcOptions options, std::shared_ptr<::grpc::Channel> channel);
  // Ends the current call. No item may be in processing.
  ~Caller();
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  // Has the server work on the item, once a call has a slot for it. The outcome is as that of
  // Process in GrpcHandlerFactory.
  handler::Outcome Process(const handler::WorkItem& item, handler::Results& results)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using SessionPtr = std::shared_ptr<Session>;

  // Completes "the handler …".
  struct Trouble {
    std::string why;
    bool is_refused = false;       // the job as such
    bool is_unreached = false;     // no connection came to be
    bool is_other_server = false;  // one of another version, or one that is no handler
    std::string remedy = "start it";
  };

  // How long the item may take from now on.
  absl::Duration Allowed(const handler::WorkItem& item) const;

  // A session with a slot for the item, or the item's outcome without one.
  std::variant<SessionPtr, handler::Outcome> FindSlot(const handler::WorkItem& item)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The current session, opened if needed; it may be over a moment later.
  std::variant<SessionPtr, handler::Outcome> AwaitSession(const handler::WorkItem& item,
                                                          absl::Duration until)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Opens a session; the caller has set opening_.
  SessionPtr Open(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mu_);
  // Why the session cannot be used after AwaitReady gave `ready`; nullopt: it can.
  std::optional<Trouble> TroubleOf(Session& session, const absl::StatusOr<v1::Ready>& ready)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Why a session with this `ready` cannot be used.
  std::optional<std::string> Misfit(const v1::Ready& ready) const;
  // Sets server_due_ after a call that began at `begin`; nullopt: no trouble.
  void NoteServer(const std::optional<Trouble>& trouble, absl::Duration begin)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Notes the trouble in health, and calls on_refused or on_no_server if it is one for them.
  void Tell(const Trouble& trouble) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether a server of the wanted version is missing for longer than server_patience.
  bool IsGivenUp() ABSL_LOCKS_EXCLUDED(mu_);

  handler::Outcome Settle(const SessionPtr& session, const Reply& reply,
                          const handler::WorkItem& item, absl::Duration allowed,
                          handler::Results& results) ABSL_LOCKS_EXCLUDED(mu_);
  // The outcome of an item that was unanswered when its session ended.
  handler::Outcome Unanswered(const SessionPtr& session) ABSL_LOCKS_EXCLUDED(mu_);
  handler::Outcome Postponed() ABSL_LOCKS_EXCLUDED(mu_);

  // `session` is of no use any more: delays the next one, once for each session.
  void Drop(const SessionPtr& session, handler::RestartReason reason, const std::string& why)
      ABSL_LOCKS_EXCLUDED(mu_);
  void HoldBackLocked(handler::RestartReason reason, const std::string& why, bool is_refused)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Logs why_, unless that is no news.
  void LogLocked(absl::Duration delay) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Succeeded() ABSL_LOCKS_EXCLUDED(mu_);

  const handler::JobSchema schema_;
  const GrpcOptions options_;
  const std::shared_ptr<::grpc::Channel> channel_;

  base::Mutex mu_;
  base::CondVar changed_;
  SessionPtr session_ ABSL_GUARDED_BY(mu_);  // null until needed, and after a failure
  bool opening_ ABSL_GUARDED_BY(mu_) = false;
  int failures_ ABSL_GUARDED_BY(mu_) = 0;      // in a row
  bool refused_ ABSL_GUARDED_BY(mu_) = false;  // the last failure was one of the job as such
  absl::Duration next_call_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  std::string why_ ABSL_GUARDED_BY(mu_);     // of the last failure
  std::string logged_ ABSL_GUARDED_BY(mu_);  // of why_, the last that was
  absl::Duration logged_at_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  // When a server of the wanted version must be there; infinite: none is missing; nullopt: it was
  // not called yet.
  std::optional<absl::Duration> server_due_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::handler::grpc
