// Caller: the calls to one handler server for one job, one after the other, on which all workers of
// a process put their items.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "muster/base/mutex.h"
#include "muster/handler/grpc/grpc_handler.h"
#include "muster/handler/grpc/session.h"
#include "muster/handler/handler.h"
#include "muster/v1/handler_service.pb.h"

namespace muster::handler::grpc {

// Thread-safe.
class Caller {
 public:
  Caller(handler::JobSchema schema, GrpcOptions options, std::shared_ptr<::grpc::Channel> channel);
  // Ends the call that there is. No item is being processed.
  ~Caller();
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  handler::Outcome Process(const handler::WorkItem& item, handler::Results& results);

 private:
  using SessionPtr = std::shared_ptr<Session>;

  // Completes "the handler …".
  struct Obstacle {
    std::string why;
    bool is_refused = false;    // the job as such
    bool is_unreached = false;  // no connection came to be
  };

  // How long the item may take from now on.
  absl::Duration Allowed(const handler::WorkItem& item) const;

  // A session with a place for the item, or what becomes of the item without one.
  std::variant<SessionPtr, handler::Outcome> FindSlot(const handler::WorkItem& item);
  // The session that there is, opened if need be; it may be over a moment later.
  std::variant<SessionPtr, handler::Outcome> AwaitSession(const handler::WorkItem& item,
                                                          absl::Duration until);
  // Opens one; who calls it has set opening_.
  SessionPtr Open(const std::stop_token& stop);
  // Why a session cannot be used that has come to `ready`, or to none, if it cannot.
  std::optional<Obstacle> ObstacleOf(Session& session, const absl::StatusOr<v1::Ready>& ready);
  // Why one that has said `ready` cannot.
  std::optional<std::string> Misfit(const v1::Ready& ready) const;
  // Whom it concerns hears of it.
  void Tell(const Obstacle& obstacle);
  // Nobody has ever been reached, for longer than that may take.
  bool IsGivenUp();

  handler::Outcome Settle(const SessionPtr& session, const Reply& reply,
                          const handler::WorkItem& item, absl::Duration allowed,
                          handler::Results& results);
  // What becomes of an item that was unanswered when its session was over.
  handler::Outcome Unanswered(const SessionPtr& session);
  handler::Outcome Postponed();

  // `session` can be used no longer: holds the next one back, once for each session.
  void Drop(const SessionPtr& session, const std::string& why);
  void HoldBackLocked(const std::string& why, bool is_refused) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Logs why_, unless that is no news.
  void LogLocked(absl::Duration delay) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Succeeded();

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
  bool reached_ ABSL_GUARDED_BY(mu_) = false;                    // a connection has come to be
  std::optional<absl::Duration> reach_by_ ABSL_GUARDED_BY(mu_);  // nullopt: not called yet
};

}  // namespace muster::handler::grpc
