// WorkerLoad: what a processor's last heartbeat says of the queues of one target.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/bus/roster.h"

namespace muster::scaling_agent {

struct WorkerLoad {
  std::string instance;
  uint64_t sequence = 0;
  absl::Time heard;
  bool leaving = false;  // it said so; silence is another thing
  bool silent = false;   // nothing was heard of it for too long
  bool listens = false;  // to one of the target's queues

  // Of all jobs that it works for: who lets it go stops them all.
  int64_t unsettled = 0;
  bool worked = false;  // in the heartbeat's window, or now

  // Of those jobs that work on the target's queues.
  int threads = 0;  // the most there may be
  int running = 0;  // of them, now
  double busy_share = 0;
  double items_per_second = 0;
  double finished = 0;  // items, in the heartbeat's window; 0 where that is not known
  std::optional<absl::Duration> service_time;
  int64_t attempts = 0;
  int64_t throttled = 0;

  double cpu_cores = 0;  // of the whole process
};

// Figures that nobody could mean, such as negative ones, count as none.
WorkerLoad LoadOf(const bus::RosterEntry& entry, absl::string_view account,
                  const std::vector<std::string>& queues);

}  // namespace muster::scaling_agent
