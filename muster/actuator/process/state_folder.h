// SPDX-License-Identifier: Apache-2.0

// The files of a process actuator's state folder: the presence of agents, the lock, the ordered
// replicas (DesiredState) and one folder for each replica (ReplicaFolder).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/os/file_descriptor.h"
#include "muster/os/process_identity.h"

namespace muster::actuator::process {

// An agent counts as present while it holds this descriptor open. The kernel closes it when the
// agent's process ends, however it ends. Any number of agents may be present.
absl::StatusOr<os::FileDescriptor> AnnounceAgent(const std::string& path);

// Whether an agent is present. `file` is a descriptor of the same path, opened for reading.
bool HasAgent(int file);

// Locks the folder until the descriptor is closed, against other threads of this process too.
// Unavailable: another holder kept the lock for longer than `limit`.
absl::StatusOr<os::FileDescriptor> LockFolder(const std::string& path, absl::Duration limit);

// DesiredState: the orders of a host's agents. It is kept in a file, so that a process that did not
// receive the orders can refuse a stale one and replace a replica.

struct DesiredState {
  int64_t highest_token = 0;
  std::map<std::string, int, std::less<>> wanted;  // replicas, by target

  int WantedOf(std::string_view target) const;

  friend bool operator==(const DesiredState&, const DesiredState&) = default;
};

// Stored as one line of JSON. DataLoss: not such a line.
std::string EncodeDesiredState(const DesiredState& orders);
absl::StatusOr<DesiredState> DecodeDesiredState(absl::string_view text);

// No file: no orders. DataLoss, naming the file: muster did not write it. Then the leader's token
// is unknown, so the actuator neither starts nor stops replicas until a person has removed the
// file.
absl::StatusOr<DesiredState> ReadDesiredState(const std::string& path);
absl::Status WriteDesiredState(const std::string& path, const DesiredState& orders);

// ReplicaFolder: the state of one replica, as files in a folder of its own, so that a later agent
// knows as much as the one that started the replica.
//
//   record          name, target, keeper process and program; written once, before the program
//                   starts
//   ready           exists while the program says that it is ready
//   metrics         HOST:PORT at which the program serves its metrics, if it has told
//   leaving         an agent or the keeper told the replica to end
//   unattended      it ends because no agent was present for too long; comes with `leaving`
//   end             how the program ended
//   log, log.1      the program's output; log is the newer part
//   data/           the program's own files

struct ReplicaRecord {
  std::string instance;
  std::string target;
  os::ProcessIdentity keeper;
  absl::Time started;
  // With its arguments; empty: an earlier muster has written the record, and did not tell it.
  std::vector<std::string> program = {};

  friend bool operator==(const ReplicaRecord&, const ReplicaRecord&) = default;
};

struct ReplicaEnd {
  std::string how;         // "exited with status 3, peak memory 14 MiB"
  std::string last_lines;  // of its output
  absl::Duration ran;

  friend bool operator==(const ReplicaEnd&, const ReplicaEnd&) = default;
};

// Stored as one line of JSON. DataLoss: not such a line.
std::string EncodeRecord(const ReplicaRecord& record);
absl::StatusOr<ReplicaRecord> DecodeRecord(absl::string_view text);
std::string EncodeEnd(const ReplicaEnd& end);
absl::StatusOr<ReplicaEnd> DecodeEnd(absl::string_view text);

enum class Mark { kReady, kLeaving, kUnattended };

// The keeper writes all files and marks; agents write kLeaving too, and clear kUnattended.
class ReplicaFolder {
 public:
  explicit ReplicaFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  // The replica's name, which is the name of the folder.
  std::string instance() const;
  std::string log() const { return PathOf("log"); }
  std::string data() const { return PathOf("data"); }

  absl::Status WriteRecord(const ReplicaRecord& record) const;
  absl::StatusOr<ReplicaRecord> ReadRecord() const;
  absl::Status WriteEnd(const ReplicaEnd& end) const;
  absl::StatusOr<ReplicaEnd> ReadEnd() const;

  absl::Status WriteMetrics(absl::string_view address) const;
  // Empty: the program has told none.
  std::string ReadMetrics() const;

  bool Has(Mark mark) const;
  absl::Status Set(Mark mark) const;
  void Clear(Mark mark) const;

 private:
  std::string PathOf(absl::string_view name) const;
  std::string PathOf(Mark mark) const;

  std::string path_;
};

}  // namespace muster::actuator::process
