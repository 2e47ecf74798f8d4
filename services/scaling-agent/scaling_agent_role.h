// SPDX-License-Identifier: Apache-2.0

// ScalingAgentRole: the scaling agent as its host runs it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/job/job_registry.h"
#include "services/host/host_options.h"
#include "services/host/membership.h"
#include "services/host/role.h"
#include "services/scaling-agent/activity_streams.h"
#include "services/scaling-agent/actuators.h"
#include "services/scaling-agent/agent.h"
#include "services/scaling-agent/agent_metrics.h"
#include "services/scaling-agent/external_scaler_service.h"
#include "services/scaling-agent/scaling_service.h"

namespace CLI {
class App;
}  // namespace CLI

namespace muster::scaling_agent {

struct RoleOptions {
  std::string rules_file;
  RecordingPlace recording;
  ActuatorOptions actuator;
  SpeedOptions speed;
  int max_tasks = 0;  // dequeue tasks of a replica; 0: as many as it has
};

class ScalingAgentRole final : public host::Role {
 public:
  // `clock` is not owned and outlives the role.
  ScalingAgentRole(const host::HostOptions& host, RoleOptions options, base::Clock* clock)
      : host_(host), options_(std::move(options)), clock_(clock), activity_(clock) {}

  absl::Status Open(const host::Stores& stores, const host::Fail& fail) override;
  std::vector<rpc::ServedService> services() override;
  void Drain(absl::Duration grace) override;
  void Close() override;

 private:
  absl::StatusOr<std::unique_ptr<ActuatorHolder>> MakeActuator();
  absl::Status MakeAgent(const host::Stores& stores);
  absl::Status ReadJobs() ABSL_LOCKS_EXCLUDED(mu_);
  // Those of the last time where the store does not answer.
  std::vector<std::string> KnownJobs() ABSL_LOCKS_EXCLUDED(mu_);

  const host::HostOptions host_;
  const RoleOptions options_;
  base::Clock* const clock_;  // not owned

  base::Mutex mu_;
  std::vector<std::string> known_jobs_ ABSL_GUARDED_BY(mu_);

  std::unique_ptr<job::JobRegistry> jobs_;
  std::unique_ptr<host::Membership> membership_;
  std::unique_ptr<ActuatorHolder> actuator_;  // uses membership_
  ActivityStreams activity_;
  std::unique_ptr<Agent> agent_;           // uses activity_
  std::unique_ptr<AgentMetrics> metrics_;  // uses agent_
  std::unique_ptr<ScalingService> service_;
  std::unique_ptr<ExternalScalerService> external_scaler_;
};

// Adds the role's own command line options; environment variables set them too. An invalid rules
// file is reported as a command-line error, with file, line and reason. `options` outlives `app`.
void AddAgentOptions(CLI::App* app, RoleOptions* options);

}  // namespace muster::scaling_agent
