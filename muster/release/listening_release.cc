// SPDX-License-Identifier: Apache-2.0
#include "muster/release/listening_release.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/release/releases.h"

namespace muster::release {

absl::StatusOr<std::unique_ptr<ListeningRelease>> ListeningRelease::Open(bus::TriggerBus* bus,
                                                                         absl::string_view name) {
  MUSTER_RETURN_IF_ERROR(ValidateName(name));
  std::unique_ptr<ListeningRelease> release(new ListeningRelease(name));
  MUSTER_ASSIGN_OR_RETURN(
      release->subscription_,
      bus->Subscribe([self = release.get()](const auto& event) { self->OnEvent(event); }));
  return release;
}

void ListeningRelease::OnEvent(const bus::InterRoleCommunicationEvent& event) {
  const auto* const released = std::get_if<bus::ReleasedEvent>(&event.payload);
  if (released == nullptr || released->release != name_) return;
  base::MutexLock lock(&mu_);
  released_ = true;
  changed_.NotifyAll();
}

absl::Status ListeningRelease::Wait(const std::stop_token& stop) {
  const std::stop_callback wake(stop, base::WakeAll{&mu_, &changed_});
  base::MutexLock lock(&mu_);
  while (!released_ && !stop.stop_requested()) changed_.Wait(&mu_);
  if (released_) return absl::OkStatus();
  return absl::CancelledError(absl::StrCat("the wait for release '", name_, "' was stopped"));
}

}  // namespace muster::release
