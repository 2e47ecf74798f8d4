// WorkerClient: calls of many processors at a time, of which none waits for another.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/mutex.h"
#include "muster/rpc/channel.h"
#include "muster/v1/worker_service.grpc.pb.h"

namespace muster::scaling::actuator::threads {

// One processor's listeners of a job; an empty job: all of them.
struct WorkerCall {
  enum class Verb { kQuery, kPark, kLetGo, kSetTasks };

  std::string address;
  std::string job;
  Verb verb = Verb::kQuery;
  int tasks = 0;  // kSetTasks
};

// What it answered; a query the phase, too.
struct WorkerAnswer {
  absl::Status status;
  v1::ListenerPhase phase = v1::LISTENER_PHASE_UNSPECIFIED;
};

// Thread-safe.
class WorkerClient {
 public:
  WorkerClient(rpc::ChannelOptions channel, absl::Duration limit);

  // Answers in the order of `calls`, once all have answered or `limit` has passed, which is
  // DeadlineExceeded. Nothing is tried again.
  std::vector<WorkerAnswer> Make(const std::vector<WorkerCall>& calls);

  // Lets go of the connections to all other processors.
  void KeepOnly(const std::vector<std::string>& addresses);
  size_t connections() const;

 private:
  using Stub = v1::WorkerService::Stub;

  // Shared with calls that run while the processor is forgotten.
  absl::StatusOr<std::shared_ptr<Stub>> StubOf(const std::string& address);

  rpc::ChannelOptions channel_;  // as it was made
  const absl::Duration limit_;

  mutable base::Mutex mu_;
  std::map<std::string, std::shared_ptr<Stub>> stubs_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::scaling::actuator::threads
