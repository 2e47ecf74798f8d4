// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/lease_renewer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/listener/store_results.h"
#include "muster/queue/limits.h"

namespace muster::listener {

LeaseRenewer::LeaseRenewer(LeaseRenewerOptions options, queue::QueueStore* store,
                           LeaseTable* leases, CounterSet* counters, base::Clock* clock)
    : options_(std::move(options)),
      store_(store),
      leases_(leases),
      counters_(counters),
      clock_(clock) {
  base::MutexLock lock(&join_mu_);
  thread_ = std::thread([this] { Run(); });
}

LeaseRenewer::~LeaseRenewer() { Stop(); }

void LeaseRenewer::Stop() {
  leases_->CloseRenewals();
  base::MutexLock lock(&join_mu_);
  if (thread_.joinable()) thread_.join();
}

void LeaseRenewer::Run() {
  for (;;) {
    Renewals due = leases_->AwaitDue(queue::kMaxSettle);
    if (due.empty()) return;
    std::vector<Renewals> by_partition(options_.partitions.size());
    for (LeaseTable::Renewal& renewal : due) {
      by_partition[renewal.lease->partition].push_back(std::move(renewal));
    }
    for (size_t partition = 0; partition < by_partition.size(); ++partition) {
      if (!by_partition[partition].empty()) {
        Renew(static_cast<int>(partition), by_partition[partition]);
      }
    }
  }
}

void LeaseRenewer::Renew(int partition, const Renewals& renewals) {
  std::vector<queue::UpdateRequest> requests(renewals.size());
  for (size_t i = 0; i < renewals.size(); ++i) {
    requests[i].receipt = renewals[i].receipt;
    requests[i].visibility = renewals[i].lease->visibility;
  }
  counters_->Add(&ListenerCounters::lease_renewals);
  const absl::Duration asked_at = clock_->Monotonic();
  const auto results =
      CheckSize(store_->Update(options_.partitions[partition], requests), requests.size());
  if (const absl::Status error = FirstError(results); !error.ok()) {
    options_.on_error(
        base::Annotate(error, absl::StrCat("renewing ", renewals.size(), " leases of ",
                                           options_.partitions[partition].ToString())));
  }
  for (size_t i = 0; i < renewals.size(); ++i) {
    Note(*renewals[i].lease,
         results.ok() ? (*results)[i] : absl::StatusOr<queue::UpdateResult>(results.status()),
         asked_at);
  }
}

void LeaseRenewer::Note(Lease& lease, absl::StatusOr<queue::UpdateResult> result,
                        absl::Duration asked_at) {
  if (result.ok()) {
    leases_->Renewed(lease, std::move(result->receipt), asked_at);
  } else if (IsStale(result.status())) {
    leases_->Lost(lease);
  } else {
    leases_->NotRenewed(lease);
  }
}

}  // namespace muster::listener
