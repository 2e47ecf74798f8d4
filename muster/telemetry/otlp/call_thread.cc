// SPDX-License-Identifier: Apache-2.0
#include "muster/telemetry/otlp/call_thread.h"

#include <thread>
#include <utility>

#include "muster/base/mutex.h"

namespace muster::telemetry {

struct CallThread::State {
  base::Mutex mu;
  base::CondVar changed;
  std::function<bool()> next ABSL_GUARDED_BY(mu);  // empty: there is none
  std::optional<bool> answer ABSL_GUARDED_BY(mu);
  bool is_over ABSL_GUARDED_BY(mu) = false;                               // the thread is to end
  absl::Duration ends_at ABSL_GUARDED_BY(mu) = absl::InfiniteDuration();  // monotonic
};

// The thread is never joined: a call that hangs would keep its joiner waiting, and one that has
// ended leaves it nothing to do but to end.
CallThread::CallThread(base::Clock* clock) : clock_(clock), state_(std::make_shared<State>()) {
  std::thread([state = state_] { Work(state); }).detach();
}

CallThread::~CallThread() {
  base::MutexLock lock(&state_->mu);
  state_->is_over = true;
  state_->changed.NotifyAll();
}

void CallThread::Work(const std::shared_ptr<State>& state) {
  while (true) {
    std::function<bool()> call;
    {
      base::MutexLock lock(&state->mu);
      while (!state->next && !state->is_over) state->changed.Wait(&state->mu);
      if (state->is_over) return;
      call = std::exchange(state->next, nullptr);
    }
    const bool answer = call();
    call = nullptr;  // what it owns goes before the answer is known
    base::MutexLock lock(&state->mu);
    state->answer = answer;
    state->changed.NotifyAll();
  }
}

std::optional<bool> CallThread::Run(std::function<bool()> call) {
  base::MutexLock lock(&state_->mu);
  if (state_->is_over) return std::nullopt;
  state_->answer.reset();
  state_->next = std::move(call);
  state_->changed.NotifyAll();
  while (!state_->answer.has_value()) {
    if (clock_->WaitUntil(&state_->changed, &state_->mu, state_->ends_at) &&
        clock_->Monotonic() >= state_->ends_at && !state_->answer.has_value()) {
      state_->is_over = true;
      state_->next = nullptr;
      return std::nullopt;
    }
  }
  return state_->answer;
}

void CallThread::Close(absl::Duration patience) {
  base::MutexLock lock(&state_->mu);
  if (state_->ends_at != absl::InfiniteDuration()) return;
  state_->ends_at = clock_->Monotonic() + patience;
  state_->changed.NotifyAll();
}

}  // namespace muster::telemetry
