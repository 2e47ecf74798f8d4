// UsageLog: what each run used, a line of JSON per run, so that a bill can be shown later. It is
// for people, not for books: the line of a run that was killed is missing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/queue/bill.h"

namespace muster::queue {

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
