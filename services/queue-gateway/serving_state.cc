// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/serving_state.h"

#include <utility>

#include "muster/base/log.h"

namespace muster::queue_gateway {

void ServingState::Open() {
  base::MutexLock lock(&mu_);
  open_ = true;
}

void ServingState::Connected(bool connected) {
  base::MutexLock lock(&mu_);
  if (std::exchange(connected_, connected) == connected) return;
  base::Log(connected ? base::kInfo : base::kWarning,
            connected ? "the NATS server is back" : "the NATS server does not answer");
}

void ServingState::Drain() {
  base::MutexLock lock(&mu_);
  draining_ = true;
}

void ServingState::OnlyRead(const absl::Status& why) {
  if (!only_reads_.request_stop()) return;
  base::LogUnlessOk(base::kError, "nothing is written any more; reads go on", why);
}

void ServingState::Fail(const absl::Status& status) {
  {
    base::MutexLock lock(&mu_);
    if (failure_.has_value()) return;
    failure_ = status;
  }
  on_failure_();
}

bool ServingState::is_ready() const {
  base::MutexLock lock(&mu_);
  return open_ && connected_ && !draining_ && !failure_.has_value() &&
         !only_reads_.stop_requested();
}

std::string ServingState::InWords() const {
  base::MutexLock lock(&mu_);
  if (failure_.has_value()) return "failed";
  if (draining_) return "draining";
  if (!open_) return "waiting for its stores";
  if (only_reads_.stop_requested()) return "only reads: its disk is full, or fails";
  return connected_ ? "ready" : "without its NATS server";
}

std::optional<absl::Status> ServingState::failure() const {
  base::MutexLock lock(&mu_);
  return failure_;
}

}  // namespace muster::queue_gateway
