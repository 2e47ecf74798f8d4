#include "muster/handler/grpc/caller.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/printable.h"
#include "muster/handler/grpc/messages.h"

namespace muster::handler::grpc {
namespace {

using handler::Outcome;
using handler::Results;
using handler::WorkItem;

constexpr size_t kMaxWhyBytes = 768;
// 2^20 × any delay is above any maximum; further doubling would overflow.
constexpr int kMaxDoublings = 20;

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
    Drop(session, session->end().why);
  }
}

std::variant<Caller::SessionPtr, Outcome> Caller::AwaitSession(const WorkItem& item,
                                                               absl::Duration until) {
  const std::stop_callback on_stop(item.stop_token(), [this] {
    base::MutexLock lock(&mu_);
    changed_.NotifyAll();
  });
  SessionPtr over;  // dies after the lock is let go
  base::MutexLock lock(&mu_);
  while (true) {
    if (item.stop_token().stop_requested()) return Outcome::Release();
    if (session_ != nullptr && !session_->over()) return session_;
    if (session_ != nullptr) {
      over = session_;
      HoldBackLocked(over->end().why, /*is_refused=*/false);
      continue;
    }
    const absl::Duration now = options_.clock->Monotonic();
    // Who waits for a refusal to end holds up those who stop working for the job because of it.
    if (now >= until || (refused_ && next_call_ > now)) {
      return Outcome::Defer(std::max(next_call_ - now, absl::ZeroDuration()),
                            absl::StrCat("the handler is waited for: ", why_));
    }
    if (!opening_ && next_call_ <= now) {
      opening_ = true;
      mu_.Unlock();
      SessionPtr opened = Open(item.stop_token());
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
    if (!reach_by_.has_value()) reach_by_ = begin + options_.reach_patience;
  }
  auto session = std::make_shared<Session>(
      channel_, EncodeHello(schema_, options_.parameters, options_.processor), options_.clock);
  const absl::StatusOr<v1::Ready> ready = session->AwaitReady(begin + options_.ready_timeout, stop);
  if (absl::IsCancelled(ready.status())) return nullptr;
  const std::optional<Obstacle> obstacle = ObstacleOf(*session, ready);
  if (!obstacle.has_value() || !obstacle->is_unreached) {
    base::MutexLock lock(&mu_);
    reached_ = true;
  }
  if (obstacle.has_value()) {
    Tell(*obstacle);
    base::MutexLock lock(&mu_);
    HoldBackLocked(obstacle->why, obstacle->is_refused);
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

std::optional<Caller::Obstacle> Caller::ObstacleOf(Session& session,
                                                   const absl::StatusOr<v1::Ready>& ready) {
  // A server may say of its own that something else cannot be connected to.
  const bool is_connected = channel_->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY;
  if (absl::IsAborted(ready.status())) {
    const SessionEnd end = session.end();
    return Obstacle{end.why, end.kind == SessionEnd::Kind::kRefused,
                    end.kind == SessionEnd::Kind::kUnreached && !is_connected};
  }
  if (!ready.ok()) {
    const std::string within =
        absl::StrCat(" within ", absl::FormatDuration(options_.ready_timeout));
    if (is_connected) return Obstacle{absl::StrCat("was not ready", within)};
    return Obstacle{absl::StrCat("cannot be reached: nobody there has answered", within),
                    /*is_refused=*/false, /*is_unreached=*/true};
  }
  std::optional<std::string> misfit = Misfit(*ready);
  if (!misfit.has_value()) return std::nullopt;
  session.End(options_.end_grace);
  return Obstacle{*std::move(misfit)};
}

void Caller::Tell(const Obstacle& obstacle) {
  const std::string what = absl::StrCat("the handler at ", options_.address, " ", obstacle.why);
  if (options_.health != nullptr) options_.health->Note(what);
  if (obstacle.is_refused && options_.on_refused) {
    options_.on_refused(absl::FailedPreconditionError(absl::StrCat("the handler ", obstacle.why)));
  }
  if (options_.on_unreached && IsGivenUp()) options_.on_unreached(absl::UnavailableError(what));
}

bool Caller::IsGivenUp() {
  base::MutexLock lock(&mu_);
  return !reached_ && options_.clock->Monotonic() >= *reach_by_;
}

std::optional<std::string> Caller::Misfit(const v1::Ready& ready) const {
  if (ready.version() == options_.version) return std::nullopt;
  return absl::StrCat("has version ", base::Printable(ready.version(), kMaxReadyTextBytes),
                      ", but the job wants version ", options_.version);
}

Outcome Caller::Settle(const SessionPtr& session, const Reply& reply, const WorkItem& item,
                       absl::Duration allowed, Results& results) {
  std::string why;
  switch (reply.kind) {
    case Reply::Kind::kInterrupted:
      return Outcome::Release();
    case Reply::Kind::kAskedAlready:
      return Outcome::Defer({}, "the same item is being worked on here already");
    case Reply::Kind::kOver:
      return Unanswered(session);
    case Reply::Kind::kLate:
      why = absl::StrCat("gave no answer within ", absl::FormatDuration(allowed));
      break;
    case Reply::Kind::kAnswered: {
      absl::StatusOr<Outcome> outcome = DecodeAnswer(reply.answer, schema_, item, results);
      if (outcome.ok()) {
        Succeeded();
        return *std::move(outcome);
      }
      why = absl::StrCat("gave an answer that is refused: ", outcome.status().message());
      break;
    }
  }
  session->Cancel(absl::StrCat("was given up over item ", item.id(), ": it ", why));
  Drop(session, why);
  return Outcome::Retry({}, absl::StrCat("the handler ", why));
}

Outcome Caller::Unanswered(const SessionPtr& session) {
  const SessionEnd end = session->end();
  Drop(session, end.why);
  if (end.kind != SessionEnd::Kind::kFailed) return Postponed();
  return Outcome::Retry({}, absl::StrCat("the handler ", end.why));
}

Outcome Caller::Postponed() {
  base::MutexLock lock(&mu_);
  const absl::Duration left = next_call_ - options_.clock->Monotonic();
  return Outcome::Defer(std::max(left, absl::ZeroDuration()),
                        absl::StrCat("the handler is called anew: ", why_));
}

void Caller::Drop(const SessionPtr& session, const std::string& why) {
  base::MutexLock lock(&mu_);
  if (session_ == session) HoldBackLocked(why, /*is_refused=*/false);
}

void Caller::HoldBackLocked(const std::string& why, bool is_refused) {
  session_ = nullptr;
  refused_ = is_refused;
  why_ = base::Printable(absl::StrCat("it ", why), kMaxWhyBytes);
  const absl::Duration now = options_.clock->Monotonic();
  absl::Duration delay =
      is_refused ? options_.max_hold_back
                 : std::min(options_.first_hold_back * (1 << std::min(failures_, kMaxDoublings)),
                            options_.max_hold_back);
  // Who gives it up wants one more try at the end, and no longer a wait.
  if (options_.on_unreached && !reached_ && *reach_by_ > now) {
    delay = std::min(delay, *reach_by_ - now);
  }
  ++failures_;
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
