// SPDX-License-Identifier: Apache-2.0
#include "services/processor/standby.h"

#include <utility>

#include "muster/base/log.h"
#include "muster/base/proto_time.h"
#include "muster/base/quantity.h"
#include "muster/base/status.h"
#include "muster/telemetry/catalogue.h"

namespace muster::processor {

Standby::Standby(std::string release, base::Clock* clock)
    : release_name_(std::move(release)), clock_(clock) {}

Standby::~Standby() { Stop(); }

absl::Status Standby::Begin(sync::OptimisticSyncStore* store, bus::TriggerBus* bus,
                            Callbacks callbacks, telemetry::Registry* metrics) {
  MUSTER_ASSIGN_OR_RETURN(auto release,
                          release::CombinedRelease::Open(release_name_, store, bus, clock_));
  release::CombinedRelease* const opened = release.get();
  {
    base::MutexLock lock(&mu_);
    release_ = std::move(release);
    parked_ = clock_->Now();
  }
  reading_ = telemetry::ReadAtScrape(metrics, "standby", {telemetry::kParkedProcessors.entry()},
                                     [this](telemetry::Samples* samples) {
                                       base::MutexLock lock(&mu_);
                                       samples->Set(telemetry::kParkedProcessors, {release_name_},
                                                    left_.has_value() ? 0 : 1);
                                       return absl::OkStatus();
                                     });
  base::Log(base::kInfo, "parked: takes no item before a release", {{"release", release_name_}});
  thread_ = std::jthread([this, opened, callbacks = std::move(callbacks)](
                             const std::stop_token& stop) { Run(opened, callbacks, stop); });
  return absl::OkStatus();
}

void Standby::Stop() {
  reading_.reset();
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  std::unique_ptr<release::CombinedRelease> ended;  // dies after the lock is let go
  base::MutexLock lock(&mu_);
  ended = std::move(release_);
}

void Standby::Run(release::CombinedRelease* release, const Callbacks& callbacks,
                  const std::stop_token& stop) {
  callbacks.announce();
  const absl::Duration began = clock_->Monotonic();
  const absl::StatusOr<release::ReleaseState> released = release->Wait(stop);
  if (absl::IsCancelled(released.status()) && stop.stop_requested()) return;
  if (!released.ok()) return callbacks.fail(released.status());
  callbacks.go();
  {
    base::MutexLock lock(&mu_);
    left_ = clock_->Now();
  }
  base::Log(base::kInfo, "released: takes items",
            {{"release", release_name_},
             {"epoch", released->released_epoch},
             {"parked_for", base::DurationToString(clock_->Monotonic() - began)}});
  callbacks.announce();
}

void Standby::AddTo(v1::Heartbeat* heartbeat) const {
  base::MutexLock lock(&mu_);
  if (release_ == nullptr) return;
  v1::Standby* const standby = heartbeat->mutable_standby();
  standby->set_release(release_name_);
  standby->set_epoch(release_->epoch());
  *standby->mutable_parked() = base::ToProto(parked_);
  if (left_.has_value()) *standby->mutable_left() = base::ToProto(*left_);
}

}  // namespace muster::processor
