// SPDX-License-Identifier: Apache-2.0

// AllRoles: initiator, processor and controller as one role of one host, for `muster up`. They talk
// gRPC to each other as they would on three hosts.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/handler/handler.h"
#include "services/controller/controller_role.h"
#include "services/host/host_options.h"
#include "services/host/role.h"
#include "services/initiator/initiator_role.h"
#include "services/processor/processor_role.h"
#include "services/processor/processor_service.h"

namespace muster::host::all_roles {

struct RoleOptions {
  controller::RoleOptions controller;
  initiator::RoleOptions initiator;
  processor::ServiceOptions processor;
};

class AllRoles final : public host::Role {
 public:
  // Each role is an instance of its own: host.instance, a dash, and the role's name. `handlers` and
  // `clock` are not owned and outlive it.
  AllRoles(const handler::HandlerRegistry* handlers, const host::HostOptions& host,
           RoleOptions options, base::Clock* clock);

  absl::Status Open(const host::Stores& stores, const host::Fail& fail) override;
  // Each service once, even if several roles have it.
  std::vector<rpc::ServedService> services() override;
  bool shows_nats_streams() const override { return initiator_.shows_nats_streams(); }
  void OnStoresBack() override { initiator_.OnStoresBack(); }
  // Drains the initiator, then the processor, then the controller.
  void Drain(absl::Duration grace) override;
  void Close() override;

 private:
  base::Clock* const clock_;  // not owned
  controller::ControllerRole controller_;
  processor::ProcessorRole processor_;
  initiator::InitiatorRole initiator_;
};

}  // namespace muster::host::all_roles
