// Whether an agent looks after a state folder, and who may change it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/os/file_descriptor.h"
#include "muster/os/process_identity.h"

namespace muster::scaling::actuator::process {

// An agent is there as long as it has this open: the kernel closes it with the agent's process,
// however that ends. Any number of agents may be there.
absl::StatusOr<os::FileDescriptor> AnnounceAgent(const std::string& path);

// `file` is the same path, opened to read.
bool HasAgent(int file);

// Keeps all others out, of this process too, until it is closed. Unavailable: somebody kept this
// one out for longer than `limit`.
absl::StatusOr<os::FileDescriptor> LockFolder(const std::string& path, absl::Duration limit);

// DesiredState: what the agents of a host have ordered, kept in a file so that a stale order is
// refused, and a replica replaced, by a process that has heard none of it.

struct DesiredState {
  int64_t highest_token = 0;
  std::map<std::string, int, std::less<>> wanted;  // replicas, by target

  int WantedOf(std::string_view target) const;

  friend bool operator==(const DesiredState&, const DesiredState&) = default;
};

// Stored as one line of JSON. DataLoss: not such a line.
std::string EncodeDesiredState(const DesiredState& orders);
absl::StatusOr<DesiredState> DecodeDesiredState(absl::string_view text);

// No file: no orders. DataLoss naming the file: it was not written by muster. Then nobody knows
// which agent leads, so nothing is started or let go until a person has removed it.
absl::StatusOr<DesiredState> ReadDesiredState(const std::string& path);
absl::Status WriteDesiredState(const std::string& path, const DesiredState& orders);

// ReplicaFolder: what is known of one replica, as files of a folder of its own, so that whoever
// comes later knows as much.
//
//   record          who it is, and which process keeps it; written once, before its program starts
//   ready           is there while the program says that it is
//   leaving         it was told to go
//   unattended      it goes because there was no agent for too long; comes with `leaving`
//   end             how the program ended
//   log, log.1      what the program said, the latest last
//   data/           the program's own

struct ReplicaRecord {
  std::string instance;
  std::string target;
  os::ProcessIdentity keeper;
  absl::Time started;

  friend bool operator==(const ReplicaRecord&, const ReplicaRecord&) = default;
};

struct ReplicaEnd {
  std::string how;         // "exited with status 3, peak memory 14 MiB"
  std::string last_lines;  // of what it said
  absl::Duration ran;

  friend bool operator==(const ReplicaEnd&, const ReplicaEnd&) = default;
};

// Stored as one line of JSON. DataLoss: not such a line.
std::string EncodeRecord(const ReplicaRecord& record);
absl::StatusOr<ReplicaRecord> DecodeRecord(absl::string_view text);
std::string EncodeEnd(const ReplicaEnd& end);
absl::StatusOr<ReplicaEnd> DecodeEnd(absl::string_view text);

enum class Mark { kReady, kLeaving, kUnattended };

// The keeper writes all but kLeaving, which its agent writes, too.
class ReplicaFolder {
 public:
  explicit ReplicaFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  // The folder's own name is the replica's.
  std::string instance() const;
  std::string log() const { return PathOf("log"); }
  std::string data() const { return PathOf("data"); }

  absl::Status WriteRecord(const ReplicaRecord& record) const;
  absl::StatusOr<ReplicaRecord> ReadRecord() const;
  absl::Status WriteEnd(const ReplicaEnd& end) const;
  absl::StatusOr<ReplicaEnd> ReadEnd() const;

  bool Has(Mark mark) const;
  absl::Status Set(Mark mark) const;
  void Clear(Mark mark) const;

 private:
  std::string PathOf(absl::string_view name) const;
  std::string PathOf(Mark mark) const;

  std::string path_;
};

}  // namespace muster::scaling::actuator::process
