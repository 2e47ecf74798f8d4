#include "muster/os/spawner.h"

#include <utility>

namespace muster::os {

Spawner::Spawner() : thread_([this] { Run(); }) {}

Spawner::~Spawner() {
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

absl::StatusOr<std::unique_ptr<ChildProcess>> Spawner::Start(const ProcessSpec& program) {
  Order order{&program, std::nullopt};
  base::MutexLock lock(&mu_);
  while (order_ != nullptr) changed_.Wait(&mu_);
  order_ = &order;
  changed_.NotifyAll();
  while (!order.result) changed_.Wait(&mu_);
  return *std::move(order.result);
}

void Spawner::Run() {
  base::MutexLock lock(&mu_);
  while (true) {
    while (order_ == nullptr && !stopping_) changed_.Wait(&mu_);
    if (order_ == nullptr) return;
    // The lock is kept: starts are rare, and one at a time is what this class is for.
    order_->result.emplace(ChildProcess::Start(*order_->program));
    order_ = nullptr;
    changed_.NotifyAll();
  }
}

}  // namespace muster::os
