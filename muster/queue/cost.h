// The bill of a queue that is paid by the call (req. 46–49): what a run did and what it would cost
// in a cloud, what idling costs, and what it costs those who poll.
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
  double per_million_bus_messages = 0;   // dollars; a bus of one's own is not billed
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

// The calls of a process that waits for `lapse` and finds nothing. A worker that polls asks once
// per interval with each thread; ours looks at each queue once per safety check, whatever its
// threads.
struct Idling {
  absl::Duration lapse = absl::Hours(1);
  absl::Duration interval = absl::Seconds(30);
  int64_t calls_per_interval = 1;  // queues to look at, or threads that poll

  int64_t calls() const { return lapse / interval * calls_per_interval; }
};

// The papers' example: eight hours a day, busy for a quarter of them, one look a second and thread
// in the 22 hours that remain.
inline Idling PollingDay(int threads) { return {absl::Hours(22), absl::Seconds(1), threads}; }
inline constexpr int kDaysOfAMonth = 30;

// "$2.38", and "$0.0001" where cents would hide it.
std::string ShowDollars(double dollars);

// UsageLog: what each run used, a line of JSON per run, so that a bill can be shown later. It is
// for people, not for books: the line of a run that was killed is missing.

// One run's.
struct RunUsage {
  uint64_t batch = 0;
  double seconds = 0;
  int partitions = 1;  // of the job's input queue
  int threads = 1;     // workers at most
  Usage usage;
};

// Appends a line to the file at `path`, which is made if need be.
absl::Status AppendUsage(const std::string& path, const RunUsage& run);

// All runs, oldest first; none when there is no such file. Lines that are no run's are passed over:
// the last one of a disk that was full, say.
absl::StatusOr<std::vector<RunUsage>> ReadUsage(const std::string& path);

}  // namespace muster::queue
