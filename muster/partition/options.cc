// SPDX-License-Identifier: Apache-2.0
#include "muster/partition/options.h"

#include "absl/strings/str_cat.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::partition {
namespace {

absl::Status Invalid(absl::string_view field, absl::string_view must) {
  return absl::InvalidArgumentError(absl::StrCat("partition member: ", field, " must be ", must));
}

absl::Status ValidateTimes(const MemberOptions& options) {
  if (options.interval <= absl::ZeroDuration()) return Invalid("interval", "longer than 0");
  if (options.lease < kCyclesPerLease * kLongestCycle * options.interval) {
    return Invalid(
        "lease", absl::StrCat("at least ", kCyclesPerLease * kLongestCycle, " times the interval"));
  }
  if (options.grace <= absl::ZeroDuration() || options.grace > options.lease / 2) {
    return Invalid("grace", "longer than 0 and at most half of the lease");
  }
  return absl::OkStatus();
}

}  // namespace

size_t MaxMemberBytes(int partitions) {
  return partitions > kMaxLongNamePartitions ? kMaxPageMemberBytes : kMaxMemberBytes;
}

absl::Status Validate(const MemberOptions& options) {
  if (options.group.size() > kMaxGroupBytes || !sync::ValidateKey(options.group).ok()) {
    return Invalid("group", absl::StrCat("1 to ", kMaxGroupBytes, " of [A-Za-z0-9._/-]"));
  }
  if (options.partitions < 1 || options.partitions > kMaxPartitions) {
    return Invalid("partitions", absl::StrCat("1 to ", kMaxPartitions));
  }
  const size_t most = MaxMemberBytes(options.partitions);
  if (options.member.size() > most || !sync::ValidateKey(options.member).ok() ||
      options.member.find('/') != std::string::npos) {
    return Invalid("member", absl::StrCat("1 to ", most, " of [A-Za-z0-9._-] in a group with ",
                                          options.partitions, " partitions"));
  }
  if (options.page_rows < 1 || options.page_rows > kPageRows) {
    return Invalid("page_rows", absl::StrCat("1 to ", kPageRows));
  }
  if (options.predecessors.size() > kMaxPredecessors) {
    return Invalid("predecessors", absl::StrCat("at most ", kMaxPredecessors));
  }
  if (options.least_epoch < 1) return Invalid("least_epoch", "at least 1");
  return ValidateTimes(options);
}

absl::Duration OwnShare(absl::Duration duration) { return duration - duration / 10; }

}  // namespace muster::partition
