// SPDX-License-Identifier: Apache-2.0

// QueuedCalls: calls of a service that hold no thread while they wait, because they run over a
// completion queue: for streams that stay open for long.
#pragma once

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "grpcpp/completion_queue.h"
#include "grpcpp/server_context.h"
#include "muster/base/mutex.h"

namespace muster::rpc {

class WritingCall;

// Thread-safe, but for Serve and End. Outlives the server.
class QueuedCalls {
 public:
  virtual ~QueuedCalls() = default;  // of a class that has End()ed

  // The server has started: takes calls from `queue` from now on.
  void Serve(std::unique_ptr<grpc::ServerCompletionQueue> queue) ABSL_LOCKS_EXCLUDED(mu_);
  // The server is about to stop: ends the calls, and expects no more. Calling it twice is fine.
  virtual void Drain() ABSL_LOCKS_EXCLUDED(mu_);
  // The server has stopped, or never started. Returns when all calls are over, and the queue is
  // empty. Calling it twice is fine.
  virtual void End() ABSL_LOCKS_EXCLUDED(mu_);

 protected:
  friend class QueuedCall;
  friend class WritingCall;
  // kWrite and kFinish: what a WritingCall has to do.
  enum class Action { kNone, kWrite, kFinish };
  using Step = std::pair<WritingCall*, Action>;

  // Begins to wait for a call of each kind.
  virtual void ExpectFirst() = 0;
  // Whether a call that begins shall wait for the next one of its kind.
  bool expects_more() const ABSL_LOCKS_EXCLUDED(mu_);
  grpc::ServerCompletionQueue* queue() const { return queue_.get(); }

  // The next step of `call`. The caller must do it, after releasing the lock: until then the call
  // stays alive.
  Action NextLocked(WritingCall* call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void Do(const std::vector<Step>& steps);

  mutable base::Mutex mu_;  // also guards what derived classes have, and the state of their calls
  bool draining_ ABSL_GUARDED_BY(mu_) = false;

 private:
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  bool ended_ = false;  // for Serve and End
  base::CondVar call_over_;
  int calls_ ABSL_GUARDED_BY(mu_) = 0;  // those still waited for, too; each deletes itself
  std::thread thread_;
};

// One call, from when it is waited for: it deletes itself when it is over, on the queue's thread.
class QueuedCall {
 public:
  enum class Event { kBegun, kWritten, kFinished, kOver };
  // What the queue hands back when a step of the call is done.
  struct Tag {
    QueuedCall* call;
    Event event;
  };

  // `calls` is not owned.
  explicit QueuedCall(QueuedCalls* calls);
  virtual ~QueuedCall();
  QueuedCall(const QueuedCall&) = delete;
  QueuedCall& operator=(const QueuedCall&) = delete;

  // Not `ok`: what was begun did not come to its end. A call that does not begin has no event.
  virtual void On(Event event, bool ok) = 0;

 protected:
  QueuedCalls* const calls_;  // not owned
  grpc::ServerContext context_;
  Tag begun_{this, Event::kBegun};
  Tag written_{this, Event::kWritten};
  Tag finished_{this, Event::kFinished};
  Tag over_{this, Event::kOver};
};

// One that writes any number of answers. It asks its context to tell of its end with `over_`.
//
// A step is decided under the lock (NextLocked) and done without it. After a decision to write,
// `writing_` stays set, and the call is not finished while it is: so the call, and this object,
// live until the deciding thread has done the write.
class WritingCall : public QueuedCall {
 public:
  using Action = QueuedCalls::Action;

  using QueuedCall::QueuedCall;

  void On(Event event, bool ok) final;

  virtual void Do(Action action) = 0;

 protected:
  friend class QueuedCalls;

  // The caller has come.
  virtual void Begin() = 0;
  // With the lock of `calls_`, while nothing is written.
  virtual Action DecideLocked() = 0;

  // All guarded by the lock of `calls_`.
  bool left_ = false;  // the peer has gone, or is to go

 private:
  bool writing_ = false;
  bool finishing_ = false;  // Finish was decided on
  bool finish_seen_ = false, over_seen_ = false;
};

}  // namespace muster::rpc
