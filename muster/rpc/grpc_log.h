// SPDX-License-Identifier: Apache-2.0

// What comes before gRPC's first use in a process: its log messages go to muster's log.
#pragma once

#include <cstddef>
#include <string>

#include "absl/time/time.h"
#include "muster/base/lru_map.h"
#include "muster/base/mutex.h"

namespace muster::rpc {

// Call it before any other function of gRPC. Takes effect for the whole process; calling it again
// does nothing. Ends the process where gRPC would get no threads, as os::ExitUnlessThreadsStart:
// gRPC does not see that its timers do not run, and waits for them for ever. gRPC's errors are
// logged as warnings: most are a peer's fault, such as a failed handshake, and the caller learns of
// them by the status of the call. What it says again within kGrpcRepeats is logged as debug.
// Thread-safe.
void PrepareGrpc();

// gRPC says the same at each try to connect, several times a second. A line a minute shows that it
// goes on.
inline constexpr absl::Duration kGrpcRepeats = absl::Minutes(1);
// Of one server's faults there are a few; more lines than these are logged again.
inline constexpr size_t kGrpcLines = 32;

// The lines that were said lately. Thread-safe.
class SaidLines {
 public:
  // Whether `line` was not said within kGrpcRepeats before `now`, a monotonic time; it is then
  // said.
  bool IsNew(const std::string& line, absl::Duration now) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  base::Mutex mu_;
  base::LruMap<std::string, absl::Duration> said_ ABSL_GUARDED_BY(mu_){kGrpcLines};
};

}  // namespace muster::rpc
