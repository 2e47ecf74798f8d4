// SPDX-License-Identifier: Apache-2.0
#include "muster/actuator/kubernetes/pod_cache.h"

#include <utility>

#include "muster/base/log.h"
#include "nlohmann/json.hpp"

namespace muster::actuator::kubernetes {

PodCache::PodCache(muster::kubernetes::Client* client, std::string name_space, std::string selector,
                   base::Clock* clock)
    : name_space_(std::move(name_space)),
      selector_(std::move(selector)),
      clock_(clock),
      watch_(client, {muster::kubernetes::kPods, name_space_, "", ""}, selector_, this, clock),
      thread_([this](const std::stop_token& stop) { watch_.Run(stop); }) {}

std::optional<std::vector<muster::kubernetes::Pod>> PodCache::Current() const {
  base::MutexLock lock(&mu_);
  if (!is_current_ || clock_->Monotonic() - last_contact_ > kMaxSilence) return std::nullopt;
  std::vector<muster::kubernetes::Pod> pods;
  for (const auto& [name, pod] : pods_) pods.push_back(pod);
  return pods;
}

void PodCache::OnAll(const std::vector<nlohmann::json>& objects) {
  base::MutexLock lock(&mu_);
  pods_.clear();
  for (const nlohmann::json& object : objects) {
    muster::kubernetes::Pod pod = muster::kubernetes::PodOf(object);
    pods_[pod.name] = std::move(pod);
  }
  TouchLocked();
}

void PodCache::OnChanged(const nlohmann::json& object) {
  muster::kubernetes::Pod pod = muster::kubernetes::PodOf(object);
  base::MutexLock lock(&mu_);
  pods_[pod.name] = std::move(pod);
  TouchLocked();
}

void PodCache::OnGone(const nlohmann::json& object) {
  base::MutexLock lock(&mu_);
  pods_.erase(muster::kubernetes::PodOf(object).name);
  TouchLocked();
}

void PodCache::OnCurrent() {
  base::MutexLock lock(&mu_);
  TouchLocked();
}

void PodCache::TouchLocked() {
  is_current_ = true;
  has_told_ = false;
  last_contact_ = clock_->Monotonic();
}

void PodCache::OnTrouble(const absl::Status& why) {
  base::MutexLock lock(&mu_);
  is_current_ = false;
  if (std::exchange(has_told_, true)) return;
  base::Log(base::kWarning, "the watch of a target's pods is interrupted; they are listed instead",
            {{"namespace", name_space_}, {"selector", selector_}, {"why", why.ToString()}});
}

}  // namespace muster::actuator::kubernetes
