// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/call/call_service.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "grpcpp/support/async_unary_call.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"

namespace muster::initiator::call {
namespace {

// So long before its caller's deadline a call is answered: the answer needs its way back.
constexpr absl::Duration kMostForTheWayBack = absl::Milliseconds(200);

absl::Status Validate(const v1::CallRequest& request) {
  if (request.job().empty()) return rpc::BadField("job", "must not be empty");
  return absl::OkStatus();
}

}  // namespace

// Exactly one of the gatherer's answer, a refusal and Leave leads to Finish.
class CallService::Caller final : public rpc::QueuedCall {
 public:
  explicit Caller(CallService* service) : QueuedCall(service), service_(service) {
    context_.AsyncNotifyWhenDone(&over_);
    service_->RequestCall(&context_, &request_, &writer_, service_->queue(), service_->queue(),
                          &begun_);
  }

  void On(Event event, bool) override {
    switch (event) {
      case Event::kBegun:
        if (service_->expects_more()) new Caller(service_);
        Begin();
        return;
      case Event::kWritten:  // there is only Finish
        break;
      case Event::kFinished:
        is_finished_ = true;
        break;
      case Event::kOver:
        is_over_ = true;
        if (number_.has_value() && service_->gatherer_->Leave(*number_)) {
          Finish(absl::CancelledError("the caller has gone"));
        }
        break;
    }
    if (is_finished_ && is_over_) delete this;
  }

 private:
  void Begin() {
    const absl::Status late =
        rpc::RefuseIfLate(absl::FromChrono(context_.deadline()), service_->clock_->Now());
    const absl::Status wrong = late.ok() ? Validate(request_) : late;
    if (!wrong.ok()) return Finish(wrong);
    number_ = service_->gatherer_->Add(
        std::move(request_), AnswerBy(),
        [this](absl::StatusOr<v1::CallResponse> answer) { Finish(std::move(answer)); });
  }

  absl::Duration AnswerBy() const {
    const absl::Time deadline = absl::FromChrono(context_.deadline());
    const absl::Duration left = deadline - service_->clock_->Now();
    return base::MonotonicAt(*service_->clock_, deadline) - std::min(left / 10, kMostForTheWayBack);
  }

  // After it, the queue's thread may delete the object at any time.
  void Finish(absl::StatusOr<v1::CallResponse> answer) {
    if (!answer.ok()) {
      writer_.FinishWithError(rpc::ToGrpc(rpc::WithAdvice(answer.status())), &finished_);
    } else {
      writer_.Finish(*answer, grpc::Status::OK, &finished_);
    }
  }

  CallService* const service_;  // not owned
  v1::CallRequest request_;
  grpc::ServerAsyncResponseWriter<v1::CallResponse> writer_{&context_};
  // Of the queue's thread.
  std::optional<uint64_t> number_;  // once the gatherer has it
  bool is_finished_ = false;
  bool is_over_ = false;
};

CallService::~CallService() { End(); }

void CallService::ExpectFirst() { new Caller(this); }

void CallService::Drain() {
  QueuedCalls::Drain();
  gatherer_->Drain();
}

}  // namespace muster::initiator::call
