// SPDX-License-Identifier: Apache-2.0
#include "bench/queue_bench/gang.h"

#include <algorithm>

namespace muster::queue_bench {

Gang::Gang(int size) : start_(size + 1), done_(size + 1), worked_(static_cast<size_t>(size)) {
  for (size_t member = 0; member < worked_.size(); ++member) {
    members_.emplace_back([this, member] { Serve(member); });
  }
}

Gang::~Gang() {
  work_ = nullptr;
  start_.arrive_and_wait();
  for (std::thread& member : members_) member.join();
}

double Gang::Run(const std::function<void(int)>& work) {
  work_ = &work;
  start_.arrive_and_wait();
  done_.arrive_and_wait();
  Worked whole = worked_.front();
  for (const Worked& worked : worked_) {
    whole.began = std::min(whole.began, worked.began);
    whole.ended = std::max(whole.ended, worked.ended);
  }
  return std::chrono::duration<double>(whole.ended - whole.began).count();
}

void Gang::Serve(size_t member) {
  while (true) {
    start_.arrive_and_wait();
    if (work_ == nullptr) return;
    worked_[member].began = std::chrono::steady_clock::now();
    (*work_)(static_cast<int>(member));
    worked_[member].ended = std::chrono::steady_clock::now();
    done_.arrive_and_wait();
  }
}

}  // namespace muster::queue_bench
