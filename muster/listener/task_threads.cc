#include "muster/listener/task_threads.h"

#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::listener {

absl::Status TaskThreads::Start(std::function<void()> task) {
  base::MutexLock lock(&mu_);
  ReapLocked();
  Thread& place = threads_.emplace_back();
  try {
    place.thread = std::thread([&place, task = std::move(task)] {
      task();
      place.ended = true;
    });
  } catch (const std::system_error& error) {
    threads_.pop_back();
    return absl::ResourceExhaustedError(absl::StrCat("no thread for a task: ", error.what()));
  }
  return absl::OkStatus();
}

void TaskThreads::ReapLocked() {
  for (auto place = threads_.begin(); place != threads_.end();) {
    if (!place->ended) {
      ++place;
      continue;
    }
    place->thread.join();
    place = threads_.erase(place);
  }
}

void TaskThreads::Join() {
  std::list<Thread> threads;
  {
    base::MutexLock lock(&mu_);
    threads.swap(threads_);
  }
  for (Thread& place : threads) place.thread.join();
}

}  // namespace muster::listener
