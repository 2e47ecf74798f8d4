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
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/os/process_identity.h"

namespace muster::scaling::actuator::process {

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
