// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/agent_metrics.h"

#include <optional>
#include <string>

#include "muster/item/queue_names.h"
#include "muster/telemetry/catalogue.h"
#include "services/scaling-agent/queue_watch.h"

namespace muster::scaling_agent {
namespace {

void SetWorkers(const std::string& pool, const scaling::policy::Fleet& fleet,
                telemetry::Samples* samples) {
  const auto set = [&](const char* state, size_t replicas) {
    samples->Set(telemetry::kWorkers, {pool, state}, static_cast<double>(replicas));
  };
  set("ready", static_cast<size_t>(fleet.ready));
  set("idle", fleet.idle_since.size());
  set("starting", fleet.starting.size());
  set("parked", static_cast<size_t>(fleet.parked));
  set("draining", static_cast<size_t>(fleet.draining));
}

void SetTarget(const TargetLoop& loop, telemetry::Samples* samples) {
  if (const std::optional<Snapshot> seen = loop.snapshot(); seen.has_value()) {
    SetWorkers(loop.name(), seen->observation.fleet, samples);
    if (seen->forecast.has_value()) {
      samples->Set(telemetry::kScaleForecast, {loop.name()}, *seen->forecast);
    }
  }
  if (const std::optional<int> desired = loop.desired(); desired.has_value()) {
    samples->Set(telemetry::kScaleDesired, {loop.name()}, *desired);
    samples->Set(telemetry::kScaleActuated, {loop.name()}, loop.is_actuated() ? 1 : 0);
  }
}

// The name that all metrics have for a queue of the rules, which may be "retail_python-in", after
// the job, where the queue is retail-python-in.
std::string LabelOf(const std::string& queue) {
  const std::optional<std::string> job = JobOf(queue, {});
  return job.has_value() ? item::LogicalInput(*job) : item::LogicalName(queue);
}

void SetPromise(const scaling::rules::Target& target, telemetry::Samples* samples) {
  if (!target.sla_max.has_value()) return;
  for (const std::string& queue : target.queues) {
    samples->Set(telemetry::kSlaTarget, {LabelOf(queue)}, absl::ToDoubleSeconds(*target.sla_max));
  }
}

}  // namespace

AgentMetrics::AgentMetrics(const Agent* agent, telemetry::Registry* registry)
    : agent_(agent),
      reading_(telemetry::ReadAtScrape(
          registry, "targets",
          {telemetry::kWorkers.entry(), telemetry::kScaleDesired.entry(),
           telemetry::kScaleActuated.entry(), telemetry::kScaleForecast.entry(),
           telemetry::kSlaTarget.entry()},
          [this](telemetry::Samples* samples) { return Read(samples); })) {}

absl::Status AgentMetrics::Read(telemetry::Samples* samples) const {
  if (!agent_->leads()) return absl::OkStatus();
  for (const auto& loop : agent_->Targets()) SetTarget(*loop, samples);
  const auto rules = agent_->rules().rules;
  for (const scaling::rules::Target& target : rules->targets) SetPromise(target, samples);
  return absl::OkStatus();
}

}  // namespace muster::scaling_agent
