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

  // Runs work(0) … work(size - 1) at once, each on its own thread. Answers the seconds from the
  // first one's beginning to the last one's end: waking the threads is not part of them.
  double Run(const std::function<void(int)>& work);

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Worked {
    Time began;
    Time ended;
  };

  void Serve(size_t member);

  // What is between the two barriers belongs to the members, the rest to the caller of Run.
  std::barrier<> start_;
  std::barrier<> done_;
  const std::function<void(int)>* work_ = nullptr;  // nullptr: go home
  std::vector<Worked> worked_;
  std::vector<std::thread> members_;
};

}  // namespace muster::queue_bench
