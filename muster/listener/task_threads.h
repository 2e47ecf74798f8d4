// TaskThreads: the threads of a listener's dequeue tasks. A thread that has ended is joined when
// the next one starts.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <thread>

#include "absl/status/status.h"
#include "muster/base/mutex.h"

namespace muster::listener {

// Thread-safe.
class TaskThreads {
 public:
  TaskThreads() = default;
  TaskThreads(const TaskThreads&) = delete;
  TaskThreads& operator=(const TaskThreads&) = delete;

  // Runs `task` on a thread of its own. ResourceExhausted: there is none.
  absl::Status Start(std::function<void()> task);

  // Returns when all that were started before have ended.
  void Join();

 private:
  struct Thread {
    std::thread thread;
    std::atomic<bool> ended = false;
  };

  void ReapLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Mutex mu_;
  std::list<Thread> threads_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::listener
