// SPDX-License-Identifier: Apache-2.0

// Gang: threads that start together, time and again.
#pragma once

#include <barrier>
#include <chrono>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace muster::queue_bench {

// Used by one thread.
class Gang {
 public:
  explicit Gang(int size);
  ~Gang();
  Gang(const Gang&) = delete;
  Gang& operator=(const Gang&) = delete;

  // Runs work(0) … work(size - 1) at once, each on its own thread. Returns the seconds from the
  // begin of the first to the end of the last; waking the threads does not count.
  double Run(const std::function<void(int)>& work);

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Worked {
    Time began;
    Time ended;
  };

  void Serve(size_t member);

  // Between the two barriers the fields below belong to the members, otherwise to the caller of
  // Run.
  std::barrier<> start_;
  std::barrier<> done_;
  const std::function<void(int)>* work_ = nullptr;  // nullptr: the members end
  std::vector<Worked> worked_;
  std::vector<std::thread> members_;
};

}  // namespace muster::queue_bench
