// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/grpc/session.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/text.h"
#include "muster/handler/grpc/grpc_handler.h"
#include "muster/handler/grpc/messages.h"

namespace muster::handler::grpc {
namespace {

// How much of a handler's own words is passed on.
constexpr size_t kWordsBytes = 256;

// Without connecting: that happens with the first write, on a thread that may wait.
auto Call(v1::HandlerService::Stub* stub, ::grpc::ClientContext* context) {
  context->set_initial_metadata_corked(true);
  return stub->Work(context);
}

// gRPC gives the code Unavailable to a broken connection, too; only the message distinguishes it
// from a handler's own Unavailable. A handler that sends the same message means the same.
bool IsBrokenConnection(const std::string& message) {
  for (const char* const words :
       {"Socket closed", "Connection reset", "Broken pipe", "Connection timed out",
        "Transport closed", "Endpoint read failed", "keepalive", "ping timeout"}) {
    if (absl::StrContains(message, words)) return true;
  }
  return false;
}

bool IsNoConnection(const std::string& message) {
  for (const char* const words :
       {"failed to connect", "Failed to connect", "DNS resolution failed"}) {
    if (absl::StrContains(message, words)) return true;
  }
  return false;
}

// The resolver asks for addresses of both kinds at once and names the answer that came last, now
// one and now the other. Without these details the same failure has the same message.
std::string WithoutResolverDetails(const std::string& message) {
  return message.substr(0, message.find(": C-ares status"));
}

}  // namespace

Session::Session(std::shared_ptr<::grpc::Channel> channel, v1::WorkRequest hello,
                 base::Clock* clock)
    : clock_(clock),
      stub_(v1::HandlerService::NewStub(std::move(channel))),
      stream_(Call(stub_.get(), &context_)) {
  outbox_.push_back(std::move(hello));
  // Caught here: what is thrown further up counts as the handler's failure at its item.
  try {
    writer_ = std::thread([this] { Write(); });
    reader_ = std::thread([this] { Read(); });
  } catch (const std::system_error& error) {
    EndWithoutThread(error.what());
  }
}

Session::~Session() {
  Cancel("is not needed any more");
  if (reader_.joinable()) reader_.join();
}

void Session::EndWithoutThread(const char* why) {
  context_.TryCancel();
  {
    base::MutexLock lock(&mu_);
    reading_ended_ = true;
    outgoing_.NotifyAll();
  }
  if (writer_.joinable()) writer_.join();
  stream_->Finish();  // as gRPC demands; how it ended is known
  base::MutexLock lock(&mu_);
  end_ = std::make_unique<SessionEnd>(
      SessionEnd{SessionEnd::Kind::kNoThread,
                 absl::StrCat("cannot be called: no thread for the call (", why, ")")});
}

absl::StatusOr<v1::Ready> Session::AwaitReady(absl::Duration deadline,
                                              const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, base::WakeAll{&mu_, &changed_});
  base::MutexLock lock(&mu_);
  while (true) {
    if (end_ != nullptr) return absl::AbortedError(end_->why);
    if (ready_ != nullptr) return *ready_;
    if (stop.stop_requested()) return absl::CancelledError("stopped");
    if (clock_->WaitUntil(&changed_, &mu_, deadline)) {
      return absl::DeadlineExceededError("said nothing in time");
    }
  }
}

absl::Status Session::AcquireSlot(absl::Duration deadline, const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, base::WakeAll{&mu_, &changed_});
  base::MutexLock lock(&mu_);
  while (true) {
    if (end_ != nullptr || cancelled_) return absl::AbortedError("the session is over");
    if (stop.stop_requested()) return absl::CancelledError("stopped");
    MUSTER_CHECK(ready_ != nullptr, "slots taken ", slots_taken_, ", and the handler not ready");
    if (slots_taken_ < ready_->concurrency()) break;
    if (clock_->WaitUntil(&changed_, &mu_, deadline)) {
      return absl::DeadlineExceededError("no place in time");
    }
  }
  ++slots_taken_;
  return absl::OkStatus();
}

void Session::ReleaseSlot() {
  base::MutexLock lock(&mu_);
  MUSTER_CHECK(slots_taken_ > 0, "slots taken ", slots_taken_);
  --slots_taken_;
  changed_.NotifyAll();
}

Reply Session::Ask(const v1::WorkRequest& item, absl::Duration deadline,
                   const std::stop_token& stop) {
  const std::string& name = item.item().item();
  const std::stop_callback on_stop(stop, base::WakeAll{&mu_, &changed_});
  Reply reply;
  base::MutexLock lock(&mu_);
  MUSTER_CHECK(slots_taken_ > 0, "item ", name, " without a slot, taken ", slots_taken_);
  if (asked_.contains(name)) {
    --slots_taken_;
    changed_.NotifyAll();
    return {Reply::Kind::kAskedAlready, {}};
  }
  outbox_.push_back(item);
  outgoing_.NotifyAll();
  asked_[name] = nullptr;
  while (true) {
    if (asked_[name] != nullptr) {
      reply = {Reply::Kind::kAnswered, std::move(*asked_[name])};
      break;
    }
    if (end_ != nullptr) break;
    if (stop.stop_requested()) {
      AbandonLocked(name);
      reply.kind = Reply::Kind::kInterrupted;
      break;
    }
    if (clock_->WaitUntil(&changed_, &mu_, deadline) && asked_[name] == nullptr) {
      reply.kind = Reply::Kind::kLate;
      break;
    }
  }
  asked_.erase(name);
  --slots_taken_;
  changed_.NotifyAll();
  return reply;
}

void Session::AbandonLocked(const std::string& item) {
  outbox_.push_back(EncodeAbandon(item));
  outgoing_.NotifyAll();
  strays_.push_back(item);
  if (strays_.size() > kMaxStrays) strays_.pop_front();
}

