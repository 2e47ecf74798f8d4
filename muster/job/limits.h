// SPDX-License-Identifier: Apache-2.0

// Every bound of a job file, with its reason.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "muster/base/report_limits.h"
#include "muster/yaml/problems.h"

namespace muster::job {

// A job file is written by a person; the text travels with each batch into the ledger.
inline constexpr size_t kMaxJobFileBytes = size_t{1} << 20;
// Job, group, key and measure names become names of queues, tables and columns.
inline constexpr size_t kMaxNameBytes = yaml::kMaxNameBytes;
inline constexpr size_t kMaxColumns = 1000;
inline constexpr size_t kMaxGroups = base::kMaxGroups;
inline constexpr size_t kMaxKeys = 16;
inline constexpr size_t kMaxMeasures = base::kMaxGroupColumns - 1;  // a group has a key
inline constexpr size_t kMaxArguments = 256;
inline constexpr size_t kMaxVariables = 256;

// An item is the unit of retry, and a worker holds a few of them in memory.
inline constexpr int64_t kMaxItemTransactions = 100'000;
inline constexpr int64_t kMinItemBytes = 1 << 10;
inline constexpr int64_t kMaxItemBytes = 8 << 20;

// More partitions than one machine has workers for only cost polls.
inline constexpr int64_t kMaxPartitions = 64;
// A lease must outlast a few renewals.
inline constexpr absl::Duration kMinVisibility = absl::Milliseconds(100);
inline constexpr int64_t kMaxAttempts = 1000;
inline constexpr absl::Duration kMinTtl = absl::Minutes(1);
inline constexpr absl::Duration kMaxTtl = absl::Hours(24 * 365);
// Work is estimated from heartbeats and readings that are seconds old.
inline constexpr absl::Duration kMinDrain = absl::Seconds(1);
inline constexpr absl::Duration kMaxDrain = absl::Hours(24 * 365);
inline constexpr absl::Duration kMinDeadline = absl::Milliseconds(10);
inline constexpr absl::Duration kMaxDeadline = absl::Hours(24);
inline constexpr absl::Duration kMinSla = absl::Milliseconds(1);
inline constexpr absl::Duration kMaxSla = absl::Hours(24 * 365);
// The initiator looks once a minute for what a retention removes.
inline constexpr absl::Duration kMinRetention = absl::Minutes(1);
inline constexpr absl::Duration kMaxRetention = absl::Hours(24 * 36500);
// It looks as often for uploads that have expired. A client that was cut off needs some seconds to
// go on; one that is away for longer than a year does not come back.
inline constexpr absl::Duration kMinUploadExpiry = absl::Minutes(1);
inline constexpr absl::Duration kMaxUploadExpiry = absl::Hours(24 * 365);

}  // namespace muster::job
