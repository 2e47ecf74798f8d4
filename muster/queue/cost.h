// SPDX-License-Identifier: Apache-2.0

// The bill of a queue service that charges per call: what a run used and would cost in
// a cloud, what an idle process costs, and what a polling process costs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/queue/store_decorators.h"

namespace muster::queue {

struct Prices {
  double per_10000_transactions = 0.01;  // dollars; the papers' price
  double per_million_bus_messages = 0;   // dollars; a self-hosted bus is not billed
};

// What a run used.
struct Usage {
  TransactionsByVerb transactions = {};
  int64_t wakeups_push = 0;    // idle workers that a trigger woke
  int64_t wakeups_safety = 0;  // … and that a safety check did, because a trigger was lost
  int64_t bus_messages = 0;

  void Add(const Usage& other);
  int64_t total() const;
  int64_t wasted() const;
};

double TransactionCost(int64_t transactions, const Prices& prices);
double Cost(const Usage& usage, const Prices& prices);

// The calls of a process that waits for `lapse` and finds nothing. A polling worker makes one call
// per interval and thread. A muster worker makes one call per queue and safety check, for any
// number of threads.
struct Idling {
  absl::Duration lapse = absl::Hours(1);
  absl::Duration interval = absl::Seconds(30);
  int64_t calls_per_interval = 1;  // queues to look at, or threads that poll

  int64_t calls() const { return lapse / interval * calls_per_interval; }
};

inline constexpr int kDaysOfAMonth = 30;

// "$2.38"; smaller amounts get more digits, as in "$0.0001".
std::string ShowDollars(double dollars);

// The usage log: one line of JSON per run, so that a bill can be shown later. It is informative,
// not an account: a killed run leaves no line, and old runs are dropped.
//
//   usage.jsonl ── is full, or began long ago ──► usage.jsonl.1 ── the next one comes ──► deleted

// At this size a file is full: some 5,000 runs. Two of them are read in a tenth of a second.
inline constexpr int64_t kMaxUsageBytes = int64_t{2} << 20;
// With the runs of the file before, bills are kept about as long as the records of batches.
inline constexpr absl::Duration kMaxUsageAge = absl::Hours(24 * 200);

// The usage of one run.
struct RunUsage {
  uint64_t batch = 0;
  absl::Time ended = absl::UnixEpoch();  // the epoch: unknown, as an older muster has it
  double seconds = 0;
  int partitions = 1;  // of the job's input queue
  int threads = 1;     // workers at most
  Usage usage;
};

// Appends a line to the file at `path`; makes the file if it does not exist. First it puts the file
// aside if it has `max_bytes`, or its first run ended more than kMaxUsageAge before this one. One
// process at a time.
absl::Status AppendUsage(const std::string& path, const RunUsage& run,
                         int64_t max_bytes = kMaxUsageBytes);

// Returns all runs that are kept, oldest first; none when no file exists. Skips lines that are not
// valid, such as a last line cut short by a full disk.
absl::StatusOr<std::vector<RunUsage>> ReadUsage(const std::string& path);

}  // namespace muster::queue
