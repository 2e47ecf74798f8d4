// SPDX-License-Identifier: Apache-2.0
#include "services/processor/ordered_partitions.h"

#include <cctype>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/base/log.h"
#include "muster/base/random.h"
#include "muster/base/status.h"
#include "muster/item/queue_names.h"
#include "muster/partition/options.h"

namespace muster::processor {
namespace {

// One process may have two members for a moment, while the job changes.
std::string MemberName(const std::string& instance) {
  constexpr size_t kMostOfInstance = partition::kMaxPageMemberBytes - 9;  // "." and 8 digits
  std::string name;
  for (const char c : instance.substr(0, kMostOfInstance)) {
    const bool fits = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-';
    name += fits ? c : '-';
  }
  return absl::StrFormat("%s.%08x", name, static_cast<uint32_t>(base::RandomSeed()));
}

}  // namespace

std::string OwnerGroupOf(absl::string_view account, absl::string_view job, int partitions) {
  return absl::StrCat(item::OrderGroupPrefix(account, job), partitions);
}

absl::Status OrderedPartitions::Start(const std::string& group, const std::string& instance,
                                      int partitions) {
  if (sync_ == nullptr) {
    for (int i = 0; i < partitions; ++i) listener_->Own(i);
    return absl::OkStatus();
  }
  partition::MemberOptions options;
  options.group = group;
  options.member = MemberName(instance);
  options.partitions = partitions;
  options.interval = kOwnerCycle;
  options.lease = kOwnerLease;
  options.grace = kOwnerGrace;
  base::MutexLock lock(&mu_);
  MUSTER_ASSIGN_OR_RETURN(
      member_, partition::PartitionMember::Start(options, sync_, this, clock_, metrics_));
  return absl::OkStatus();
}

void OrderedPartitions::Stop() {
  // Without the lock, which the calls of a member that stops need.
  if (partition::PartitionMember* const member = MemberIfAny()) member->Stop();
}

void OrderedPartitions::OnAssigned(int partition, int64_t) { listener_->Own(partition); }

void OrderedPartitions::OnDraining(int partition, int64_t epoch, absl::Duration) {
  listener_->Drain(partition,
                   [this, partition, epoch] { MemberIfAny()->Drained(partition, epoch); });
}

void OrderedPartitions::OnRevoked(int partition, int64_t) { listener_->Disown(partition); }

partition::PartitionMember* OrderedPartitions::MemberIfAny() {
  base::MutexLock lock(&mu_);
  return member_.get();
}

}  // namespace muster::processor
