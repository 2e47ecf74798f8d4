// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/queued_calls.h"

namespace muster::rpc {

namespace {

// Hands what `queue` gives back to its calls, until the queue has been shut down and is empty.
void RunCalls(grpc::ServerCompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) {
    const QueuedCall::Tag done = *static_cast<QueuedCall::Tag*>(tag);
    if (done.event == QueuedCall::Event::kBegun && !ok) {
      delete done.call;
    } else {
      done.call->On(done.event, ok);
    }
  }
}

}  // namespace

void QueuedCalls::Serve(std::unique_ptr<grpc::ServerCompletionQueue> queue) {
  queue_ = std::move(queue);
  if (expects_more()) ExpectFirst();
  thread_ = std::thread([this] { RunCalls(queue_.get()); });
}

void QueuedCalls::Drain() {
  base::MutexLock lock(&mu_);
  draining_ = true;
}

// Nothing may be begun on a queue that was shut down, so the calls come to their end before.
void QueuedCalls::End() {
  if (std::exchange(ended_, true) || queue_ == nullptr) return;
  Drain();
  {
    base::MutexLock lock(&mu_);
    while (calls_ > 0) call_over_.Wait(&mu_);
  }
  queue_->Shutdown();
  thread_.join();
}

bool QueuedCalls::expects_more() const {
  base::MutexLock lock(&mu_);
  return !draining_;
}

QueuedCalls::Action QueuedCalls::NextLocked(WritingCall* call) {
  if (call->writing_ || call->finishing_) return Action::kNone;
  const Action action = call->DecideLocked();
  call->writing_ = action == Action::kWrite;
  call->finishing_ = action == Action::kFinish;
  return action;
}

void QueuedCalls::Do(const std::vector<Step>& steps) {
  for (const auto& [call, action] : steps) {
    // One that has nothing to do may be gone by now.
    if (action != Action::kNone) call->Do(action);
  }
}

QueuedCall::QueuedCall(QueuedCalls* calls) : calls_(calls) {
  base::MutexLock lock(&calls_->mu_);
  ++calls_->calls_;
}

QueuedCall::~QueuedCall() {
  base::MutexLock lock(&calls_->mu_);
  if (--calls_->calls_ == 0) calls_->call_over_.NotifyAll();
}

void WritingCall::On(Event event, bool ok) {
  if (event == Event::kBegun) Begin();
  Action action = Action::kNone;
  bool nothing_to_come = false;
  {
    base::MutexLock lock(&calls_->mu_);
    if (event == Event::kWritten) {
      writing_ = false;
      left_ |= !ok;
    }
    finish_seen_ |= event == Event::kFinished;
    over_seen_ |= event == Event::kOver;
    left_ |= over_seen_;
    nothing_to_come = over_seen_ && finish_seen_;
    action = calls_->NextLocked(this);
  }
  Do(action);
  if (nothing_to_come) delete this;
}

}  // namespace muster::rpc
