// SPDX-License-Identifier: Apache-2.0

// ReplicaStore: the replicas of a state folder, each in a ReplicaFolder.
//
//   FOLDER/replicas/INSTANCE/    lives, or has ended since the last TakeInventory
//   FOLDER/failed/INSTANCE/      ended by itself; the last kKeptFailures are kept
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/actuator/actuator.h"
#include "muster/actuator/process/state_folder.h"

namespace muster::actuator::process {

struct LivingReplica {
  ReplicaFolder folder;
  ReplicaRecord record;
  actuator::ReplicaState state = actuator::ReplicaState::kStarting;
  bool was_unattended = false;  // it ends because no agent was present
  std::string metrics = {};     // HOST:PORT at which it serves them; empty: it has told none

  actuator::Replica AsReplica() const;
};

// Where replicas serve their metrics, as the JSON that Prometheus reads by file_sd_configs: of each
// its address, with its name as `replica` and its target as `target`.
std::string EncodeMetricsTargets(const std::vector<LivingReplica>& living);

enum class Departure {
  kTold,
  kUnattended,  // no agent was present, or the whole machine went down
  kFailed,
};

struct DepartedReplica {
  ReplicaFolder folder;
  ReplicaRecord record;
  Departure departure = Departure::kFailed;
  ReplicaEnd end;
};

struct ReplicaInventory {
  std::vector<LivingReplica> living;  // over all targets
  std::vector<DepartedReplica> departed;
  // Folders in which no keeper has written a record, because the agent died first. A keeper whose
  // folder is removed never writes one and never starts its program.
  std::vector<ReplicaFolder> without_record;
};

// What all new replicas of a target share.
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

// Not thread-safe. The caller holds the folder's lock. TakeInventory changes nothing.
class ReplicaStore {
 public:
  explicit ReplicaStore(const std::string& folder);

  // Creates the folders.
  absl::Status Create();

  ReplicaInventory TakeInventory() const;

  // Starts `count` replicas side by side, and adds the pids of their keepers, which are children of
  // this process, to `keepers`. Returns the first error; replicas that could start go on.
  absl::Status Start(const StartPlan& plan, int count, std::vector<pid_t>* keepers);

  // Tells the replica to end. Repeating it does no harm.
  absl::Status LetGo(const LivingReplica& replica);

  // Removes a folder that had no record at the last TakeInventory. False: its keeper has written a
  // record since, so the folder stays.
  bool Discard(const ReplicaFolder& folder);
  // Removes the replica's folder; if the replica failed, keeps the folder for people.
  void Discharge(const DepartedReplica& replica);

 private:
  void PruneFailed();

  const std::string replicas_;
  const std::string failed_;
};

}  // namespace muster::actuator::process
