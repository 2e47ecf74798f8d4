// SPDX-License-Identifier: Apache-2.0
#include "muster/nats/lazy_subscription.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status.h"

namespace muster::nats {

LazySubscription::LazySubscription(Connection* connection, std::vector<std::string> subjects,
                                   std::string kind, Take take)
    : connection_(connection),
      subjects_(std::move(subjects)),
      kind_(std::move(kind)),
      take_(std::move(take)) {}

LazySubscription::~LazySubscription() {
  std::vector<std::unique_ptr<Connection::Subscription>> subscriptions;
  base::MutexLock lock(&mu_);
  subscriptions = std::move(subscriptions_);  // destroyed after the lock is released
}

absl::Status LazySubscription::Begin(absl::Duration limit) {
  base::MutexLock lock(&mu_);
  const auto on_message = [this](const Incoming& message) { OnMessage(message); };
  while (subscriptions_.size() < subjects_.size()) {
    MUSTER_ASSIGN_OR_RETURN(auto subscription,
                            connection_->Subscribe(subjects_[subscriptions_.size()], on_message));
    subscriptions_.push_back(std::move(subscription));
  }
  // Without a connection the subscription waits for one.
  if (connection_->connected()) (void)connection_->Flush(limit);
  return absl::OkStatus();
}

void LazySubscription::OnMessage(const Incoming& message) {
  const absl::Status taken = take_(message);
  // Log only the first one: its sender may send a million.
  if (taken.ok() || malformed_.fetch_add(1) > 0) return;
  base::Log(base::kWarning,
            absl::StrCat("a message on the subjects of ", kind_,
                         " cannot be read; all such messages are ignored"),
            {{"subject", message.subject}, {"why", taken.message()}});
}

}  // namespace muster::nats
