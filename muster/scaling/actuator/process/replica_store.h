// ReplicaStore: the replicas of a state folder, each in a ReplicaFolder.
//
//   FOLDER/replicas/INSTANCE/    lives, or has ended since somebody looked last
//   FOLDER/failed/INSTANCE/      ended though nobody told it to; the last kKeptFailures
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/scaling/actuator/actuator.h"
#include "muster/scaling/actuator/process/state_folder.h"

namespace muster::scaling::actuator::process {

struct LivingReplica {
  ReplicaFolder folder;
  ReplicaRecord record;
  scaling::actuator::ReplicaState state = scaling::actuator::ReplicaState::kStarting;
  bool was_unattended = false;  // it goes because there was no agent

  scaling::actuator::Replica AsReplica() const;
};

enum class Departure {
  kTold,
  kUnattended,  // there was no agent; or the whole machine went
  kFailed,
};

struct DepartedReplica {
  ReplicaFolder folder;
  ReplicaRecord record;
  Departure departure = Departure::kFailed;
  ReplicaEnd end;
};

struct ReplicaInventory {
  std::vector<LivingReplica> living;  // of all targets
  std::vector<DepartedReplica> departed;
  // Their agent died before their keeper wrote a record. Without the folder it never will.
  std::vector<ReplicaFolder> without_record;
};

// What all replicas of a target are started with.
struct StartPlan {
  std::string keeper;
  std::string target;
  std::vector<std::string> program;
  std::vector<std::pair<std::string, std::string>> environment;
  std::string agents_file;
  absl::Duration drain_grace;
  absl::Duration kill_slack;
  absl::Duration unattended_limit;
};

// Not thread-safe, and for whoever holds the folder's lock; TakeInventory changes nothing.
class ReplicaStore {
 public:
  explicit ReplicaStore(const std::string& folder);

  // Makes the folders.
  absl::Status Create();

  ReplicaInventory TakeInventory() const;

  // Starts `count` side by side, and adds the pids of their keepers, which are children of this
  // process, to `keepers`. The first error; those that could be started are started all the same.
  absl::Status Start(const StartPlan& plan, int count, std::vector<pid_t>* keepers);

  // Again for one that was told before it does no harm.
  absl::Status LetGo(const LivingReplica& replica);

  // Removes a folder that had no record when somebody looked. False: its keeper has written one
  // since, and it stays.
  bool Discard(const ReplicaFolder& folder);
  // Removes its folder, or keeps it for people if it failed.
  void Discharge(const DepartedReplica& replica);

 private:
  void PruneFailed();

  const std::string replicas_;
  const std::string failed_;
};

}  // namespace muster::scaling::actuator::process
