// SPDX-License-Identifier: Apache-2.0

// Recordings: the inputs and decisions of a scaling policy in a live run, so that the run can be
// replayed.
//
// A text file of JSON objects, one a line, in the order of events. Times are nanoseconds since
// 1970, durations nanoseconds; null means never, or none.
//
//   {"muster_recording":1,"target":"billing","policy":{"sla_ns":…,"aim_ns":…,"patience":…,…}}
//   {"rules":"mode: act\n…"}                        the text of the rules, when they come in force
//   {"spent":{"until":…,"replicas":…,"minutes":[[…,…],…]}}   of the budget, before deciding begins
//   {"announce":{"at":…,"items":…,"id":…}}
//   {"see":{"now":…,"bounds":{…},"fleet":{…},"estimates":{…},"queues":[…]},"decide":{…}}
//
// When a recording grows too long, its file becomes FILE.1 and a new file continues it. The new
// file's header tells its part number and holds the rules in force, so that the part can be read
// alone:
//
//   {"muster_recording":2,"target":"billing","policy":{…},"part":2,"rules":"mode: act\n…"}
//
// To change the format: keep reading what has been written; add members with a default that means
// what their absence did; raise kRecordingVersion where an old reader would go wrong. The golden
// tests hold version 1, which first parts still have, and version 2.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/scaling/policy/deadline_policy.h"
#include "muster/scaling/policy/policy.h"
#include "muster/scaling/policy/spending.h"

namespace muster::scaling::recording {

inline constexpr int kRecordingVersion = 2;
// The size of a file: some hours of a busy target.
inline constexpr int64_t kDefaultRecordingBytes = int64_t{64} << 20;
// A smaller file would hardly hold the rules.
inline constexpr int64_t kMinRecordingBytes = int64_t{8} << 20;

struct RecordingHeader {
  std::string target;
  scaling::policy::DeadlineOptions policy;
  int part = 1;
  std::string rules = {};  // the rules in force where a later part begins; empty: none
};

struct RecordedRules {
  std::string text;
};

struct RecordedStep {
  scaling::policy::Observation observation;
  scaling::policy::Decision decision;
};

using RecordedEvent = std::variant<scaling::policy::Announcement, RecordedRules, RecordedStep,
                                   scaling::policy::Spending>;

// Each returns one line without its line feed.
std::string EncodeHeader(const RecordingHeader& header);
std::string EncodeEvent(const RecordedEvent& event);
std::string EncodeDecision(const scaling::policy::Decision& decision);
// DataLoss: the line is malformed. FailedPrecondition: its version is later than this code's.
absl::StatusOr<RecordingHeader> DecodeHeader(const std::string& line);
absl::StatusOr<RecordedEvent> DecodeEvent(const std::string& line);

// Writes a new recording. Begin it before the policy's first decision, or it cannot be replayed.
// Before a file exceeds `most_bytes` it replaces FILE.1, and a new file begins; FILE.1 survives a
// power cut. A path that is not
// a regular file grows without limit. Not thread-safe.
class RecordingWriter {
 public:
  // AlreadyExists: the file exists; an existing recording is never overwritten.
  static absl::StatusOr<std::unique_ptr<RecordingWriter>> Open(
      const std::string& path, const RecordingHeader& header,
      int64_t most_bytes = kDefaultRecordingBytes);

  // On return the operating system has the line. Unavailable: the line could not be written, and
  // the recording is useless from here on.
  absl::Status Write(const RecordedEvent& event);

 private:
  RecordingWriter(std::string path, RecordingHeader header, int64_t most_bytes)
      : path_(std::move(path)), most_bytes_(most_bytes), header_(std::move(header)) {}

  absl::Status Begin();
  absl::Status BeginNextPart();
  bool IsFull(const std::string& line) const;
  absl::Status WriteLine(const std::string& line);

  const std::string path_;
  const int64_t most_bytes_;
  RecordingHeader header_;  // of the present file
  int64_t header_bytes_ = 0;
  int64_t bytes_ = 0;
  std::ofstream file_;
};

// Reads FILE.1 first if it is the preceding part. Not thread-safe.
class RecordingReader {
 public:
  // NotFound: the file does not exist. Also the errors of DecodeHeader.
  static absl::StatusOr<std::unique_ptr<RecordingReader>> Open(const std::string& path);

  // The header of the first part that exists. If its part is above 1, the policy's earlier inputs
  // are missing.
  const RecordingHeader& header() const { return header_; }

  // nullopt at the end. Ignores a last line without a line feed, which a killed writer leaves.
  // DataLoss names file and line.
  absl::StatusOr<std::optional<RecordedEvent>> Next();

  // The place of the last event that Next returned.
  const std::string& file() const { return path_; }
  int64_t line() const { return line_; }

 private:
  RecordingReader() = default;
  absl::StatusOr<RecordingHeader> OpenPart(const std::string& path);
  bool ReadLine(std::string* line);

  std::string path_;
  std::string next_path_;  // of the part after this one; empty: this is the last
  std::ifstream file_;
  int64_t line_ = 0;
  RecordingHeader header_;
};

}  // namespace muster::scaling::recording
