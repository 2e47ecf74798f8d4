// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/wait_sources.h"

#include <utility>
#include <variant>
#include <vector>

#include "muster/item/held_key_admin.h"
#include "muster/item/held_keys.h"
#include "muster/item/queue_names.h"
#include "muster/v1/scaling_service.pb.h"

namespace muster::initiator {
namespace {

// Of a question whose answer only makes the status of a batch more helpful.
constexpr absl::Duration kAgentTimeout = absl::Seconds(1);

// None where that cannot be told: it is for a sentence alone.
item::HeldSummary HeldKeysOf(const std::string& name, const std::string& account,
                             job::JobRegistry* jobs, sync::OptimisticSyncStore* records) {
  const auto job = jobs->GetDefinition(name);
  if (!job.ok() || job->on_poison != job::OnPoison::kHold) return {};
  item::HeldKeyStore keys(records);
  const auto held =
      item::CountHeldKeys(item::InputQueues(account, name, job->queue.partitions), keys);
  return held.ok() ? *held : item::HeldSummary();
}

// As of a linked one where that cannot be told: it is for a sentence alone.
api::HandlerKind KindOfHandler(const std::string& name, job::JobRegistry* jobs) {
  const auto job = jobs->GetDefinition(name);
  if (!job.ok()) return {};
  api::HandlerKind kind;
  kind.is_of_job_file = !std::holds_alternative<job::LinkedHandlerSpec>(job->handler);
  if (const auto* const grpc = std::get_if<job::GrpcHandlerSpec>(&job->handler)) {
    kind.server = grpc->address;
    kind.version = grpc->version;
  }
  return kind;
}

std::vector<v1::ScalingTarget> StartedTargets(host::Membership* membership,
                                              client::ScalingLeaderClient* agent) {
  using Stub = v1::ScalingService::Stub;
  if (membership->AddressesOf(v1::ROLE_SCALING_AGENT).empty()) return {};
  // Any agent answers GetAgent; the client asks the one that has answered this.
  const auto targets = agent->Unary<v1::ListTargetsResponse>(
      &Stub::ListTargets, v1::ListTargetsRequest(), kAgentTimeout);
  if (!targets.ok()) return {};
  const auto leader =
      agent->Unary<v1::GetAgentResponse>(&Stub::GetAgent, v1::GetAgentRequest(), kAgentTimeout);
  if (!leader.ok() || !client::StartsReplicas(*leader)) return {};
  return {targets->targets().begin(), targets->targets().end()};
}

}  // namespace

api::WaitReasons::Sources WaitSources(WaitTools tools) {
  return {
      .processors =
          [membership = tools.membership] { return membership->roster().List(v1::ROLE_PROCESSOR); },
      .has_controller = std::move(tools.has_controller),
      .targets = [membership = tools.membership,
                  agent = tools.agent] { return StartedTargets(membership, agent); },
      .held_keys = [account = std::move(tools.account), jobs = tools.jobs, records = tools.records](
                       const std::string& job) { return HeldKeysOf(job, account, jobs, records); },
      .handler = [jobs = tools.jobs](const std::string& job) { return KindOfHandler(job, jobs); },
      .controllers =
          [membership = tools.membership] {
            return membership->roster().List(v1::ROLE_CONTROLLER);
          }};
}

}  // namespace muster::initiator
