// SPDX-License-Identifier: Apache-2.0
#include "services/host/all_roles/all_roles.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "muster/base/status.h"

namespace muster::host::all_roles {
namespace {

host::HostOptions OptionsOf(host::HostOptions host, absl::string_view role) {
  absl::StrAppend(&host.instance, "-", role);
  return host;
}

processor::ServiceOptions ServiceOptionsOf(processor::ServiceOptions options,
                                           const host::HostOptions& host) {
  options.account = host.account;
  options.instance = OptionsOf(host, host::kProcessor.name).instance;
  options.drain_grace = host.drain_grace;
  options.handlers.allow_plaintext = host.allow_plaintext;
  return options;
}

}  // namespace

AllRoles::AllRoles(const handler::HandlerRegistry* handlers, const host::HostOptions& host,
                   RoleOptions options, base::Clock* clock)
    : clock_(clock),
      controller_(OptionsOf(host, host::kController.name), std::move(options.controller), clock),
      processor_(handlers, OptionsOf(host, host::kProcessor.name),
                 ServiceOptionsOf(std::move(options.processor), host), clock),
      initiator_(OptionsOf(host, host::kInitiator.name), std::move(options.initiator), clock) {}

// The initiator, which makes work, opens last: the roles that do the work run by then.
absl::Status AllRoles::Open(const host::Stores& stores, const host::Fail& fail) {
  MUSTER_RETURN_IF_ERROR(controller_.Open(stores, fail));
  MUSTER_RETURN_IF_ERROR(processor_.Open(stores, fail));
  return initiator_.Open(stores, fail);
}

std::vector<rpc::ServedService> AllRoles::services() {
  std::vector<rpc::ServedService> all = initiator_.services();
  for (host::Role* const role :
       {static_cast<host::Role*>(&processor_), static_cast<host::Role*>(&controller_)}) {
    for (rpc::ServedService& service : role->services()) {
      const bool is_there = std::any_of(
          all.begin(), all.end(), [&](const auto& other) { return other.name == service.name; });
      if (!is_there) all.push_back(std::move(service));
    }
  }
  return all;
}

void AllRoles::Drain(absl::Duration grace) {
  const absl::Duration end = clock_->Monotonic() + grace;
  initiator_.Drain(grace);
  processor_.Drain(std::max(absl::ZeroDuration(), end - clock_->Monotonic()));
  controller_.Drain(std::max(absl::ZeroDuration(), end - clock_->Monotonic()));
}

void AllRoles::Close() {
  initiator_.Close();
  processor_.Close();
  controller_.Close();
}

}  // namespace muster::host::all_roles
