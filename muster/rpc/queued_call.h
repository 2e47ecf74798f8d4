// SPDX-License-Identifier: Apache-2.0

// QueuedCall: a call that holds no thread while it waits, because it runs over a completion queue.
#pragma once

#include "grpcpp/completion_queue.h"

namespace muster::rpc {

// One call, from when it is waited for: it deletes itself when it is over, on the queue's thread.
class QueuedCall {
 public:
  enum class Event { kBegun, kWritten, kFinished, kOver };
  // What the queue hands back when a step of the call is done.
  struct Tag {
    QueuedCall* call;
    Event event;
  };

  virtual ~QueuedCall() = default;

  // Not `ok`: what was begun did not come to its end.
  virtual void On(Event event, bool ok) = 0;
};

// Hands what `queue` gives back to its calls, until the queue has been shut down and is empty.
inline void RunCalls(grpc::ServerCompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) {
    const QueuedCall::Tag done = *static_cast<QueuedCall::Tag*>(tag);
    done.call->On(done.event, ok);
  }
}

}  // namespace muster::rpc
