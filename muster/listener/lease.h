// SPDX-License-Identifier: Apache-2.0

// Lease: one leased message. The task that delivers it, the LeaseRenewer and the settler share it.
#pragma once

#include <map>
#include <memory>
#include <stop_token>
#include <utility>

#include "absl/time/time.h"
#include "muster/queue/queue_store.h"

namespace muster::listener {

// What is private is the LeaseTable's.
class Lease {
 public:
  // `at`: Clock::Monotonic() before the Receive that gave `leased` for `duration`.
  Lease(queue::Message leased, int from_partition, absl::Duration at, absl::Duration duration)
      : message(std::move(leased)),
        partition(from_partition),
        received_at(at),
        visibility(duration),
        receipt_(message.receipt),
        expires_(at + duration) {}

  const queue::Message message;  // as received; the receipt in it may be out of date
  const int partition;           // index into ListenerOptions::partitions
  const absl::Duration received_at;
  const absl::Duration visibility;  // of the lease, and of each renewal

 private:
  friend class LeaseTable;

  // All of this is guarded by LeaseTable::mu_.
  queue::Receipt receipt_;
  absl::Duration expires_;  // Clock::Monotonic() from which the store may lease it again
  std::multimap<absl::Duration, std::shared_ptr<Lease>>::iterator due_;
  bool pinned_ = false;
  bool charged_ = false;
  bool begun_ = false;
  bool lost_ = false;
  bool counted_lost_ = false;  // also if it only ran out by the local clock
  bool settling_ = false;
  bool removed_ = false;
  std::stop_source stop_{std::nostopstate};  // made on the first call of TokenOf
  bool stopped_ = false;
};

using LeasePtr = std::shared_ptr<Lease>;

}  // namespace muster::listener
