// Spawner: starts programs from one thread that outlives them all.
#pragma once

#include <memory>
#include <optional>
#include <thread>

#include "absl/status/statusor.h"
#include "muster/base/mutex.h"
#include "muster/os/child_process.h"

namespace muster::os {

// Thread-safe. The kernel ties a program's life to the *thread* that started it; workers' threads
// come and go with the load, and must not take their programs along.
class Spawner {
 public:
  Spawner();
  // Every program that it started must be gone.
  ~Spawner();

  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;

  // As ChildProcess::Start.
  absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const ProcessSpec& program);

 private:
  struct Order {
    const ProcessSpec* program;
    std::optional<absl::StatusOr<std::unique_ptr<ChildProcess>>> result;
  };

  void Run();

  base::Mutex mu_;
  base::CondVar changed_;
  Order* order_ ABSL_GUARDED_BY(mu_) = nullptr;  // on the stack of who waits for it
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace muster::os
