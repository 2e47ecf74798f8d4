// The commands of a property test: what a queue's users, and the machine below it, may do.
#pragma once

#include <ostream>
#include <vector>

#include "absl/time/time.h"
#include "rapidcheck.h"

namespace muster::queue::rocksdb {

// From the harmless to the rare: a counterexample shrinks towards the first.
enum class Verb {
  kPass,  // time passes
  kPut,
  kReceive,
  kPeek,
  kStats,
  kDelete,
  kBeginAttempt,
  kUpdate,
  kDeadLetter,
  kListPoison,
  kRedrive,
  kPurgePoison,
  kClear,
  kSetMetadata,
  kCreate,
  kDestroy,
  kReopen,
};

// How a store ends before it is opened again.
enum class Ending { kOrderly, kKill, kPowerCut };

enum class Disk { kWorks, kRefusesWrites, kRefusesSyncs };

// A verb reads those fields that mean something to it.
struct Command {
  Verb verb = Verb::kPass;
  int count = 1;                           // of messages, or of receipts in one call
  int which = 0;                           // the first receipt: so many before the newest
  absl::Duration wait = absl::Seconds(1);  // that passes; the visibility; the delay of a put
  absl::Duration ttl = absl::InfiniteDuration();
  int dedup = 0;               // of a put: 0 is none
  bool attempt_ended = false;  // of an update; its other two change with `which`
  // Unless the disk works, the store is opened again after the verb.
  Disk disk = Disk::kWorks;
  Ending ending = Ending::kOrderly;
  int kept_percent = 0;  // of what was not synced when the power went
  bool holders_in_process = false;

  friend bool operator==(const Command& a, const Command& b) = default;
};

std::ostream& operator<<(std::ostream& out, const Command& command);

rc::Gen<std::vector<Command>> AnyCommands(bool with_crashes);

}  // namespace muster::queue::rocksdb
