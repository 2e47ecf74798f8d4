// SPDX-License-Identifier: Apache-2.0

// WaitSources: where an initiator looks for what its batches may wait for: in heartbeats, at the
// leading scaling agent, and in the definitions and held keys of jobs.
#pragma once

#include <functional>
#include <string>

#include "muster/client/scaling_client.h"
#include "muster/job/job_registry.h"
#include "muster/sync/optimistic_sync_store.h"
#include "services/host/membership.h"
#include "services/initiator/api/wait_reasons.h"

namespace muster::initiator {

// Nothing is owned; all of it outlives the sources.
struct WaitTools {
  host::Membership* membership = nullptr;
  client::ScalingLeaderClient* agent = nullptr;
  job::JobRegistry* jobs = nullptr;
  sync::OptimisticSyncStore* records = nullptr;
  std::string account = {};  // of the jobs' queues
  std::function<bool()> has_controller = nullptr;
};

// What cannot be told is left out: it only makes a sentence more helpful.
api::WaitReasons::Sources WaitSources(WaitTools tools);

}  // namespace muster::initiator