void Session::Cancel(std::string why) {
  {
    base::MutexLock lock(&mu_);
    if (end_ != nullptr || std::exchange(cancelled_, true)) return;
    cancel_why_ = std::move(why);
    changed_.NotifyAll();
  }
  context_.TryCancel();
}

void Session::End(absl::Duration grace) {
  const absl::Duration deadline = clock_->Monotonic() + grace;
  base::MutexLock lock(&mu_);
  closing_ = true;
  outgoing_.NotifyAll();
  while (end_ == nullptr && !clock_->WaitUntil(&changed_, &mu_, deadline)) {
  }
}

bool Session::over() const {
  base::MutexLock lock(&mu_);
  return end_ != nullptr || cancelled_;
}

SessionEnd Session::end() const {
  base::MutexLock lock(&mu_);
  if (end_ != nullptr) return *end_;
  return {SessionEnd::Kind::kCancelled, cancel_why_};
}

void Session::Write() {
  base::MutexLock lock(&mu_);
  while (true) {
    while (outbox_.empty() && !closing_ && !reading_ended_) outgoing_.Wait(&mu_);
    if (reading_ended_) return;
    const bool is_last = outbox_.empty();
    v1::WorkRequest request;
    if (!is_last) {
      request = std::move(outbox_.front());
      outbox_.pop_front();
    }
    mu_.Unlock();
    // False: the call has ended; the reader finds out, too.
    const bool is_written = is_last ? stream_->WritesDone() : stream_->Write(request);
    mu_.Lock();
    if (is_last || !is_written) return;
  }
}

void Session::Read() {
  v1::WorkResponse response;
  bool is_refused = false;
  while (!is_refused && stream_->Read(&response)) {
    base::MutexLock lock(&mu_);
    is_refused = !TakeLocked(std::move(response));
    changed_.NotifyAll();
  }
  if (is_refused) context_.TryCancel();
  {
    base::MutexLock lock(&mu_);
    reading_ended_ = true;
    outgoing_.NotifyAll();
  }
  writer_.join();
  const ::grpc::Status status = stream_->Finish();
  base::MutexLock lock(&mu_);
  end_ = std::make_unique<SessionEnd>(EndOfLocked(status));
  changed_.NotifyAll();
}

bool Session::TakeLocked(v1::WorkResponse response) {
  switch (response.step_case()) {
    case v1::WorkResponse::kReady:
      return TakeReadyLocked(std::move(*response.mutable_ready()));
    case v1::WorkResponse::kAnswer:
      return TakeAnswerLocked(std::move(*response.mutable_answer()));
    case v1::WorkResponse::STEP_NOT_SET:
      break;
  }
  RefuseLocked("sent a response without a step");
  return false;
}

bool Session::TakeReadyLocked(v1::Ready ready) {
  if (ready_ != nullptr) {
    RefuseLocked("said twice that it is ready");
    return false;
  }
  if (const absl::Status sound = CheckReady(ready); !sound.ok()) {
    RefuseLocked(absl::StrCat("said ready in a way that is refused: ", sound.message()));
    return false;
  }
  ready_ = std::make_unique<v1::Ready>(std::move(ready));
  return true;
}

bool Session::TakeAnswerLocked(v1::HandlerAnswer answer) {
  if (ready_ == nullptr) {
    RefuseLocked("answered before it said that it is ready");
    return false;
  }
  // The late answer of an item that was abandoned and came again is as good as the one to come.
  const auto asked = asked_.find(answer.item());
  if (asked != asked_.end() && asked->second == nullptr) {
    asked->second = std::make_unique<v1::HandlerAnswer>(std::move(answer));
    return true;
  }
  const auto stray = std::find(strays_.begin(), strays_.end(), answer.item());
  if (stray != strays_.end()) {
    strays_.erase(stray);
    return true;
  }
  RefuseLocked(absl::StrCat("answered item '", base::Printable(answer.item(), kWordsBytes),
                            "', which it does not have"));
  return false;
}

void Session::RefuseLocked(std::string why) { refusal_ = std::move(why); }

SessionEnd Session::EndOfLocked(const ::grpc::Status& status) {
  using Kind = SessionEnd::Kind;
  if (!refusal_.empty()) return {Kind::kFailed, refusal_};
  if (cancelled_) return {Kind::kCancelled, cancel_why_};
  if (status.ok()) return {Kind::kStopped, "ended the call"};
  const std::string said = base::Printable(status.error_message(), kWordsBytes);
  switch (status.error_code()) {
    case ::grpc::StatusCode::UNAVAILABLE:
      if (IsNoConnection(status.error_message())) {
        return {ready_ == nullptr ? Kind::kUnreached : Kind::kFailed,
                absl::StrCat("cannot be reached: ", WithoutResolverDetails(said))};
      }
      if (IsBrokenConnection(status.error_message())) {
        return {Kind::kFailed, absl::StrCat("cannot be reached: ", said)};
      }
      return {Kind::kStopped, absl::StrCat("is not available: ", said)};
    case ::grpc::StatusCode::FAILED_PRECONDITION:
      if (ready_ == nullptr) return {Kind::kRefused, absl::StrCat("refuses the job: ", said)};
      break;
    case ::grpc::StatusCode::UNIMPLEMENTED:
      if (ready_ != nullptr) break;
      return {Kind::kOther, absl::StrCat("is a server without muster.v1.HandlerService",
                                         said.empty() ? "" : ": ", said)};
    default:
      break;
  }
  return {Kind::kFailed,
          absl::StrCat("ended the call with code ", status.error_code(), ": ", said)};
}

}  // namespace muster::handler::grpc
