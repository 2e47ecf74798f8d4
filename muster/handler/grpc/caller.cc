// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/grpc/caller.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/retry.h"
#include "muster/base/text.h"
#include "muster/handler/grpc/messages.h"
#include "muster/os/process_limits.h"

namespace muster::handler::grpc {
namespace {

using handler::Outcome;
using handler::RestartReason;
using handler::Results;
using handler::WorkItem;

constexpr size_t kMaxWhyBytes = 768;

// Of a session that this side has not given up.
RestartReason ReasonOf(const SessionEnd& end) {
  return end.kind == SessionEnd::Kind::kStopped ? RestartReason::kFinished : RestartReason::kEnded;
}

}  // namespace

Caller::Caller(handler::JobSchema schema, GrpcOptions options,
               std::shared_ptr<::grpc::Channel> channel)
    : schema_(std::move(schema)), options_(std::move(options)), channel_(std::move(channel)) {}

Caller::~Caller() {
  SessionPtr session;
  {
    base::MutexLock lock(&mu_);
    session = std::move(session_);
  }
  if (session != nullptr) session->End(options_.end_grace);
}

Outcome Caller::Process(const WorkItem& item, Results& results) {
  if (item.stop_token().stop_requested()) return Outcome::Release();
  if (Allowed(item) <= absl::ZeroDuration()) return Outcome::Retry({}, "its deadline has passed");
  v1::WorkRequest request = EncodeItem(schema_, item, results);
  if (const size_t bytes = request.ByteSizeLong(); bytes > kMaxMessageBytes - 256) {
    return Outcome::Dead(absl::StrCat("as a message the item has ", bytes,
                                      " bytes, and gRPC takes ", kMaxMessageBytes,
                                      ": make the job's items smaller"));
  }
  auto place = FindSlot(item);
  if (auto* outcome = std::get_if<Outcome>(&place)) return std::move(*outcome);
  const SessionPtr& session = std::get<SessionPtr>(place);
  // Only now: to wait for a place is no item's fault and must not eat its time.
  const absl::Duration allowed = Allowed(item);
  SetDeadline(allowed, options_.clock->Now(), request.mutable_item());
  const absl::Duration deadline = options_.clock->Monotonic() + allowed;
  Reply reply = session->Ask(request, deadline, item.stop_token());
  return Settle(session, reply, item, allowed, results);
}

absl::Duration Caller::Allowed(const WorkItem& item) const {
  return std::min(options_.deadline, item.deadline() - options_.clock->Now());
}

std::variant<Caller::SessionPtr, Outcome> Caller::FindSlot(const WorkItem& item) {
  const absl::Duration until = options_.clock->Monotonic() + Allowed(item);
  while (true) {
    auto found = AwaitSession(item, until);
    if (std::holds_alternative<Outcome>(found)) return found;
    const SessionPtr& session = std::get<SessionPtr>(found);
    const absl::Status place = session->AcquireSlot(until, item.stop_token());
    if (place.ok() && Allowed(item) > absl::ZeroDuration()) return found;
    if (place.ok()) session->ReleaseSlot();
    if (absl::IsCancelled(place)) return Outcome::Release();
    if (!absl::IsAborted(place)) {
      return Outcome::Defer({}, "the handler has more items than it can take at a time");
    }
    const SessionEnd end = session->end();
    Drop(session, ReasonOf(end), end.why);
  }
}

std::variant<Caller::SessionPtr, Outcome> Caller::AwaitSession(const WorkItem& item,
                                                               absl::Duration until) {
  std::stop_source waiting;
  const auto end_wait = [&waiting] { waiting.request_stop(); };
  const std::stop_callback on_end(waiting.get_token(), base::WakeAll{&mu_, &changed_});
  const std::stop_callback on_stop(item.stop_token(), end_wait);
  const std::stop_callback on_drain(options_.draining, end_wait);
  SessionPtr over;  // dies after the lock is let go
  base::MutexLock lock(&mu_);
  while (true) {
    if (item.stop_token().stop_requested()) return Outcome::Release();
    if (session_ != nullptr && !session_->over()) return session_;
    if (session_ != nullptr) {
      over = session_;
      const SessionEnd end = over->end();
      HoldBackLocked(ReasonOf(end), end.why, /*is_refused=*/false);
      continue;
    }
    // The server may be gone for good, with the job's definition that named it.
    if (waiting.stop_requested()) return Outcome::Release();
    const absl::Duration now = options_.clock->Monotonic();
    // A worker that waited here for a refusal to end would delay the process that stops working for
    // the job because of the refusal.
    if (now >= until || (refused_ && next_call_ > now)) {
      return Outcome::Defer(std::max(next_call_ - now, absl::ZeroDuration()),
                            absl::StrCat("the worker waits for the handler: ", why_));
    }
    if (!opening_ && next_call_ <= now) {
      opening_ = true;
      mu_.Unlock();
      SessionPtr opened = Open(waiting.get_token());
      mu_.Lock();
      opening_ = false;
      session_ = std::move(opened);
      changed_.NotifyAll();
      continue;
    }
    options_.clock->WaitUntil(&changed_, &mu_, opening_ ? until : std::min(until, next_call_));
  }
}

Caller::SessionPtr Caller::Open(const std::stop_token& stop) {
  const absl::Duration begin = options_.clock->Monotonic();
  {
    base::MutexLock lock(&mu_);
    if (!server_due_.has_value()) server_due_ = begin + options_.server_patience;
  }
  auto session = std::make_shared<Session>(
      channel_, EncodeHello(schema_, options_.parameters, options_.processor), options_.clock);
  const absl::StatusOr<v1::Ready> ready = session->AwaitReady(begin + options_.ready_timeout, stop);
  if (absl::IsCancelled(ready.status())) return nullptr;
  const std::optional<Trouble> trouble = TroubleOf(*session, ready);
  NoteServer(trouble, begin);
  if (trouble.has_value()) {
    Tell(*trouble);
    base::MutexLock lock(&mu_);
    HoldBackLocked(RestartReason::kNotStarted, trouble->why, trouble->is_refused);
    return nullptr;
  }
  base::Log(base::kInfo, "handler server called",
            {{"job", schema_.job},
             {"address", options_.address},
             {"name", ready->name()},
             {"version", ready->version()},
             {"concurrency", ready->concurrency()}});
  if (options_.health != nullptr) options_.health->Works();
  return session;
}

std::optional<Caller::Trouble> Caller::TroubleOf(Session& session,
                                                 const absl::StatusOr<v1::Ready>& ready) {
  // The server itself may answer that something behind it cannot be connected to.
  const bool is_connected = channel_->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY;
  if (absl::IsAborted(ready.status())) {
    const SessionEnd end = session.end();
    if (end.kind == SessionEnd::Kind::kNoThread) {
      return Trouble{end.why, /*is_refused=*/false, /*is_unreached=*/true,
                     /*is_other_server=*/false, os::kRaiseThreadLimits};
    }
    return Trouble{end.why, end.kind == SessionEnd::Kind::kRefused,
                   end.kind == SessionEnd::Kind::kUnreached && !is_connected,
                   end.kind == SessionEnd::Kind::kOther};
  }
  if (!ready.ok()) {
    const std::string within =
        absl::StrCat(" within ", absl::FormatDuration(options_.ready_timeout));
    if (is_connected) return Trouble{absl::StrCat("was not ready", within)};
    return Trouble{absl::StrCat("cannot be reached: no server there has answered", within),
                   /*is_refused=*/false, /*is_unreached=*/true};
  }
  std::optional<std::string> misfit = Misfit(*ready);
  if (!misfit.has_value()) return std::nullopt;
  session.End(options_.end_grace);
  return Trouble{*std::move(misfit), /*is_refused=*/false, /*is_unreached=*/false,
                 /*is_other_server=*/true};
}

void Caller::NoteServer(const std::optional<Trouble>& trouble, absl::Duration begin) {
  base::MutexLock lock(&mu_);
  if (trouble.has_value() && trouble->is_unreached) return;
  const bool is_other = trouble.has_value() && trouble->is_other_server;
  server_due_ = is_other ? std::min(*server_due_, begin + options_.server_patience)
                         : absl::InfiniteDuration();
}

void Caller::Tell(const Trouble& trouble) {
  const std::string what = absl::StrCat("the handler at ", options_.address, " ", trouble.why);
  if (options_.health != nullptr) options_.health->Note(what);
  if (trouble.is_refused && options_.on_refused) {
    options_.on_refused(absl::FailedPreconditionError(absl::StrCat("the handler ", trouble.why)));
  }
  if (!options_.on_no_server || !IsGivenUp()) return;
  const std::string remedy = trouble.is_other_server ? absl::StrCat("start a server of version ",
                                                                    options_.version, " there")
                                                     : trouble.remedy;
  options_.on_no_server(absl::UnavailableError(absl::StrCat(what, "; ", remedy)));
}

bool Caller::IsGivenUp() {
  base::MutexLock lock(&mu_);
  return options_.clock->Monotonic() >= *server_due_;
}

std::optional<std::string> Caller::Misfit(const v1::Ready& ready) const {
  if (ready.version() == options_.version) return std::nullopt;
  return absl::StrCat("has version ", base::Printable(ready.version(), kMaxReadyTextBytes),
                      ", but the job wants version ", options_.version);
}

Outcome Caller::Settle(const SessionPtr& session, const Reply& reply, const WorkItem& item,
                       absl::Duration allowed, Results& results) {
  std::string why;
  RestartReason reason = RestartReason::kAnswer;
  switch (reply.kind) {
    case Reply::Kind::kInterrupted:
      return Outcome::Release();
    case Reply::Kind::kAskedAlready:
      return Outcome::Defer({}, "the same item is being worked on here already");
    case Reply::Kind::kOver:
      return Unanswered(session);
    case Reply::Kind::kLate:
      why = absl::StrCat("gave no answer within ", absl::FormatDuration(allowed));
      reason = RestartReason::kDeadline;
      break;
    case Reply::Kind::kAnswered: {
      absl::StatusOr<Outcome> outcome = DecodeAnswer(reply.answer, schema_, item, results);
      if (outcome.ok()) {
        Succeeded();
        return *std::move(outcome);
      }
      if (absl::IsOutOfRange(outcome.status())) {
        Succeeded();
        return Outcome::Unfit(std::string(outcome.status().message()));
      }
      why = absl::StrCat("gave an answer that is refused: ", outcome.status().message());
      break;
    }
  }
  // Others learn of it by the cancellation, and the first who drops it says why.
  Drop(session, reason, why);
  session->Cancel(absl::StrCat("was given up over item ", item.id(), ": it ", why));
  return Outcome::Retry({}, absl::StrCat("the handler ", why));
}

Outcome Caller::Unanswered(const SessionPtr& session) {
  const SessionEnd end = session->end();
  Drop(session, ReasonOf(end), end.why);
  if (end.kind != SessionEnd::Kind::kFailed) return Postponed();
  return Outcome::Retry({}, absl::StrCat("the handler ", end.why));
}

Outcome Caller::Postponed() {
  base::MutexLock lock(&mu_);
  const absl::Duration left = next_call_ - options_.clock->Monotonic();
  return Outcome::Defer(std::max(left, absl::ZeroDuration()),
                        absl::StrCat("the handler is called anew: ", why_));
}

void Caller::Drop(const SessionPtr& session, RestartReason reason, const std::string& why) {
  base::MutexLock lock(&mu_);
  if (session_ == session) HoldBackLocked(reason, why, /*is_refused=*/false);
}

void Caller::HoldBackLocked(RestartReason reason, const std::string& why, bool is_refused) {
  if (options_.restarts != nullptr) options_.restarts->Note(reason);
  session_ = nullptr;
  refused_ = is_refused;
  why_ = base::Printable(absl::StrCat("it ", why), kMaxWhyBytes);
  const absl::Duration now = options_.clock->Monotonic();
  ++failures_;
  absl::Duration delay = is_refused ? options_.max_hold_back
                                    : base::ExponentialBackoff(failures_, options_.first_hold_back,
                                                               options_.max_hold_back);
  // While a server is missing, the next try comes no later than server_due_, after which
  // on_no_server is due.
  if (options_.on_no_server && *server_due_ > now) delay = std::min(delay, *server_due_ - now);
  next_call_ = now + delay;
  changed_.NotifyAll();
  LogLocked(delay);
}

void Caller::LogLocked(absl::Duration delay) {
  const absl::Duration now = options_.clock->Monotonic();
  if (why_ == logged_ && now - logged_at_ < kTellAgainAfter) return;
  logged_ = why_;
  logged_at_ = now;
  base::Log(refused_ ? base::kError : base::kWarning, "handler server failed",
            {{"job", schema_.job},
             {"address", options_.address},
             {"why", why_},
             {"failures_in_a_row", failures_},
             {"next_call_after", absl::FormatDuration(delay)}});
}

void Caller::Succeeded() {
  base::MutexLock lock(&mu_);
  failures_ = 0;
  logged_.clear();
}

}  // namespace muster::handler::grpc
